"""What every module that drops edges must do: the kind of graph that goes in comes out, thinned as the core says."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import ToUndirected
from torch_geometric.typing import WITH_TORCH_SPARSE, SparseTensor
from torch_geometric.utils import to_edge_index

from tadropedge import Dropping, Graph, TadropedgeError
from tadropedge.pyg import DropEdge
from tadropedge.testing.graphs import path, two_cliques, union

LAYOUTS = {"csr": torch.sparse_csr, "csc": torch.sparse_csc, "coo": torch.sparse_coo}
RELATION = ("node", "to", "node")
KINDS = (
    "edge_index",
    "int32",
    "EdgeIndex",
    *LAYOUTS,
    pytest.param("SparseTensor", marks=pytest.mark.skipif(not WITH_TORCH_SPARSE, reason="torch-sparse is missing")),
    "Data",
    "Data with adj_t",
    "HeteroData",
    "Batch",
)
METHODS: tuple[str | Dropping, ...] = (
    "original",
    *(f"dropedge@0.7{use}" for use in ("", ":weighted", ":expected", ":connected", ":exact", ":unbiased")),
    *(f"degree-proportional@0.7{use}" for use in ("", ":weighted", ":expected", ":pruned", ":connected", ":unbiased")),
    "degree-proportional@0.7:expected:exact",
    "cosine-cdf@0.8:connected:exact",
)

PARTS = two_cliques(4), path(4)  # a Batch has them one by one
WHOLE = union(*PARTS)
N = WHOLE.num_nodes


def arcs_of(graph: Graph) -> Tensor:
    """Both directions of every edge and a self-loop, sorted by their sources."""
    arcs = torch.cat((graph.pairs, graph.pairs.flip(0), torch.full((2, 1), graph.num_nodes - 1)), dim=1)
    return arcs[:, (arcs[0] * graph.num_nodes + arcs[1]).argsort()]


ARCS = arcs_of(WHOLE)
FEATURES = torch.rand(N, 3, generator=torch.Generator().manual_seed(0))
WEIGHTS = torch.rand(ARCS.shape[1], generator=torch.Generator().manual_seed(1), dtype=torch.float64)
WEIGHTS[2] = 0.0  # zero weights are weights


def matrix(layout: str, weight: Tensor | None) -> Any:
    """The ``adj_t`` that PyG's layers take: the entry in row i and column j is the arc from j to i."""
    values = torch.ones(ARCS.shape[1]) if weight is None else weight
    if layout == "SparseTensor":
        return SparseTensor(row=ARCS[1], col=ARCS[0], value=weight, sparse_sizes=(N, N))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls its CSR a beta
        found = torch.sparse_coo_tensor(ARCS.flip(0), values, (N, N), check_invariants=True).coalesce()
        return found if layout == "coo" else found.to_sparse(layout=LAYOUTS[layout])


def given(kind: str, weight: Tensor | None) -> tuple[Any, dict[str, Any]]:
    """The whole graph as one kind of adjacency, and what goes beside it in a call."""
    beside = {"x": FEATURES, "num_nodes": N}
    if kind in LAYOUTS or kind == "SparseTensor":
        return matrix(kind, weight), {"x": FEATURES}
    if kind in ("edge_index", "int32", "EdgeIndex"):
        plain = ARCS.int() if kind == "int32" else ARCS
        arcs = EdgeIndex(ARCS, sparse_size=(N, N), sort_order="row") if kind == "EdgeIndex" else plain
        return arcs, beside | ({} if weight is None else {"edge_weight": weight})
    if kind == "Data with adj_t":
        return Data(x=FEATURES, adj_t=matrix("csr", weight)), {}
    if kind == "Batch":
        inside = ARCS[0] < PARTS[0].num_nodes
        first, second = Data(x=FEATURES[:8], edge_index=ARCS[:, inside]), Data(x=FEATURES[8:])
        second.edge_index = ARCS[:, ~inside] - PARTS[0].num_nodes
        if weight is not None:
            first.edge_weight, second.edge_weight = weight[inside], weight[~inside]
        return Batch.from_data_list([first, second]), {}
    data: Any = Data(x=FEATURES) if kind == "Data" else HeteroData({"node": {"x": FEATURES}})
    store = data if kind == "Data" else data[RELATION]
    store.edge_index, store.edge_attr = ARCS, torch.arange(ARCS.shape[1])
    if weight is not None:
        store.edge_weight = weight
    return data, {}


