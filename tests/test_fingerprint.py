"""Whatever decides a result changes its fingerprint, and nothing else does.

The encoding is tried on pairs of values. Then every consumer (studies, caches, recipes, transforms; pieces and models
have files of their own) gets a base input, of which each entry, shape, dtype and setting is changed in turn. Fields of
dataclasses are listed by ``dataclasses.fields``: a new field must be covered here, or be named as one that decides
nothing.
"""

import functools
import importlib
import itertools
import math
import shutil
import sys
import types
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
import torch
from graphs import ZOO
from hypothesis import given
from hypothesis import strategies as st

from tadropedge import SCORES, STRATEGIES, Graph, TadropedgeError, edge_scores
from tadropedge.blocks import Block, blocks
from tadropedge.cache import cached
from tadropedge.data.dataset import Dataset, Split
from tadropedge.fingerprint import fingerprint
from tadropedge.paper.recipe import Recipe, load_recipe
from tadropedge.pyg import AddKeepProbability, AddScore
from tadropedge.registry import NETWORKS
from tadropedge.scores.aggregate import Aggregate
from tadropedge.scores.effective import Effective
from tadropedge.scores.solve import InParts
from tadropedge.training.config import Architecture, plug_ins
from tadropedge.training.laboratory import Laboratory, data_fingerprints


def print_of(value):
    return fingerprint(value=value)


def csr(crow, col, values, size):
    return torch.sparse_csr_tensor(crow, col, values, size=size, check_invariants=True)


# -- the encoding -----------------------------------------------------------------------------------------------------


def test_fingerprints_are_the_same_on_every_machine_and_in_every_release():
    """Studies and caches on disk are found again by these: raise VERSION where one of them must change."""
    assert {name: print_of(value)[:16] for name, value in LITERAL.items()} == {
        "numbers": "8b7af1dff0118616",
        "texts": "2ab6cf162dc184fb",
        "array": "cc546d4a7e98465b",
        "big-endian": "cc546d4a7e98465b",
        "tensor": "ab46208227fbd9bf",
        "sparse": "cca40357019e43c3",
        "ours": "d53d092559050656",
    }
    assert data_fingerprints(dataset()) == {
        "graph": "7295506f6dcf2e37",
        "features": "25745c8d0fa63a4b",
        "labels": "ca25b1625fee508c",
        "split": "62041838a5ca0a20",
    }


LITERAL = {
    "numbers": [0, -1, 2**70, 0.1, -0.0, math.nan, math.inf, 1j, True, None],
    "texts": {"ä": "\ud800", "": b"\x00"},
    "array": np.arange(6, dtype=np.int16).reshape(2, 3),
    "big-endian": np.arange(6, dtype=">i2").reshape(2, 3),
    "tensor": torch.tensor([[0.5, -2.0]], dtype=torch.bfloat16),
    "sparse": csr(torch.tensor([0, 1, 2]), torch.tensor([1, 0]), torch.tensor([1.0, 2.0]), (2, 3)),
    "ours": [Graph, load_recipe],
}

PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, 1, -1, 2**64]),
    st.floats(allow_nan=True),
    st.sampled_from([0.0, -0.0, 1.0]),
    st.text(max_size=4),
    st.binary(max_size=4),
    st.sampled_from(["1", "", "True", b"1", b""]),
)
ARRAYS = st.builds(
    lambda dtype, shape, fill: np.full(shape, fill).astype(dtype),
    st.sampled_from(["i1", "i4", "i8", "u1", "f4", "f8", "?", "<U2", ">i4"]),
    st.sampled_from([(), (0,), (1,), (2, 3), (3, 2), (6,), (0, 2)]),
    st.integers(0, 2),
)
VALUES = st.recursive(
    PLAIN | ARRAYS | ARRAYS.filter(lambda array: array.dtype.kind in "if" and array.dtype.isnative).map(torch.tensor),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2) | st.integers(0, 2), inner, max_size=3)
    ),
    max_leaves=6,
)


