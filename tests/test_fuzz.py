"""Valid input with one thing broken, for every reader: it is refused with one clear line, or it is still valid.

Longer runs, on whole files and in children that may crash, are in ``tests/torture/fuzz.py`` (``make fuzz``).
"""

import io
import json

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torture import fuzz
from torture.readers import (
    ARCS,
    PLAIN,
    READERS,
    SPLIT,
    N,
    X,
    Y,
    attempt,
    check_dataset,
    check_graph,
    csr_parts,
    matrix_file,
    model_files,
    npz,
    read_model,
)

from tadropedge import Graph
from tadropedge.data import Dataset, Split, load_file
from tadropedge.data.features import csr_tensor
from tadropedge.files import read_edge_list

few = settings(max_examples=20, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))

NUMBERS = st.one_of(
    st.integers(-3, 14), st.integers(-(2**63), 2**63 - 1), st.sampled_from([2**28, 2**31, -(2**31), 10**15])
)
DTYPES = st.one_of(
    hnp.integer_dtypes(), hnp.unsigned_integer_dtypes(), hnp.floating_dtypes(), hnp.complex_number_dtypes(),
    hnp.boolean_dtypes(), hnp.unicode_string_dtypes(max_len=3), hnp.datetime64_dtypes(),
)  # fmt: skip
ANY_ARRAY = DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, max_side=13)))


@st.composite
def broken(draw, array):
    """``array`` with one entry changed, cut, of another type, or another array altogether."""
    array = np.array(array)
    kind = draw(st.sampled_from(["entry", "entry", "entry", "cut", "type", "other"]))
    if kind == "entry" and array.size:
        wide = array.astype(np.int64 if array.dtype.kind in "iu" else array.dtype)
        wide.reshape(-1)[draw(st.integers(0, array.size - 1))] = draw(NUMBERS)
        return wide
    if kind == "cut" and array.ndim:
        return array[: draw(st.integers(0, len(array)))]
    if kind == "type" and array.dtype.kind not in "SU":
        return array.astype(draw(st.sampled_from(["f8", "u8", "c16", "U4", "?", "i1", "f2", ">i4"])))
    return draw(ANY_ARRAY)


def broken_one(draw, arrays):
    name = draw(st.sampled_from(sorted(arrays)))
    return {**arrays, name: draw(broken(arrays[name]))}


MATRICES = {kind: dict(np.load(io.BytesIO(matrix_file(kind)))) for kind in ("csr", "csc", "coo", "bsr", "dia")}
DATASETS = (
    {"edge_index": ARCS, **PLAIN},
    {**csr_parts("x", X), **csr_parts("adj", np.eye(N, k=1)), "y": Y, **SPLIT},
)


@pytest.mark.parametrize("kind", MATRICES)
@given(st.data())
@few
def test_a_saved_matrix_with_one_broken_part(kind, tmp_path_factory, data):
    file = tmp_path_factory.mktemp("fuzz") / "m.npz"
    file.write_bytes(npz(**broken_one(data.draw, MATRICES[kind])))
    attempt(lambda: check_graph(Graph.from_file(file)))


@pytest.mark.parametrize("kind", MATRICES)
@given(st.data())
@few
def test_a_matrix_that_was_changed_after_it_was_made(kind, data):
    matrix = sp.load_npz(io.BytesIO(matrix_file(kind)))
    part = data.draw(st.sampled_from({"coo": ["data", "row", "col"], "dia": ["data", "offsets"]}.get(
        kind, ["data", "indices", "indptr"]
    )))  # fmt: skip
    try:
        setattr(matrix, part, data.draw(broken(getattr(matrix, part))))
    except (TypeError, ValueError, IndexError, UserWarning, RuntimeWarning):  # SciPy's own refusal
        return
    attempt(lambda: check_graph(Graph.from_scipy(matrix)))


@pytest.mark.parametrize("arrays", DATASETS, ids=["dense", "sparse"])
@given(st.data())
@few
def test_a_dataset_with_one_broken_array(arrays, tmp_path_factory, data):
    file = tmp_path_factory.mktemp("fuzz") / "d.npz"
    file.write_bytes(npz(**broken_one(data.draw, arrays)))
    attempt(lambda: check_dataset(load_file(file, per_class=1)))


@given(st.data())
@few
def test_sparse_features_with_one_broken_part(data):
    csr = csr_tensor(sp.csr_matrix(X))
    parts = {"crow": csr.crow_indices().long(), "col": csr.col_indices().long()}
    name = data.draw(st.sampled_from(sorted(parts)))
    place = data.draw(st.integers(0, len(parts[name]) - 1))
    parts[name] = parts[name].clone()
    parts[name][place] = data.draw(NUMBERS)
    features = torch.sparse_csr_tensor(parts["crow"], parts["col"], csr.values(), (N, 4), check_invariants=False)
    split = Split(*map(torch.from_numpy, SPLIT.values()))
    graph, labels = Graph.from_edge_index(ARCS), torch.from_numpy(Y)
    attempt(lambda: check_dataset(Dataset("d", graph, features, labels, num_classes=3, level="node", split=split)))


CELLS = st.one_of(
    st.integers().map(str), st.sampled_from(["+1", "1_000", "1e3", "0x1", "to", "", '"', "'=1", "=1", "#", "é", "nan"]),
    st.text(max_size=5),
)  # fmt: skip


@given(st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=6), st.sampled_from([",", "\t", " ", ";"]))
@few
def test_no_edge_of_a_text_is_lost(tmp_path_factory, rows, mark):
    file = tmp_path_factory.mktemp("fuzz") / "edges.txt"
    file.write_text("\n".join(mark.join(row) for row in rows), encoding="utf-8", errors="replace")
    attempt(lambda: check_graph(Graph.from_file(file)))


IDS = st.one_of(st.integers(0, 10**25).map(str), st.from_regex(r"[+-]?[0-9]{1,3}(_[0-9]{3})?", fullmatch=True))


@given(st.lists(st.tuples(IDS, IDS), min_size=1, max_size=5))
@few
def test_a_first_line_of_numbers_is_an_edge_or_refused(tmp_path_factory, pairs):
    file = tmp_path_factory.mktemp("fuzz") / "edges.txt"
    file.write_text("\n".join(" ".join(pair) for pair in pairs))

    def read():
        edges = read_edge_list(file)
        assert edges.arcs.shape == (2, len(pairs))
        for arc, pair in zip(edges.arcs.T.tolist(), pairs, strict=True):
            for place, name in zip(arc, pair, strict=True):
                assert edges.ids[place] == (int(name) if isinstance(edges.ids[0], int) else name)

    assert not attempt(read) or "_" in "".join(pairs[0])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.data(), JSON)
@few
def test_model_settings_with_one_other_value(tmp_path_factory, data, value):
    folder = tmp_path_factory.mktemp("fuzz")
    document = json.loads(model_files()["model.json"])
    holder, key = data.draw(st.sampled_from(list(fuzz._places(document))))
    holder[key] = value
    (folder / "model.safetensors").write_bytes(model_files()["model.safetensors"])
    (folder / "model.json").write_text(json.dumps(document))
    attempt(lambda: read_model(folder))


@pytest.mark.parametrize("name", READERS)
def test_changed_files(name, tmp_path):
    fuzz.batch(name, 1_000_000, tmp_path, count=5)


def test_every_reader_reads_its_own_file(tmp_path):
    for place, reader in enumerate(READERS.values()):
        folder = tmp_path / str(place)
        folder.mkdir()
        reader.beside(folder)
        (folder / reader.name).write_bytes(reader.content())
        reader.read(folder)