def dense(returned: Any) -> tuple[Tensor, Tensor]:
    """Which arcs a returned graph has, bool ``[N, N]``, and what they weigh, float64 ``[N, N]``."""
    weight = None
    if isinstance(returned, Data | HeteroData):
        store = returned[RELATION] if isinstance(returned, HeteroData) else returned
        returned, weight = store.get("edge_index", store.get("adj_t")), store.get("edge_weight")
    if isinstance(returned, tuple):
        returned, _, weight = returned if len(returned) == 3 else (*returned, None)
    if isinstance(returned, SparseTensor) or returned.layout is not torch.strided:
        coo = isinstance(returned, Tensor) and returned.layout is torch.sparse_coo  # whose values PyG reads ungraded
        entries, weight = (returned.indices(), returned.values()) if coo else to_edge_index(returned)
        returned = entries.flip(0)
    source, target = returned.as_tensor().long() if isinstance(returned, EdgeIndex) else returned.long()
    present, values = torch.zeros(N, N, dtype=torch.bool), torch.zeros(N, N, dtype=torch.float64)
    present[source, target] = True
    values[source, target] = 1.0 if weight is None else weight.double()
    return present, values


def check_kind(graph: Any, returned: Any, has_weights: bool) -> None:
    """Assert that what came back is of the kind of what went in."""
    if isinstance(graph, Data | HeteroData):
        assert type(returned) is type(graph)
        assert returned is not graph
        before, after = (one[RELATION] if isinstance(one, HeteroData) else one for one in (graph, returned))
        names, arcs = set(after.keys()), after.num_edges
        assert names == set(before.keys()) | ({"edge_weight"} if has_weights and "edge_index" in names else set())
        assert all(after[name].shape[0] == arcs for name in names & {"edge_attr", "edge_weight"})
        return
    if isinstance(graph, EdgeIndex) or (isinstance(graph, Tensor) and graph.layout is torch.strided):
        assert isinstance(returned, tuple)
        assert len(returned) == 2 + has_weights
        adjacency, mask = returned[:2]
        assert (mask.dtype, mask.shape) == (torch.bool, ARCS.shape[1:])
        assert torch.equal(adjacency.long(), ARCS[:, mask])
        assert all(weight.shape[0] == adjacency.shape[1] for weight in returned[2:])
        returned = adjacency
    assert type(returned) is type(graph)
    if isinstance(graph, Tensor):
        assert (returned.dtype, returned.layout, returned.device) == (graph.dtype, graph.layout, graph.device)