def content(value):
    """The content of a value in another form, by which two are equal."""
    if isinstance(value, list | tuple):
        return "sequence", tuple(map(content, value))
    if isinstance(value, dict):
        return "mapping", frozenset((content(key), content(part)) for key, part in value.items())
    if isinstance(value, torch.Tensor):
        return "tensor", str(value.dtype), tuple(value.shape), repr(value.flatten().tolist())
    if isinstance(value, np.ndarray):
        return "array", value.dtype.newbyteorder("<").str, value.shape, repr(value.flatten().tolist())
    return type(value).__name__, value.hex() if isinstance(value, float) else value


@given(VALUES, VALUES)
def test_two_values_share_a_fingerprint_only_if_they_are_equal(one, two):
    assert (print_of(one) == print_of(two)) == (content(one) == content(two))
    assert print_of([one, two]) == print_of((one, two))
    assert (fingerprint(a=one, b=two) == fingerprint(a=two, b=one)) == (content(one) == content(two))


def test_values_that_look_alike_differ():
    alike = [1, True, 1.0, "1", b"1", [1], (1, 1), {1}, {1: 1}, {"1": 1}, 1 + 0j, np.int64(1), np.int32(1), np.bool_(1)]
    alike += [0, False, 0.0, -0.0, None, "", b"", [], {}, set(), [[]], [None], ..., math.nan, "nan"]
    alike += [[1, [2]], [[1], 2], [[1, 2]], [1, 2], ("ab", "c"), ("a", "bc"), ("abc", ""), {"a": "b"}, ["a", "b"]]
    zeros = np.zeros((2, 3), dtype=np.int32)
    alike += [zeros, zeros.T, zeros.ravel(), zeros.astype(np.int64), zeros.astype(np.float32), zeros.tolist()]
    alike += [zeros[None], zeros[:0], zeros[:, :0], torch.zeros(2, 3), torch.zeros(3, 2), torch.zeros(2, 3).double()]
    dense = torch.zeros(2, 3, dtype=torch.float16)
    alike += [dense, dense.bfloat16(), dense.to_sparse(), dense.float().to_sparse_csr(), dense.float().to_sparse_csc()]
    assert len({print_of(value) for value in alike}) == len(alike)
    assert len({fingerprint(a=1), fingerprint(b=1), fingerprint(a=1, b=None), fingerprint()}) == 4


def test_memory_order_byte_order_and_read_only_do_not_count(device):
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    frozen = base.copy()
    frozen.setflags(write=False)
    same = [base, np.asfortranarray(base), np.repeat(base, 2, axis=1)[:, ::2], base.astype(">f4"), frozen]
    assert len({print_of(array) for array in same}) == 1
    tensor = torch.from_numpy(base)
    strided = [tensor, tensor.T.contiguous().T, tensor.clone().requires_grad_(), tensor.to(device)]
    strided += [torch.complex(tensor, -tensor).conj().imag]  # negated lazily
    assert len({print_of(one) for one in strided}) == 1
    assert (
        print_of({"a": 1, "b": 2}) == print_of({"b": 2, "a": 1}) == print_of(types.MappingProxyType({"b": 2, "a": 1}))
    )
    assert print_of({3, 1, 2}) == print_of(frozenset([2, 3, 1]))
    sparse = torch.sparse_coo_tensor([[1, 0], [0, 2]], [1.0, 2.0], (2, 3), check_invariants=True)
    assert print_of(sparse) == print_of(sparse.coalesce()) == print_of(sparse.to(device))
    assert print_of(tensor.to_sparse_csr()) == print_of(tensor.to_sparse_csr().to(device))


def each_entry(tensor):
    """Copies of a tensor, each with one other entry."""
    for place in range(tensor.numel()):
        changed = tensor.clone()
        flat = changed.view(-1)
        flat[place] = ~flat[place] if tensor.dtype == torch.bool else flat[place] + 1
        yield changed


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32, torch.complex64])
def test_every_entry_counts(dtype):
    tensor = torch.arange(6).reshape(2, 3).to(dtype)
    prints = [print_of(one) for one in (tensor, *each_entry(tensor))]
    assert len(set(prints)) == 7
    prints = [print_of(one.numpy()) for one in (tensor, *each_entry(tensor))]
    assert len(set(prints)) == 7


