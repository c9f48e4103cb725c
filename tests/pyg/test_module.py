"""``DropEdge`` as a module: its arguments, its seed, and what a call makes of weights, probabilities and pairs."""

import gc
import inspect
import weakref

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data, HeteroData, TemporalData
from torch_geometric.data.hypergraph_data import HyperGraphData

from tadropedge import Dropping, Graph, TadropedgeError, sample_edges
from tadropedge.pyg import DropEdge, TADropEdge, exclude_edges
from tadropedge.testing.graphs import ZOO

GRAPH = ZOO["karate"]
ARCS = torch.cat((GRAPH.pairs, GRAPH.pairs.flip(0)), dim=1)
WEIGHT = 1 + torch.arange(78.0).repeat(2)
EIGHT = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]])


def mask_of(drop, *arguments, **beside):
    return drop(*(arguments or (ARCS,)), **beside)[1]


# -- arguments ------------------------------------------------------------------------------------------------


def test_it_has_eight_parameters_of_which_one_is_positional():
    parameters = inspect.signature(DropEdge).parameters
    assert list(parameters) == ["method", "p", "keep_prob", "keep_ratio", "seed", "weight", "exclude", "settings"]
    assert [name for name, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD] == ["method"]


@pytest.mark.parametrize("share", [0.3, 0, 1, np.float32(0.5), np.float64(0.25)])
@pytest.mark.parametrize("door", [DropEdge, TADropEdge])
def test_a_positional_share_is_refused_and_both_meanings_are_spelled_out(door, share):
    with pytest.raises(TadropedgeError, match="two things") as caught:
        door(share)
    assert f"p={share}" in str(caught.value)
    assert f"keep_prob={share}" in str(caught.value)


@pytest.mark.parametrize(
    ("method", "given", "equal"),
    [
        ("dropedge", {}, {"keep_prob": 0.5}),
        ("dropedge", {"p": 0.2}, {"keep_prob": 0.8}),
        ("cdf", {"p": 0.2, "q": 2}, {"keep_prob": 0.8, "q": 2}),
        ("degree-cutoff", {}, {"keep_prob": 0.5}),
        ("degree-proportional", {"p": 0.2}, {"keep_ratio": 0.8}),  # rules without a keep_prob
        ("degree-proportional", {}, {"keep_ratio": 0.5}),
        ("dropsens-floor", {"p": 0.2}, {"keep_ratio": 0.8}),
        ("degree-proportional:weighted", {"p": torch.tensor(0.25)}, {"keep_ratio": 0.75}),
        (Dropping.parse("degree-proportional@0.3"), {}, None),
        ("original", {}, None),
    ],
)
def test_p_is_what_is_dropped_and_one_half_unless_said(method, given, equal):
    dropping = DropEdge(method, **given).dropping
    wanted = Dropping.parse(method) if equal is None else Dropping.parse(method, **equal)
    assert repr(dropping) == repr(wanted)


def test_the_default_of_the_paper():
    assert TADropEdge(keep_prob=0.7).dropping == Dropping.parse("cdf", keep_prob=0.7)
    assert isinstance(TADropEdge("degree-proportional@0.5"), DropEdge)


def test_the_ratio_may_be_a_function_of_the_epoch():
    drop, asked = DropEdge("degree-proportional", keep_ratio=lambda epoch: 0.2 + 0.1 * epoch, seed=1), []
    for epoch in range(4):
        asked.append(float(drop.probabilities(ARCS).mean()))
        plan = Dropping.parse("degree-proportional", keep_ratio=0.2 + 0.1 * epoch).plan(GRAPH)
        assert torch.equal(mask_of(drop)[:78], plan.sample(1, epoch))
    assert asked == pytest.approx([0.2, 0.3, 0.4, 0.5])


def test_it_prints_what_it_does():
    assert repr(DropEdge("cdf:connected", keep_ratio=0.9, q=3, seed=4)) == (
        "DropEdge('cdf@0.9:connected', seed=4, epoch=0, q=3)"
    )
    assert repr(DropEdge(keep_prob="trust", seed=4)) == "DropEdge('dropedge', keep_prob='trust', seed=4, epoch=0)"


# -- the seed -------------------------------------------------------------------------------------------------


def test_unset_seeds_are_drawn_from_torchs_generator():
    with torch.random.fork_rng():
        torch.manual_seed(3)
        first, second = DropEdge(), DropEdge()
        torch.manual_seed(3)
        again = DropEdge()
    assert first.seed == again.seed != second.seed
    assert torch.equal(mask_of(first), mask_of(again))
    assert not torch.equal(mask_of(first), mask_of(second))  # two modules are two views