@pytest.mark.filterwarnings("ignore::tadropedge.EqualScoresWarning")
class DropEdgeContract:
    """Subclass it with the ``door``, a class or a function ``door(method, **settings)``, and the ``methods`` to try.

    A score, rule, use or option of your own inherits its tests through the method that names it::

        class TestStrength(DropEdgeContract):
            methods = ("strength-proportional@0.7", Dropping(score=strength, rule="cdf", keep_ratio=0.8))
    """

    door: Callable[..., Any] = DropEdge
    methods: tuple[str | Dropping, ...] = METHODS

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Every test is run with all kinds and all methods that it asks for."""
        if "kind" in metafunc.fixturenames:
            metafunc.parametrize("kind", KINDS)
        if "method" in metafunc.fixturenames:
            metafunc.parametrize("method", self.methods, ids=str)

    def made(self, method: str | Dropping, training: bool = True, **settings: Any) -> Any:
        """A door, in training or in evaluation."""
        return type(self).door(method, **{"seed": 3, **settings}).train(training)

    def expected(self, method: str | Dropping, weight: Tensor | None, epoch: int, training: bool) -> Any:
        """What the core says of the same graph: which arcs there are, and what they weigh."""
        graph = Graph.from_edge_index(ARCS, N, weight)
        plan = Dropping.parse(method).plan(graph, features=FEATURES)
        kept, factor = plan.draw(3, epoch, training=training)
        mask = torch.ones(ARCS.shape[1], dtype=torch.bool) if kept is None else graph.to_arcs(kept, loops=True)
        values = torch.ones(ARCS.shape[1], dtype=torch.float64) if weight is None else weight
        values = values if factor is None else values * graph.to_arcs(factor, loops=1.0)
        return dense((ARCS[:, mask], mask, values[mask]))

    @pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
    def test_the_same_kind_with_what_the_core_draws(self, kind: str, method: str | Dropping, weighted: bool) -> None:
        weight = WEIGHTS if weighted else None
        has_weights = weighted or Dropping.parse(method).weighs
        for training in (True, False):
            door = self.made(method, training)
            for epoch in (0, 1):
                graph, beside = given(kind, None if weight is None else weight.clone())
                before, _ = given(kind, weight)
                returned = door(graph, **beside)
                present, values = dense(returned)
                there, worth = self.expected(method, weight, epoch if training else 0, training)
                assert torch.equal(present, there)
                assert torch.allclose(values, worth, atol=1e-6)
                check_kind(graph, returned, has_weights)
                assert all(torch.equal(*pair) for pair in zip(dense(graph), dense(before), strict=True))
                assert not isinstance(graph, Data) or list(graph.keys()) == list(before.keys())

    def test_both_directions_of_a_relation_have_one_fate(self, method: str | Dropping) -> None:
        data = HeteroData({"a": {"x": FEATURES[:6]}, "b": {"x": FEATURES[6:]}})
        generator = torch.Generator().manual_seed(4)
        ends = torch.randint(6, (2, 20), generator=generator)
        data["a", "to", "b"].edge_index = ends.unique(dim=1)
        data["a", "to", "b"].edge_weight = torch.rand(ends.unique(dim=1).shape[1], generator=generator) + 0.1
        data = ToUndirected()(data)
        for training in (True, False):
            thin = self.made(method, training)(data)
            there, back = thin["a", "to", "b"], thin["b", "rev_to", "a"]
            assert torch.equal(there.edge_index, back.edge_index.flip(0))
            assert torch.allclose(there.edge_weight, back.edge_weight)

    def test_each_call_in_training_is_an_epoch(self, method: str | Dropping) -> None:
        door, seen = self.made(method), []
        for epoch in range(3):
            assert door.epoch == epoch
            seen.append(dense(door(ARCS, x=FEATURES, num_nodes=N)))
        door.eval()(ARCS, x=FEATURES, num_nodes=N)
        assert door.epoch == 3
        door.train().set_epoch(1)
        for _ in range(2):
            again = dense(door(ARCS, x=FEATURES, num_nodes=N))
            assert all(torch.equal(one, other) for one, other in zip(again, seen[1], strict=True))

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda door: pickle.loads(pickle.dumps(door)), None])
    def test_copies_and_the_state_go_on_where_it_stands(
        self, method: str | Dropping, copied: Callable[[Any], Any] | None
    ) -> None:
        if callable(getattr(method, "score", None)) and copied not in (copy.copy, copy.deepcopy):
            copied = None  # a function within a test cannot be pickled
        door = self.made(method)
        door(ARCS, x=FEATURES, num_nodes=N)
        if copied is None:
            other = self.made(method, seed=77)
            other.load_state_dict(door.state_dict())
        else:
            other = copied(door)
        for _ in range(2):
            one, two = (dense(each(ARCS, x=FEATURES, num_nodes=N)) for each in (door, other))
            assert all(torch.equal(*pair) for pair in zip(one, two, strict=True))

    def test_views_of_one_step(self, kind: str) -> None:
        graph, beside = given(kind, None)
        door, other = self.made("dropedge@0.5"), self.made("dropedge@0.5")
        views = [dense(view)[0] for view in door.views(graph, 3, **beside)]
        assert door.epoch == 1
        assert torch.equal(views[0], dense(other(graph, **beside))[0])
        assert len({view.numpy().tobytes() for view in views}) == 3

    def test_gradients_reach_the_weights(self, kind: str, method: str | Dropping) -> None:
        weight = WEIGHTS.clone().requires_grad_()
        graph, beside = given(kind, weight)
        (dense(self.made(method)(graph, **beside))[1] ** 2).sum().backward()
        assert weight.grad is not None
        _, worth = self.expected(method, WEIGHTS, 0, training=True)
        chosen = worth[ARCS[0], ARCS[1]]
        assert torch.allclose(weight.grad[WEIGHTS > 0], (2 * chosen**2 / WEIGHTS)[WEIGHTS > 0])

    def test_graphs_without_edges(self, method: str | Dropping) -> None:
        none, loops = torch.zeros(2, 0, dtype=torch.int64), torch.arange(3).expand(2, 3)
        for arcs in (none, loops):
            for training in (True, False):
                adjacency, mask, *_ = self.made(method, training)(arcs, x=FEATURES[:3], num_nodes=3)
                assert torch.equal(adjacency, arcs)
                assert bool(mask.all())

    def test_bad_input_is_one_line(self, method: str | Dropping) -> None:
        for arcs, weight in ((ARCS, WEIGHTS[1:]), (ARCS, -WEIGHTS), (ARCS.float(), None), (ARCS.t(), None)):
            if method == "original" and weight is not None and len(weight) == len(WEIGHTS):
                continue  # it looks at no weights
            with pytest.raises(TadropedgeError) as caught:
                self.made(method)(arcs, weight, x=FEATURES, num_nodes=N)
            assert "\n" not in str(caught.value)