def test_every_part_of_a_sparse_tensor_counts():
    crow, col, values = torch.tensor([0, 1, 2]), torch.tensor([1, 2]), torch.ones(2)
    parts = [
        (crow, col, values, (2, 4)),
        (torch.tensor([0, 2, 2]), col, values, (2, 4)),
        *((crow, one, values, (2, 5)) for one in (col, *each_entry(col))),
        *((crow, col, one, (2, 4)) for one in each_entry(values)),
        (crow.int(), col.int(), values, (2, 4)),
        (crow, col, values.double(), (2, 4)),
    ]
    prints = {print_of(csr(*three, size)) for *three, size in parts}
    assert len(prints) == len(parts)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        iter([]),
        np.array([None]),
        np.longdouble(1),
        np.ma.masked_array([1, 2], [True, False]),
        np.zeros(2, dtype=[("a", "i4")]),
        np.random.default_rng(0),
        [].append,
        torch.empty(2, device="meta"),
        torch.nn.Linear(1, 1),
        functools.partial(max, object()),
        ZOO,
    ],
    ids=lambda value: type(value).__name__,
)
def test_content_that_cannot_be_seen_is_refused(value):
    if value is ZOO:
        value = itself = []
        itself.append(itself)
    with pytest.raises(
        TadropedgeError, match=r"^mine holds an? .*, whose content cannot be fingerprinted; expected num"
    ):
        fingerprint(mine={"deep": [value]})


# -- functions --------------------------------------------------------------------------------------------------------

SCALE = 2.0


def helper(graph):
    return graph.pairs.sum(0) * SCALE


def scored(graph):
    return helper(graph) + 1


class Callable:
    factor = 3

    def __init__(self, power):
        self.power = power

    @functools.cached_property
    def twice(self):
        return 2 * self.power

    def __call__(self, graph):
        return graph.pairs.sum(0) ** self.twice


def made(power, shift=0):
    """Functions of one name whose closure, defaults or code differ."""
    return [
        lambda graph: graph.pairs.sum(0) ** power,
        lambda graph, shift=shift: graph.pairs.sum(0) + shift,
        lambda graph, *, shift=shift: graph.pairs.sum(0) + shift,
        lambda graph: (lambda pairs: pairs.sum(0) ** power)(graph.pairs),
    ]


def test_functions_differ_by_code_constants_defaults_and_closure():
    everything = [*made(1), *made(2), *made(1, shift=1)]
    assert len({print_of(one) for one in everything}) == 8  # of the last four two are those of the first
    assert [print_of(one) for one in made(1)] == [print_of(one) for one in made(1)]
    one, two = (eval(f"lambda graph: graph.pairs.{how}(0)") for how in ("amin", "amax"))
    three, four = (eval(f"lambda graph: graph.pairs.sum({place})") for place in (0, 1))
    assert len({print_of(each) for each in (one, two, three, four)}) == 4
    partials = [
        functools.partial(scored, power=2),
        functools.partial(scored, power=3),
        functools.partial(helper, power=2),
    ]
    assert len({print_of(each) for each in partials}) == 3
    assert (
        len({print_of(each) for each in (np.add, np.subtract, torch.relu, torch.nn.functional.relu, len, Graph)}) == 6
    )


def test_functions_differ_by_the_helpers_and_constants_they_use(monkeypatch):
    prints = [print_of(scored), print_of(functools.lru_cache(scored)), print_of(Callable(2)), print_of(Callable(3))]
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    prints += [print_of(scored)]
    monkeypatch.setitem(globals(), "helper", lambda graph: graph.pairs.sum(0))
    prints += [print_of(scored)]
    monkeypatch.setattr(Callable, "factor", 4)
    prints += [print_of(Callable(2))]
    monkeypatch.setattr(Callable, "__call__", lambda self, graph: graph.pairs.sum(0))
    prints += [print_of(Callable(2)), print_of(Callable(2).__call__)]
    monkeypatch.setattr(Callable, "twice", functools.cached_property(lambda self: 3))
    prints += [print_of(Callable(2))]
    assert len(set(prints)) == len(prints)