def test_a_seed_of_ones_own_draws_nothing_from_torchs_generator():
    before = torch.get_rng_state()
    mask_of(DropEdge(seed=3))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("seed", [0, -1, 2**64 - 1, 2**63, np.int64(7)])
def test_any_word_of_64_bits_is_a_seed(seed):
    drop, other = DropEdge(seed=seed), DropEdge()
    prob = torch.full((78,), 0.5, dtype=torch.float64)
    assert torch.equal(mask_of(drop)[:78], sample_edges(prob, seed=int(seed), graph=GRAPH))
    other.load_state_dict(drop.state_dict())
    assert torch.equal(mask_of(drop), mask_of(other))


def test_epochs_are_counted_from_the_first_call_or_set():
    drop = DropEdge(seed=3)
    counted = [mask_of(drop) for _ in range(3)]
    drop.set_epoch(1)
    assert torch.equal(mask_of(drop), counted[1])
    assert torch.equal(mask_of(drop), counted[1])  # from now on the caller counts
    assert not torch.equal(counted[0], counted[1])


def test_a_refused_call_does_not_move_the_epoch():
    drop = DropEdge("cosine-cdf", keep_prob=0.5)
    for call in (lambda: drop(ARCS), lambda: drop(ARCS.t()), lambda: drop.views(ARCS, 2), lambda: drop.views(ARCS, 0)):
        with pytest.raises(TadropedgeError):
            call()
    assert drop.epoch == 0


# -- weights and probabilities --------------------------------------------------------------------------------


def test_the_second_argument_is_weights_and_never_probabilities():
    weight = torch.linspace(0, 1, 78).repeat(2)
    plain, (kept, mask, thin) = DropEdge(seed=1)(ARCS), DropEdge(seed=1)(ARCS, weight)
    assert torch.equal(plain[1], mask)
    assert torch.equal(kept, ARCS[:, mask])
    assert torch.equal(thin, weight[mask])


def test_weights_enter_the_score_and_zero_is_a_weight():
    weight = WEIGHT * (torch.arange(156) % 78 > 3)
    drop = DropEdge("degree-proportional", keep_ratio=0.5)
    wanted = Dropping.parse("degree-proportional@0.5").plan(Graph.from_edge_index(ARCS, 34, weight)).prob
    assert torch.equal(drop.probabilities(ARCS, edge_weight=weight)[:78], wanted)
    assert not torch.equal(drop.probabilities(ARCS), drop.probabilities(ARCS, edge_weight=weight))
    data, blind = (
        Data(edge_index=ARCS, edge_weight=weight),
        DropEdge("degree-proportional", keep_ratio=0.5, weight=None),
    )
    assert torch.equal(blind.probabilities(data), drop.probabilities(ARCS))


def test_weights_of_another_name_and_shape():
    data = Data(edge_index=ARCS, edge_attr=WEIGHT[:, None], num_nodes=34)
    thin = DropEdge("degree-proportional:unbiased", keep_ratio=0.5, seed=2, weight="edge_attr")(data)
    kept, _, wanted = DropEdge("degree-proportional:unbiased", keep_ratio=0.5, seed=2)(ARCS, WEIGHT)
    assert torch.equal(thin.edge_index, kept)
    assert torch.equal(thin.edge_attr, wanted[:, None])
    assert "edge_weight" not in thin
    assert DropEdge(seed=2)(ARCS, WEIGHT[:, None].int())[2].dtype == torch.int32


def test_a_use_that_weighs_writes_weights_in_training_and_in_evaluation():
    for method in ("degree-proportional:weighted", "degree-proportional:expected"):
        drop = DropEdge(method, keep_ratio=0.5).eval()
        kept, mask, weight = drop(ARCS)
        assert kept is ARCS
        assert bool(mask.all())
        assert torch.allclose(weight.double(), drop.probabilities(ARCS))
        assert len(drop.train()(ARCS)) == 3
        assert torch.allclose(drop.eval()(Data(edge_index=ARCS, edge_weight=WEIGHT)).edge_weight / WEIGHT,
                              drop.probabilities(ARCS, edge_weight=WEIGHT).float())  # fmt: skip


