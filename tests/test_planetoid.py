import pickle

import pytest

from tadropedge import Graph, TadropedgeError
from tadropedge.data.planetoid import citation_graph


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "components", "isolated", "largest"),
    [("cora", 2708, 5278, 78, 0, 2485), ("citeseer", 3327, 4552, 438, 48, 2120), ("pubmed", 19717, 44324, 1, 0, 19717)],
)
def test_what_the_files_really_hold(citation, name, nodes, edges, components, isolated, largest):
    graph = citation(name)
    assert (graph.num_nodes, graph.num_edges) == (nodes, edges)
    assert graph.components.count == components
    assert graph.components.num_isolated == isolated
    assert graph.components.largest == largest


def test_larger_graphs(large_graphs):
    enron = Graph.from_file(large_graphs / "email-enron.txt.gz")
    assert (enron.num_nodes, enron.num_edges) == (36692, 183831)
    photo = Graph.from_file(large_graphs / "amazon_photo.npz")
    assert (photo.num_nodes, photo.num_edges) == (7650, 119081)


@pytest.fixture
def folder(tmp_path):
    raw = tmp_path / "planetoid" / "Cora" / "raw"
    raw.mkdir(parents=True)
    return raw / "ind.cora.graph"


class Hostile:
    def __reduce__(self):
        return print, ("this must never run",)


def test_a_hostile_pickle_is_refused(tmp_path, folder, capsys):
    folder.write_bytes(pickle.dumps({0: [1], 1: Hostile()}))
    with pytest.raises(TadropedgeError, match=r"asks for builtins\.print, which is not admitted"):
        citation_graph("cora", tmp_path)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("content", [b"", b"garbage", pickle.dumps([1, 2])[:-2]])
def test_a_damaged_file(tmp_path, folder, content):
    folder.write_bytes(content)
    with pytest.raises(TadropedgeError, match="not a citation graph"):
        citation_graph("cora", tmp_path)


def test_wrong_content_and_places(tmp_path, folder, monkeypatch):
    folder.write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(TadropedgeError, match="expected a dictionary of neighbour lists"):
        citation_graph("cora", tmp_path)
    folder.write_bytes(pickle.dumps({0: [1], 1: [0, 0, 1]}))
    monkeypatch.setenv("TADROPEDGE_DATA", str(tmp_path))
    assert citation_graph("Cora").num_edges == 1
    with pytest.raises(TadropedgeError, match=r"no such file: '.*ind\.pubmed\.graph'"):
        citation_graph("pubmed")
    with pytest.raises(TadropedgeError, match="unknown dataset 'core'; choose from cora"):
        citation_graph("core")
    monkeypatch.delenv("TADROPEDGE_DATA")
    with pytest.raises(TadropedgeError, match="where is Cora"):
        citation_graph("cora")