def test_a_module_of_the_user_is_read_where_it_is_used(monkeypatch):
    module = types.ModuleType("mine_alone")
    exec("def used(x): return x\ndef unused(x): return x\n", module.__dict__)
    monkeypatch.setitem(globals(), "mine", module)
    caller = eval("lambda graph: mine.used(graph)", globals())
    before = print_of(caller)
    exec("def unused(x): return 2 * x", module.__dict__)
    assert print_of(caller) == before
    exec("def used(x): return 2 * x", module.__dict__)
    assert print_of(caller) != before


def test_functions_may_refer_to_themselves():
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    assert print_of(even) == print_of(even) != print_of(odd)


# -- studies ----------------------------------------------------------------------------------------------------------


def dataset(layout="dense"):
    graph = Graph.from_edge_index([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 5]], edge_weight=[1.0, 2.0, 1.0, 1.0, 1.0, 3.0])
    features = torch.tensor([[1.0, 0, 0, 1]] * 3 + [[0, 1.0, 1, 0]] * 3)
    features = features.to_sparse_csr() if layout == "sparse" else features
    labels = torch.tensor([0, 0, 1, 1, 0, 1])
    split = Split(torch.tensor([0, 2]), torch.tensor([1, 3]), torch.tensor([4, 5]))
    return Dataset("six", graph, features, labels, num_classes=2, level="node", split=split, gamma=0.1)


def other_graphs(graph):
    weight = graph.weight
    yield from (replace(graph, weight=one) for one in each_entry(weight))
    yield replace(graph, weight=None)
    yield Graph.from_edge_index([[0, 1, 2, 3, 4, 0], [1, 2, 3, 5, 5, 4]], edge_weight=weight)


def other_features(features):
    if features.layout is torch.strided:
        yield from each_entry(features)
        yield torch.nn.functional.pad(features, (0, 1))
        yield features.to_sparse_csr()
        return
    crow, col, values, shape = features.crow_indices(), features.col_indices(), features.values(), features.shape
    yield from (csr(crow, col, one, shape) for one in each_entry(values))
    for place in range(len(col)):  # the same ones, in another column
        moved = col.clone()
        moved[place] = {0: 1, 3: 2, 1: 0, 2: 3}[int(col[place])]
        yield csr(crow, moved, values, shape)
    yield csr(crow, col, values, (6, 5))
    yield csr(torch.tensor([0, 2, 4, 6, 8, 11, 12]), col[[*range(10), 1, 11]], values, shape)


def other_splits(split):
    names = [one.name for one in fields(Split)]
    assert names == ["train", "val", "test"]
    for one, two in itertools.combinations(names, 2):
        yield replace(split, **{one: getattr(split, two), two: getattr(split, one)})
    for name in names:
        yield replace(split, **{name: getattr(split, name)[:1] if name != "train" else split.train.flip(0)})


def changed_datasets(base):
    """Every way in which a dataset can differ, by field; None where a field decides no outcome."""
    return {
        "name": None,  # it is in the names of studies
        "graph": [replace(base, graph=one) for one in other_graphs(base.graph)],
        "features": [replace(base, features=one) for one in other_features(base.features)],
        "labels": [_unchecked(base, labels=one) for one in (*each_entry(base.labels), base.labels.int())],
        "num_classes": [_unchecked(base, num_classes=3)],
        "level": [_unchecked(base, level="graph")],
        "split": [_unchecked(base, split=one) for one in other_splits(base.split)],
        "gamma": None,  # it is in the space, or in the trial
        "class_names": None,
        "drawn": None,  # it is a setting of the laboratory, where it decides
        "score_column": None,  # it decides the methods that use it, and is in their studies
    }