def test_given_probabilities_are_one_per_arc_or_an_attribute_of_data():
    prob = torch.linspace(0, 1, 78, dtype=torch.float64).repeat(2)
    mask = mask_of(DropEdge(seed=5), keep_prob=prob)
    assert torch.equal(mask[:78], sample_edges(prob[:78], seed=5, graph=GRAPH))
    data = Data(edge_index=ARCS, trust=prob, num_nodes=34)
    assert torch.equal(DropEdge(seed=5, keep_prob="trust")(data).edge_index, ARCS[:, mask])
    assert torch.equal(mask_of(DropEdge(seed=5), keep_prob=prob.float())[[0, 77]], torch.tensor([False, True]))
    drop = DropEdge("dropedge:weighted", keep_prob="trust")
    assert torch.allclose(drop(data).edge_weight.double(), prob)
    assert torch.equal(drop.probabilities(data), prob)
    one_way = torch.cat((prob[:78], torch.zeros(78)))  # an edge has the mean of its arcs
    assert torch.allclose(DropEdge().probabilities(ARCS, keep_prob=one_way), prob / 2)


# -- what is remembered of a graph ------------------------------------------------------------------------------


def counted():
    """A score that counts its calls."""
    calls = []

    def score(graph):
        calls.append(graph)
        return graph.pairs.sum(0).double() + 1

    return score, calls


def test_a_graph_is_scored_once_until_something_is_written():
    score, calls = counted()
    drop, arcs, weight = (
        DropEdge(Dropping(score=score, rule="proportional", keep_ratio=0.5)),
        ARCS.clone(),
        WEIGHT.clone(),
    )
    for _ in range(3):
        drop(arcs, weight)
    assert len(calls) == 1
    weight += 1
    drop(arcs, weight)
    assert len(calls) == 2
    arcs[:, :5] = arcs[:, 5:10].clone()
    assert torch.equal(drop.probabilities(arcs), drop.probabilities(arcs.clone()))
    assert len(calls) == 4
    drop.dropping = Dropping.parse("original")
    assert bool(drop.probabilities(arcs).min() == 1)


def test_what_is_written_without_being_counted_is_read_in_every_call():
    """Fused optimisers, and all that writes under inference mode, do not count."""
    drop, prob = DropEdge(seed=1), nn.Parameter(torch.full((156,), 0.5))
    optimizer = torch.optim.SGD([prob], lr=0.5, fused=True)
    drop(ARCS, keep_prob=prob)
    prob.grad = torch.full((156,), -1.0)
    optimizer.step()
    assert bool(mask_of(drop, keep_prob=prob).all())
    with torch.inference_mode():
        arcs = EIGHT.clone()
        scored = DropEdge("degree-proportional:weighted", keep_ratio=0.5)
        before = scored(arcs)[2]
        arcs[:, :4] = torch.tensor([[3, 3, 0, 1], [0, 1, 3, 3]])
        assert not torch.equal(before, scored(arcs)[2])
        assert torch.equal(scored(arcs)[2], scored(arcs.clone())[2])


def test_nothing_of_the_users_is_kept_alive():
    drop, arcs = DropEdge("degree-proportional", keep_ratio=0.5), ARCS.clone()
    drop(arcs)
    alive = weakref.ref(arcs)
    del arcs
    gc.collect()
    assert alive() is None


def test_one_module_serves_graphs_with_common_tensors():
    drop = DropEdge(seed=3)
    drop.set_epoch(0)
    for ids in (None, torch.arange(34) + 7, torch.arange(34).flip(0)):
        for prob in (torch.full((156,), 0.3), torch.full((156,), 0.6)):
            pairs = ARCS if ids is None else ids[ARCS]
            wanted = sample_edges(prob, seed=3, pairs=pairs)
            for _ in range(2):
                assert torch.equal(mask_of(drop, keep_prob=prob, node_id=ids), wanted)


# -- other arguments of a call --------------------------------------------------------------------------------


def test_nodes_without_edges_are_counted_by_their_features():
    x = torch.rand(40, 3, generator=torch.Generator().manual_seed(0))
    drop = DropEdge("cosine-cdf", keep_prob=0.3)
    assert torch.equal(drop.probabilities(ARCS, x=x), drop.probabilities(Data(edge_index=ARCS, x=x)))


def test_two_kinds_of_nodes_have_coins_by_order():
    arcs = torch.cartesian_prod(torch.arange(8), torch.arange(8)).t()
    drop = DropEdge(p=0.5, seed=0)
    masks = torch.stack([mask_of(drop, arcs, num_nodes=(8, 8)) for _ in range(300)]).view(300, 8, 8).double() - 0.5
    off = ~torch.eye(8, dtype=torch.bool)
    assert abs(float((masks * masks.mT)[:, off].mean())) < 0.02  # 0.25 if (3, 7) and (7, 3) were one edge
    assert abs(float(masks[:, ~off].mean())) < 0.05  # and there are no self-loops
    drop.set_epoch(1)
    assert torch.equal(mask_of(drop, arcs, num_nodes=(8, 11)).view(8, 8), masks[1] > 0)


