"""What every format of ``tadropedge.files.FORMATS`` must do: a file in, its graph out, or a line that says why not."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from tadropedge import Graph, TadropedgeError
from tadropedge.files import FORMATS, Format, read_file
from tadropedge.testing.graphs import bipartite, karate, path, star, union, weighted

GRAPHS = {
    "karate": karate(),
    "weighted": weighted(karate(), seed=3),
    "one-edge": path(2),
    "star": star(11),
    "two-parts": union(bipartite(2, 3), path(4)),
}
DAMAGES = 40


class FormatContract:
    """Subclass it with the ``format``, a name in ``FORMATS`` or a :class:`~tadropedge.files.Format`, and ``write``.

    Say ``isolated = False`` where a file lists edges alone, ``weights = False`` where it has none. For instance::

        class TestPajek(FormatContract):
            format = Format(name="a Pajek file", suffixes=(".net",), reader=read_pajek)

            def write(self, path, graph):
                networkx.write_pajek(networkx.Graph(graph.pairs.T.tolist()), path)
    """

    format: str | Format
    isolated = True
    weights = True

    def write(self, path: Path, graph: Graph) -> None:
        """Write ``graph`` to ``path``, as somebody else would."""
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def _known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        if isinstance(self.format, Format):
            monkeypatch.setitem(FORMATS, "of this test", self.format)

    @property
    def known(self) -> Format:
        """The entry of ``FORMATS``."""
        return self.format if isinstance(self.format, Format) else FORMATS[self.format]

    def file(self, folder: Path, graph: Graph | None = None) -> Path:
        """A file with a graph, the karate club unless another is given."""
        made = folder / f"graph{self.known.suffixes[0]}"
        self.write(made, GRAPHS["weighted"] if graph is None else graph)
        return made

    @pytest.mark.parametrize("name", GRAPHS)
    def test_a_graph_comes_back(self, name: str, tmp_path: Path) -> None:
        graph = GRAPHS[name]
        again = Graph.from_file(self.file(tmp_path, graph))
        assert again.pairs.tolist() == graph.pairs.tolist()
        assert again.num_nodes == graph.num_nodes
        wanted = graph.weight if self.weights else None
        assert (again.weight is None) == (wanted is None)
        assert wanted is None or again.weight is None or torch.allclose(again.weight, wanted, rtol=1e-7)

    def test_what_was_read_fits_together_and_is_told(self, tmp_path: Path) -> None:
        contents = read_file(self.file(tmp_path))
        assert contents.arcs.dtype.kind in "iu"
        assert contents.arcs.shape[0] == 2
        count = contents.arcs.shape[1]
        assert contents.read.startswith(f"{count} edge")
        assert contents.file == self.file(tmp_path).name
        if contents.weight is not None:
            assert contents.weight.dtype == np.float64
            assert contents.weight.shape == (count,)
        if contents.node_ids is not None:
            assert len(set(contents.node_ids)) == len(contents.node_ids) == contents.num_nodes

    def test_isolated_nodes_are_there_where_the_file_knows_them(self, tmp_path: Path) -> None:
        if not self.isolated:
            pytest.skip("a list of edges")
        more = Graph.from_edge_index(path(3).pairs, num_nodes=7)
        assert Graph.from_file(self.file(tmp_path, more)).num_nodes == more.num_nodes

    def test_weights_are_left_out_on_demand(self, tmp_path: Path) -> None:
        contents = read_file(self.file(tmp_path), weighted=False)
        assert contents.weight is None
        assert "weights" not in contents.read
        assert Graph.from_file(self.file(tmp_path), weighted=False).weight is None

    def test_reading_changes_nothing_and_is_repeatable(self, tmp_path: Path) -> None:
        made = self.file(tmp_path)
        before = made.read_bytes()
        one, other = Graph.from_file(made), Graph.from_file(str(made))
        assert one.fingerprint == other.fingerprint
        assert made.read_bytes() == before
        assert list(tmp_path.iterdir()) == [made]

    def test_text_may_be_packed_and_letters_of_the_suffix_do_not_count(self, tmp_path: Path) -> None:
        made = self.file(tmp_path)
        wanted = Graph.from_file(made).fingerprint
        upper = tmp_path / made.name.replace(self.known.suffixes[0], self.known.suffixes[0].upper())
        upper.write_bytes(made.read_bytes())
        assert Graph.from_file(upper).fingerprint == wanted
        packed = made.with_name(f"{made.name}.gz")
        packed.write_bytes(gzip.compress(made.read_bytes()))
        if self.known.text:
            assert Graph.from_file(packed).fingerprint == wanted
            packed.write_bytes(packed.read_bytes()[:-20])
        with pytest.raises(TadropedgeError, match="packed" if not self.known.text else "damaged"):
            Graph.from_file(packed)

    def test_what_cannot_be_opened_is_named(self, tmp_path: Path) -> None:
        missing, folder = (tmp_path / f"{name}{self.known.suffixes[0]}" for name in ("missing", "folder"))
        folder.mkdir()
        for made, word in ((missing, "no such file"), (folder, "is a folder")):
            with pytest.raises(TadropedgeError, match=word) as caught:
                read_file(made)
            assert made.name in str(caught.value)

    def test_a_damaged_file_is_one_line_or_another_graph(self, tmp_path: Path) -> None:
        made = self.file(tmp_path)
        whole, chance = made.read_bytes(), random.Random(0)
        cut = [whole[: chance.randrange(len(whole))] for _ in range(DAMAGES)]
        changed = []
        for _ in range(DAMAGES):
            place, bit = chance.randrange(len(whole)), 1 << chance.randrange(8)
            changed.append(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
        refused = []
        for content in (b"", b"\0" * 64, b"\xff\xfe" + whole, *cut, *changed):
            made.write_bytes(content)
            try:
                Graph.from_file(made)
            except TadropedgeError as error:
                refused.append(str(error))
        assert len(refused) >= 3
        assert all(made.name in said and "\n" not in said for said in refused)

    def test_columns_that_are_not_there_are_named(self, tmp_path: Path) -> None:
        made = self.file(tmp_path)
        with pytest.raises(TadropedgeError, match="nowhere"):
            read_file(made, column="nowhere")
        with pytest.raises(TadropedgeError, match="nowhere"):
            read_file(made, columns={"nowhere": "a"})
        if "weight" in self.known.columns:
            with pytest.raises(TadropedgeError, match="nowhere"):
                read_file(made, columns={"weight": "nowhere"})
        if not self.known.header:
            with pytest.raises(TadropedgeError, match="header"):
                read_file(made, header=True)