def _unchecked(base, **changes):
    """A dataset that would be refused: its fingerprint must differ all the same."""
    copy = object.__new__(type(base))
    copy.__dict__.update({**vars(base), **changes})
    return copy


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_every_entry_of_a_dataset_decides(layout):
    base = dataset(layout)
    changed = changed_datasets(base)
    assert set(changed) == {one.name for one in fields(Dataset)}
    datasets = [base, *itertools.chain.from_iterable(filter(None, changed.values()))]
    prints = [print_of(data_fingerprints(one)) for one in datasets]
    assert len(prints) > 40
    assert len(set(prints)) == len(prints)


def test_what_decides_nothing_in_a_dataset_changes_nothing(device):
    base = dataset()
    graph = replace(base.graph, node_ids=tuple("abcdef"), arc_pair=base.graph.arc_pair.flip(0))
    same = [base, dataset(), base.to(device), replace(base, name="other", gamma=0.2, class_names=("a", "b"))]
    same += [replace(base, graph=graph), replace(base, features=base.features.T.contiguous().T)]
    assert len({print_of(data_fingerprints(one)) for one in same}) == 1
    decides = {"pairs", "num_nodes", "weight"}
    assert {one.name for one in fields(Graph)} == decides | {"arc_pair", "node_ids"}
    isolated = Graph.from_edge_index(base.graph.pairs, 7, base.graph.weight)
    assert isolated.fingerprint != base.graph.fingerprint


SETTINGS = {  # of a laboratory: another value of each; None where it decides no outcome
    "dataset": [dataset("sparse")],
    "architecture": [
        Architecture(layers=3),
        Architecture(hidden=64),
        Architecture("jknet", layers=3),
        Architecture(settings={"batch_norm": True}),
        Architecture(settings={"normalization": "random-walk"}),
    ],
    "epochs": [401],
    "laplacian": ["normalized"],
    "q": [3],
    "selection": ["training"],
    "per_layer": [True],
    "evaluate_every": [2],
    "fresh_sizes": [(3, 1, 2)],
    "precision": ["high"],
    "measure": ["roc-auc", "macro-f1"],
    "choose_splits": [1, 2],
    "gradient_norms": None,
    "cache_dir": None,
    "progress": None,
}


def test_every_setting_of_a_laboratory_decides():
    assert set(SETTINGS) == {one.name for one in fields(Laboratory)}
    assert {one.name for one in fields(Architecture)} == {"backbone", "layers", "hidden", "settings"}
    base = Laboratory(dataset())
    changed = [replace(base, **{name: one}) for name, values in SETTINGS.items() for one in values or ()]
    prints = [print_of(one.settings) for one in (base, *changed)]
    assert len(set(prints)) == len(prints)
    same = [replace(base, cache_dir="here", progress=print), replace(base, gradient_norms=True)]
    same += [replace(base, q=2), replace(base, fresh_sizes=(2, 2, 2))]
    assert {print_of(one.settings) for one in same} == {print_of(base.settings)}


def test_another_version_of_training_is_another_setting(monkeypatch):
    before = Laboratory(dataset()).settings
    monkeypatch.setattr("tadropedge.training.laboratory.VERSION", 99)
    assert Laboratory(dataset()).settings != before


def test_your_own_score_rule_and_network_decide_with_their_code(monkeypatch):
    assert not any(plug_ins(name) for name in (*NETWORKS, "original", "dropedge", "effective-cdf", "inverse-cutoff"))
    for registry, method in ((SCORES, "mine-cdf"), (STRATEGIES, "mine"), (STRATEGIES, "effective-mine")):
        prints = set()
        for function in (helper, scored, *made(1), *made(2)[:1]):
            monkeypatch.setitem(registry, "mine", function)
            (code,) = plug_ins(method).items()
            prints.add(code)
        assert len(prints) == 7
        del registry["mine"]
        monkeypatch.undo()
    for width in (1, 2):
        mine = type("Mine", (NETWORKS["gcn"],), {"entry_width": classmethod(eval(f"lambda cls, hidden: {width}"))})
        monkeypatch.setitem(NETWORKS, "mine", mine)
        prints = [*prints, Laboratory(dataset(), Architecture("mine")).settings["code.mine"]]
    assert prints[-1] != prints[-2]
    secret = object()
    monkeypatch.setitem(STRATEGIES, "hidden", lambda weights: helper(secret))
    with pytest.raises(TadropedgeError, match=r"^hidden holds an object of type object, whose content cannot be"):
        plug_ins("effective-hidden")