def test_pairs_that_are_excluded_send_no_messages_in_training():
    asked = ARCS[:, :5].flip(0)
    data = Data(edge_index=ARCS, edge_label_index=asked, num_nodes=34)
    for drop, given in (
        (DropEdge("original", exclude=asked), ARCS),
        (DropEdge("original", exclude="edge_label_index"), data),
    ):
        thin = drop(given)
        assert torch.equal(thin[0] if given is ARCS else thin.edge_index, exclude_edges(ARCS, asked)[0])
        whole = drop.eval()(given)
        assert (whole[0] if given is ARCS else whole.edge_index) is ARCS
    both = DropEdge(p=0.3, seed=1, exclude=asked)(ARCS)[1]
    assert torch.equal(both, DropEdge(p=0.3, seed=1)(ARCS)[1] & exclude_edges(ARCS, asked)[1])


def test_excluded_pairs_of_a_mini_batch_go_by_the_ids_of_its_nodes():
    n_id = torch.tensor([7, 3, 9, 5])
    batch = Data(edge_index=EIGHT, n_id=n_id, edge_label_index=torch.tensor([[3], [2]]))
    by_id = DropEdge("original", exclude=torch.tensor([[5], [9]]))(batch)
    assert torch.equal(by_id.edge_index, EIGHT[:, :6])
    assert torch.equal(DropEdge("original", exclude="edge_label_index")(batch).edge_index, EIGHT[:, :6])


def test_it_is_said_where_no_message_is_left():
    with pytest.warns(UserWarning, match="disjoint_train_ratio"):
        DropEdge("original", exclude=ARCS)(ARCS)