def test_the_modules_that_your_code_uses_decide_with_it(tmp_path, monkeypatch):
    """A score may call functions of your other modules, however it gets at them."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mypkg").mkdir()
    uses = {
        "import mypkg\ndef score(graph): return mypkg.sub.helper(graph)": "mypkg/sub.py",
        "import mypkg.sub as sub\ndef score(graph): return sub.helper(graph)": "mypkg/sub.py",
        "def score(graph):\n    import mylocal\n    return mylocal.helper(graph)": "mylocal.py",
    }
    for source, file in uses.items():
        prints = []
        for power in (1, 2):
            (tmp_path / "mypkg" / "__init__.py").write_text("from . import sub")
            for name in ("mypkg/sub.py", "mylocal.py"):
                body = f"def helper(graph): return graph.pairs.sum(0) ** {power if name == file else 1}"
                (tmp_path / name).write_text(body)
            (tmp_path / "myscore.py").write_text(source)
            for name in ("mypkg", "mypkg.sub", "mylocal", "myscore"):
                sys.modules.pop(name, None)
            shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
            shutil.rmtree(tmp_path / "mypkg" / "__pycache__", ignore_errors=True)
            importlib.invalidate_caches()
            score = importlib.import_module("myscore").score
            importlib.import_module("mylocal")
            prints.append(fingerprint(score=score))
        assert prints[0] != prints[1], source
    for name in ("mypkg", "mypkg.sub", "mylocal", "myscore"):
        sys.modules.pop(name, None)


def test_an_installed_module_decides_with_its_name_and_version(monkeypatch):
    def rooted(graph):
        return lib.sqrt(graph)  # noqa: F821 (set below)

    prints = []
    for module in (np, torch):
        monkeypatch.setitem(rooted.__globals__, "lib", module)
        prints.append(fingerprint(rooted=rooted))
    monkeypatch.setattr(torch, "__version__", "9.9")
    assert len({*prints, fingerprint(rooted=rooted)}) == 3


# -- caches, recipes, transforms --------------------------------------------------------------------------------------

SCORE_SETTINGS = {
    Aggregate: {
        "q": [3],
        "desired_clusters": [2],
        "laplacian": ["normalized"],
        "solver": ["dense"],
        "tolerance": [1e-9],
    },
    Effective: {"method": ["exact"], "relative_error": [0.2], "seed": [1]},
}


def entries(folder):
    return len(list(folder.iterdir()))


@pytest.mark.filterwarnings("ignore::tadropedge.RepeatedEigenvalueWarning")
@pytest.mark.parametrize("kind", SCORE_SETTINGS, ids=lambda kind: kind.__name__)
def test_every_setting_of_a_score_has_its_own_entries(kind, tmp_path):
    changes, karate = SCORE_SETTINGS[kind], ZOO["karate"]
    assert set(changes) == {one.name for one in fields(kind)}
    base = {"q": 2} if kind is Aggregate else {}
    edge_scores(karate, kind.__name__.lower(), cache_dir=tmp_path, **base)
    for number, (name, value) in enumerate(((name, one) for name, values in changes.items() for one in values), 2):
        told = {name: value} if name == "desired_clusters" else {**base, name: value}
        edge_scores(karate, kind.__name__.lower(), cache_dir=tmp_path, **told)
        assert entries(tmp_path) == number, name


@dataclass(frozen=True)
class Halves:
    """A score of one's own that is solved part by part."""

    factor: float = 0.5

    def begin(self, graph):
        return np.full(graph.num_edges, np.nan), blocks(graph)

    def part(self, block, device, report):
        return {"scores": self.factor * np.ones(len(block.edges))}


def test_scores_of_ones_own_that_are_cached_are_known_by_their_code(tmp_path, monkeypatch):
    karate = ZOO["karate"]
    assert edge_scores(karate, InParts("halves", Halves), cache_dir=tmp_path)[0] == 0.5
    monkeypatch.setattr(Halves, "part", lambda self, block, device, report: {"scores": np.ones(len(block.edges))})
    assert edge_scores(karate, InParts("halves", Halves), cache_dir=tmp_path)[0] == 1.0
    assert entries(tmp_path) == 2
    monkeypatch.setattr("tadropedge.cache.VERSION", 99)
    edge_scores(karate, InParts("halves", Halves), cache_dir=tmp_path)
    assert entries(tmp_path) == 3


def test_every_entry_of_a_block_decides():
    base = next(blocks(dataset().graph))
    prints = [base.fingerprint]
    for name in ("member", "low", "high", "weight"):
        prints += [
            replace(base, **{name: one.numpy()}).fingerprint for one in each_entry(torch.tensor(getattr(base, name)))
        ]
    prints.append(replace(base, nodes=base.nodes.reshape(2, 3)).fingerprint)
    assert len(set(prints)) == len(prints) == 2 + 4 * 6
    moved = replace(base, nodes=base.nodes + 7, edges=base.edges + 7)  # the same part elsewhere in a graph
    assert moved.fingerprint == base.fingerprint
    assert {one.name for one in fields(Block)} == {"member", "low", "high", "weight", "nodes", "edges"}


def test_an_entry_with_another_dtype_or_shape_is_damaged(tmp_path):
    """The checksum of an entry covers what the bytes mean."""
    base = cached(tmp_path, {"a": 1}, lambda: {"scores": np.zeros((2, 2))})
    (path,) = tmp_path.iterdir()
    with np.load(path) as entry:
        checksum = entry["checksum"]
    for wrong in (base["scores"].ravel(), base["scores"].astype("i8"), base["scores"].view("u8")):
        np.savez(path, scores=wrong, checksum=checksum)
        assert cached(tmp_path, {"a": 1}, lambda: {"scores": np.ones(3)})["scores"].shape == (3,)


def test_every_setting_of_a_recipe_decides(monkeypatch):
    base = load_recipe("table2", "paper")
    texts = {"title", "claim", "claims", "notes", "effort"}
    changes = {"name": ["table1"], "preset": ["quick"], "settings": [], "published": [{}]}
    assert set(changes) | texts == {one.name for one in fields(Recipe)}
    for name, value in base.settings.items():
        if name not in ("uses", "competitors"):
            changes["settings"] += [{**base.settings, name: [value]}, {**base.settings, name: f" {value}"}]
        changes["settings"].append({key: one for key, one in base.settings.items() if key != name})
    recipes = [base, *(replace(base, **{name: one}) for name, values in changes.items() for one in values)]
    prints = [one.fingerprint for one in recipes]
    assert len(set(prints)) == len(prints) > 20
    assert replace(base, settings=dict(reversed(base.settings.items()))).fingerprint == base.fingerprint


def test_transforms_are_told_apart_by_code_and_numbers(monkeypatch):
    """PyG's datasets take the repr of a transform for its content."""
    weights = torch.arange(3000.0)  # torch shows the first and last three
    others = [weights + (torch.arange(3000) == 1500), weights.double(), weights.reshape(50, 60)]
    shown = [AddScore(lambda graph, by: by, by=one) for one in (weights, *others)]
    shown += [AddScore(one) for one in (helper, scored, *made(1), *made(2)[:1], Callable(2), Callable(3))]
    rules = [eval(f"lambda scores: scores / scores.max() * {factor}") for factor in (1, 0.5)]
    shown += [AddKeepProbability(rule, keep_prob=0.5) for rule in rules]
    for function in (helper, scored):
        monkeypatch.setitem(SCORES, "mine", function)
        shown.append(repr(AddScore("mine")))
    assert len({repr(one) for one in shown}) == len(shown)
    assert repr(AddScore(scored)) == repr(AddScore(scored))
    assert repr(AddScore(Callable(object()))) != repr(AddScore(Callable(object())))