DATA = Data(edge_index=EIGHT, num_nodes=4)
BAD = {
    "list": (lambda: DropEdge()(EIGHT.tolist()), "must be a tensor"),
    "array": (lambda: DropEdge()(EIGHT.numpy()), "ndarray"),
    "floats": (lambda: DropEdge()(EIGHT.float()), "whole numbers"),
    "transposed": (lambda: DropEdge()(EIGHT.t()), r"\[8, 2\]"),
    "one row": (lambda: DropEdge()(EIGHT[0]), r"\[8\]"),
    "features first": (lambda: DropEdge()(torch.rand(4, 3), EIGHT), "whole numbers"),
    "list of graphs": (lambda: DropEdge()([DATA, DATA]), "must be a tensor"),
    "negative id": (lambda: DropEdge()(EIGHT - 1), "negative node id"),
    "few nodes": (lambda: DropEdge()(EIGHT, num_nodes=2), "num_nodes=2"),
    "three kinds": (lambda: DropEdge()(EIGHT, num_nodes=(4, 4, 4)), "num_nodes"),
    "few sources": (lambda: DropEdge()(EIGHT, num_nodes=(3, 4)), "source 3"),
    "weights as a list": (lambda: DropEdge()(EIGHT, [1.0] * 8), "edge_weight must"),
    "few weights": (lambda: DropEdge()(EIGHT, torch.ones(7)), "edge_weight has shape"),
    "attributes": (lambda: DropEdge()(EIGHT, torch.ones(8, 3)), "travel in a Data"),
    "mask as weights": (lambda: DropEdge()(EIGHT, torch.ones(8) > 0), "True and False"),
    "negative weights": (lambda: DropEdge()(EIGHT, -torch.ones(8)), r"at least 0.*abs\(\)"),
    "endless weights": (lambda: DropEdge()(EIGHT, torch.full((8,), torch.inf)), "finite"),
    "weights that are no numbers": (lambda: DropEdge()(EIGHT, torch.full((8,), torch.nan)), "nan"),
    "probabilities as weights of a score": (
        lambda: DropEdge("degree-cdf", keep_prob=0.5)(EIGHT, keep_prob=torch.ones(8)),
        "makes probabilities itself",
    ),
    "one probability": (lambda: DropEdge()(EIGHT, keep_prob=0.5), "keep_prob must be a tensor"),
    "few probabilities": (lambda: DropEdge()(EIGHT, keep_prob=torch.ones(3)), "8 entries"),
    "high probabilities": (lambda: DropEdge()(EIGHT, keep_prob=torch.full((8,), 1.5)), r"got 1.5.*ToUndirected"),
    "mask as probabilities": (lambda: DropEdge()(EIGHT, keep_prob=torch.ones(8) > 0), "True and False"),
    "probabilities of edges to the module": (lambda: DropEdge(keep_prob=torch.ones(8)), "in the call"),
    "probabilities by name of a score": (lambda: DropEdge("degree-cdf", keep_prob="trust"), "makes them itself"),
    "no such probabilities": (lambda: DropEdge(keep_prob="trust")(DATA), "no attribute 'trust'"),
    "attribute of an edge_index": (lambda: DropEdge(keep_prob="trust")(EIGHT), "give the Data"),
    "two budgets": (lambda: DropEdge(p=0.3, keep_prob=0.7), "leave p out"),
    "budget in the name": (lambda: DropEdge("dropedge@0.7", p=0.3), "leave p out"),
    "nothing to drop": (lambda: DropEdge("original", p=0.3), "drops nothing"),
    "percent": (lambda: DropEdge(p=30), "from 0 to 1"),
    "p per edge": (lambda: DropEdge(p=torch.ones(8)), "p must"),
    "ratio of an epoch": (lambda: DropEdge(keep_ratio=lambda epoch: 2.0)(EIGHT), "keep_ratio must"),
    "setting": (lambda: DropEdge("degree-cdf", keep_prob=0.5, q=7), "no setting 'q'"),
    "method": (lambda: DropEdge("degre-cdf", keep_prob=0.5), "did you mean 'degree-cdf'"),
    "score without a rule": (lambda: DropEdge("degree", keep_prob=0.5), "a rule is missing"),
    "seed": (lambda: DropEdge(seed=0.5), "seed must"),
    "epoch": (lambda: DropEdge().set_epoch(1.5), "epoch must"),
    "name of weights": (lambda: DropEdge(weight="strenght")(DATA), "no attribute 'strenght'"),
    "weights to the module": (lambda: DropEdge(weight=torch.ones(8)), "weight must name"),
    "excluded as rows": (lambda: DropEdge(exclude=EIGHT.t()), r"exclude.t\(\)"),
    "excluded by a wrong name": (lambda: DropEdge(exclude="edge_lable_index")(DATA), "edge_lable_index"),
    "excluded of an edge_index": (lambda: DropEdge(exclude="edge_label_index")(EIGHT), "give the Data"),
    "no features": (lambda: DropEdge("cosine-cdf", keep_prob=0.5)(EIGHT), "requires features"),
    "features as an array": (lambda: DropEdge("cosine-cdf", keep_prob=0.5)(EIGHT, x=np.ones((4, 2))), "x must be"),
    "features as a list": (
        lambda: DropEdge("cosine-cdf", p=0.5)(Data(edge_index=EIGHT, x=[1.0], num_nodes=4)),
        "features must be",
    ),
    "names as a list": (lambda: DropEdge()(Data(edge_index=EIGHT, num_nodes=4, n_id=[0, 1, 2, 3])), "n_id must"),
    "few ids": (lambda: DropEdge()(EIGHT, node_id=torch.arange(2)), "names 2 nodes"),
    "ids as a list": (lambda: DropEdge()(EIGHT, node_id=[0, 1, 2, 3]), "node_id must"),
    "many matrices": (lambda: DropEdge()(torch.ones(2, 4, 4).to_sparse_csr()), r"\[2, 4, 4\]"),
    "blocks": (lambda: DropEdge()(torch.eye(4).to_sparse_bsr((2, 2))), "to_sparse_csr"),
    "weights beside a matrix": (lambda: DropEdge()(torch.eye(4).to_sparse(), torch.ones(4)), "has its weights"),
    "weights beside a Data": (lambda: DropEdge()(DATA, torch.ones(8)), "write edge_weight into it"),
    "no edges": (lambda: DropEdge()(Data(x=torch.ones(3, 1))), "expected a Data with an edge_index"),
    "events": (lambda: DropEdge()(TemporalData(src=EIGHT[0], dst=EIGHT[1], t=EIGHT[0])), "expected a Data"),
    "hypergraph": (lambda: DropEdge()(HyperGraphData(edge_index=EIGHT)), "expected a Data"),
    "no relation": (lambda: DropEdge()(HeteroData()), "HeteroData with relations"),
    "number of views": (lambda: DropEdge().views(EIGHT, 0), "n must"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(name):
    call, word = BAD[name]
    with pytest.raises(TadropedgeError, match=word) as caught:
        call()
    assert "\n" not in str(caught.value)
