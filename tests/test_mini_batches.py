"""Mini-batches by neighbour sampling: what they see and compute, and that the number of processes changes nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from contracts.networks import Largest
from graphs import ZOO
from sampled import KINDS, clusters, curves, prepared, take_part
from torch import multiprocessing
from typer.testing import CliRunner

from tadropedge import Graph, sample_edges, shift_operator
from tadropedge.cli import app
from tadropedge.errors import TadropedgeError
from tadropedge.neighbours.coins import PairCoins
from tadropedge.neighbours.plan import MiniBatches
from tadropedge.neighbours.sampler import NeighbourSampler
from tadropedge.neighbours.thinned import ThinnedGraph
from tadropedge.nn.network import Network, TrainingStep
from tadropedge.nn.own import own_network
from tadropedge.registry import NETWORKS
from tadropedge.shift import NORMALIZATIONS
from tadropedge.training.batch import Batch
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.laboratory import Laboratory
from tadropedge.training.mini_batches import SampledTraining
from tadropedge.training.model_file import NUMBERS
from tadropedge.training.ranks import Ranks

pytestmark = pytest.mark.usefixtures("one_thread")

KARATE = ZOO["karate"]
LAYERED = [name for name, network in NETWORKS.items() if network.hops is not Network.hops]
METHODS = ["original", "dropedge", "cdf", "degree-proportional", "dropedge:unbiased", "degree-proportional:unbiased"]


def probabilities(graph, least=0.3):
    return least + (1 - least) * torch.rand(
        graph.num_edges, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    )


def sampler(graph, prob=None, hops=(1, 0), fanout=(-1, -1), seed=3, **settings):
    coins = PairCoins(None if prob is None else prob[None], seed)
    thinned = ThinnedGraph(graph, coins, whole_degrees=settings.get("unbiased", False))
    return NeighbourSampler(thinned, hops, fanout, **settings)


def pairs_of(graph, batch, block):
    """The ends in the whole graph of the edges of a block."""
    ends = batch.nodes[block.row[block.edge]], batch.nodes[block.col[block.edge]]
    return {tuple(sorted(pair)) for pair in torch.stack(ends, dim=1).tolist()}


def test_every_full_batch_network_can_be_sampled():
    whole = {"ptdnet", "neuralsparse"}  # which learn their edges from all of them
    samplers = {name for name, network in NETWORKS.items() if network.sampled}
    ours = {name for name, one in NETWORKS.items() if one.level == "node" and not one.opaque}
    assert {*LAYERED} == ours - samplers - whole


# -- what a mini-batch sees ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("epoch", [0, 1, 7])
def test_a_mini_batch_sees_the_edges_that_the_whole_graph_keeps(epoch):
    prob = probabilities(KARATE)
    keep = sample_edges(prob, seed=3, epoch=epoch)
    kept = {tuple(pair) for pair in KARATE.pairs[:, keep].T.tolist()}
    seeds = torch.tensor([4, 33, 0])
    batch = sampler(KARATE, prob).sample(seeds, epoch)
    assert torch.equal(batch.nodes[:3], seeds)
    inner, outer = batch.blocks[1], batch.blocks[0]
    assert pairs_of(KARATE, batch, inner) == {pair for pair in kept if {*pair} & {4, 33, 0}}
    reached = {*batch.nodes[: inner.num_cols].tolist()}
    assert reached == {4, 33, 0} | {node for pair in kept if {*pair} & {4, 33, 0} for node in pair}
    assert pairs_of(KARATE, batch, outer) == {pair for pair in kept if {*pair} & reached}


def test_coins_are_those_of_sample_edges_bit_for_bit():
    prob = torch.rand(300_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    some = torch.randperm(300_000, generator=torch.Generator().manual_seed(1))[:200_000]
    for seed, epoch in ((0, 0), (5, 3), (2**63 + 11, 1_000)):
        expected = sample_edges(prob, seed=seed, epoch=epoch)
        assert torch.equal(PairCoins(prob[None], seed).kept(some, epoch), expected[some])
    same = torch.full((78,), 0.5, dtype=torch.float64)
    every = torch.arange(78)
    assert torch.equal(PairCoins(same[None], 4).kept(every, 2), sample_edges(same, seed=4, epoch=2))


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalization", [name for name in NORMALIZATIONS if name != "spectral"])
def test_rows_of_the_operator_are_those_of_the_thinned_graph(normalization, weighted, unbiased):
    weight = torch.linspace(0.5, 2, KARATE.num_edges) if weighted else None
    graph = Graph.from_edge_index(KARATE.pairs, edge_weight=weight, num_nodes=34) if weighted else KARATE
    prob = probabilities(graph)
    keep = sample_edges(prob, seed=3, epoch=2)
    whole = shift_operator(graph, keep, normalization=normalization, unbiased=prob if unbiased else None).to_dense()
    batch = sampler(graph, prob, unbiased=unbiased).sample(torch.tensor([11, 0, 5]), 2)
    for block in batch.blocks:
        rows, cols = batch.nodes[: block.num_rows], batch.nodes[: block.num_cols]
        mine = torch.zeros(34, 34).index_put((rows[block.row], cols[block.col]), block.values(normalization))
        torch.testing.assert_close(mine[rows], whole[rows], atol=1e-6, rtol=1e-5)


def test_spectral_is_refused():
    block = sampler(KARATE).sample(torch.tensor([0]), 0).blocks[0]
    with pytest.raises(TadropedgeError, match="normalization 'spectral' divides by an eigenvalue"):
        block.values("spectral")


# -- sampled neighbours -------------------------------------------------------------------------------------------


def test_a_sample_is_of_kept_neighbours_and_of_the_size_asked_for():
    prob = probabilities(KARATE)
    keep = sample_edges(prob, seed=3, epoch=5)
    kept = {tuple(pair) for pair in KARATE.pairs[:, keep].T.tolist()}
    degrees = torch.bincount(KARATE.pairs[:, keep].flatten(), minlength=34)
    batch = sampler(KARATE, prob, fanout=(3, 2)).sample(torch.tensor([0, 33, 2, 11]), 5)
    for block, most in zip(batch.blocks, (2, 3), strict=True):
        assert pairs_of(KARATE, batch, block) <= kept
        taken = torch.bincount(block.row[block.edge], minlength=block.num_rows)
        assert torch.equal(taken, degrees[batch.nodes[: block.num_rows]].clamp_max(most))
        ends = list(zip(block.row.tolist(), block.col.tolist(), strict=True))
        assert len({*ends}) == len(ends)


def test_what_a_node_samples_does_not_depend_on_its_batch():
    prob = probabilities(KARATE)
    whole = sampler(KARATE, prob, hops=[0], fanout=[3]).sample(torch.arange(34), 4)
    alone = sampler(KARATE, prob, hops=[0], fanout=[3])
    for node in (0, 2, 33):
        mine = alone.sample(torch.tensor([node]), 4)
        block = whole.blocks[0]
        expected = {*whole.nodes[block.col[block.row == node]].tolist()}
        assert {*mine.nodes.tolist()} == expected
    assert {*alone.sample(torch.tensor([33]), 5).nodes.tolist()} != {
        *alone.sample(torch.tensor([33]), 6).nodes.tolist()
    }


def test_a_sampled_product_is_right_on_average():
    x = torch.randn(34, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = (shift_operator(KARATE).to_dense().double() @ x)[[0, 33]]
    draws = []
    for epoch in range(1_500):
        batch = sampler_cached().sample(torch.tensor([0, 33]), epoch)
        block = batch.blocks[0]
        operator = torch.zeros(2, block.num_cols, dtype=torch.float64)
        operator.index_put_((block.row, block.col), block.values("gcn").double())
        draws.append(operator @ x[batch.nodes])
    found = torch.stack(draws)
    error = found.std(dim=0) / len(draws) ** 0.5
    assert ((found.mean(dim=0) - expected).abs() < 4.5 * error).all()


@cache
def sampler_cached():
    return sampler(KARATE, hops=[0], fanout=[4])


# -- what a mini-batch computes -----------------------------------------------------------------------------------


def whole_logits(task, architecture, trial, course, epoch):
    """Those of the training pass on the thinned graph, at the start, as the full-batch trainer computes them."""
    batch = Batch(task, architecture, [trial], [0], course)
    at = torch.tensor(epoch)
    keeps = batch.coins.keeps(at)
    step = TrainingStep(
        x=batch.learning.x, nodes=batch.learning.masks[0], keeps=keeps, draws=batch.draws, noise=batch.noise, epoch=at,
        factors=batch.coins.factors(keeps), inside=batch.coins.inside,
    )  # fmt: skip
    return batch.network.training(batch.state, step)[0]


@pytest.mark.parametrize("name", LAYERED)
@pytest.mark.parametrize("method", METHODS)
def test_outputs_are_those_of_the_whole_graph(name, method, device):
    given = prepared(name, method, data=clusters().to(device))
    expected = whole_logits(*given, epoch=4)
    mine = SampledTraining(*given, plan=MiniBatches(size=7))
    mine.epoch += 4
    seeds = torch.tensor([3, 150, 77, 12, 60], device=device)
    torch.testing.assert_close(mine.logits(seeds), expected[:, seeds], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["gcn", "incepgcn", "gcnii", "gat"])
@pytest.mark.parametrize(
    ("method", "per_layer"),
    [("cdf", True), ("dropedge:unbiased", True), ("cdf:nested", False), ("cdf:unbiased:nested", False)],
)
def test_outputs_of_layers_with_subgraphs_of_their_own_are_those_of_the_whole_graph(name, method, per_layer):
    given = prepared(name, method, per_layer=per_layer, layers=4)
    expected = whole_logits(*given, epoch=2)
    mine = SampledTraining(*given, plan=MiniBatches(size=7))
    mine.epoch += 2
    seeds = torch.tensor([0, 99, 178])
    torch.testing.assert_close(mine.logits(seeds), expected[:, seeds], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", LAYERED)
def test_steps_on_all_training_nodes_are_those_of_the_full_batch(name):
    given = prepared(name, "cdf:unbiased" if name == "gat" else "cdf", epochs=8, **_norm(name))
    full = Batch(given[0], given[1], [given[2]], [0], given[3]).run()[0]
    mine = SampledTraining(*given, plan=MiniBatches(size=10_000)).run()
    for curve in ("train_loss", "val_loss", "val_accuracy", "test_accuracy"):
        np.testing.assert_allclose(getattr(mine, curve), getattr(full, curve), atol=1e-5)


def _norm(name):
    return {"self_weight": True} if name in ("gcn", "jknet", "resgcn") else {}


def test_expected_is_evaluated_on_weighted_edges_as_in_the_full_batch():
    given = prepared("gcn", "cdf:expected", epochs=5)
    full = Batch(given[0], given[1], [given[2]], [0], given[3]).run()[0]
    mine = SampledTraining(*given, plan=MiniBatches(size=10_000)).run()
    np.testing.assert_allclose(mine.val_loss, full.val_loss, atol=1e-5)


def test_sparse_features_are_those_of_dense_ones():
    dense = replace(clusters(), features=clusters().features.relu())
    sparse = replace(dense, features=dense.features.to_sparse_csr())
    losses = []
    for data in (dense, sparse):
        training = SampledTraining(*prepared("sage", "cdf", data=data), plan=MiniBatches(size=6, fanout=(4, 3, 2)))
        losses.append(training.run().train_loss)
    np.testing.assert_allclose(*losses, atol=1e-5)


@pytest.mark.parametrize("name", LAYERED)
def test_evaluation_in_pieces_is_that_of_the_whole_graph(name):
    training = SampledTraining(*prepared(name, "cdf"), plan=MiniBatches(size=6, evaluate=13))
    training.run_epoch(evaluate=False)
    found = training.evaluation()
    expected = training.network.evaluation(training.state, training.looking.x, training.epoch)
    judged = (training.looking.masks[1] + training.looking.masks[2])[0] > 0
    assert 0 < int(judged.sum()) < len(judged)
    torch.testing.assert_close(found[:, judged], expected[:, judged], atol=1e-5, rtol=1e-5)


def test_an_epoch_sees_every_training_node_once_in_an_order_of_its_own():
    training = SampledTraining(*prepared("gcn", "dropedge"), plan=MiniBatches(size=7))
    first = training.steps()
    assert [len(one) for one in first[:-1]] == [7] * (len(first) - 1)
    assert torch.equal(torch.cat(list(first)).sort().values, training.training)
    training.epoch += 1
    assert not torch.equal(torch.cat(list(training.steps())), torch.cat(list(first)))


def test_no_mask_of_all_edges_is_made():
    nodes, near = 400, torch.arange(1, 21)
    source = torch.arange(nodes).repeat_interleave(20)
    graph = Graph.from_edge_index(torch.stack((source, (source + near.repeat(nodes)) % nodes)))  # M = 20 N, degree 40
    draw = sampler(graph, probabilities(graph), fanout=(2, 2))
    assert graph.num_edges == 8_000 == draw.thinned.coins.prob.numel()
    draw.sample(torch.tensor([7]), 0)  # the pattern is made once
    with Largest() as largest:
        batch = draw.sample(torch.tensor([0, 200]), 1)
        batch.blocks[0].values("gcn")
    rows = 2 * (1 + 2) * (1 + 2) * 41  # those of all nodes that it can reach, read whole
    assert largest.size <= rows < graph.num_edges


@pytest.mark.parametrize("name", ["gcn", "gat", "sage"])
def test_it_learns_from_few_neighbours(name):
    laboratory = Laboratory(clusters(), Architecture(name, 2, 16), 25)
    outcome = laboratory.train_sampled(Trial("dropedge", seed=1), MiniBatches(size=5, fanout=(5, 3)))
    assert outcome.train_loss[-1] < 0.7 * outcome.train_loss[0]
    assert not outcome.failed


def test_batch_norm_learns_on_one_process():
    laboratory = Laboratory(clusters(), Architecture("gcn", 2, 16), 15)
    outcome = laboratory.train_sampled(Trial.of("dropedge", batch_norm=True), MiniBatches(size=7, fanout=(5, 3)))
    assert outcome.train_loss[-1] < 0.8 * outcome.train_loss[0]  # the last step of an epoch has one node


# -- several processes --------------------------------------------------------------------------------------------


def test_losses_are_the_same_with_one_two_and_four_processes(tmp_path):
    alone = np.stack([curves(*kind) for kind in KINDS])
    multiprocessing.spawn(take_part, (str(tmp_path),), nprocs=4)
    for count in (2, 4):
        for rank in range(count):
            np.testing.assert_allclose(np.load(tmp_path / f"{count}-{rank}.npy"), alone, atol=1e-5)
            assert not np.array_equal(alone[0], alone[1])


# -- the command --------------------------------------------------------------------------------------------------


def test_the_command_trains_by_mini_batches_and_saves_the_model(tmp_path):
    words = ["train", "clusters", "--method", "dropedge", "--epochs", "3", "--hidden", "8", "--json"]
    sampled = ["--mini-batch", "4", "--fanout", "-1,3", "--evaluate-nodes", "50", "--out", str(tmp_path / "model")]
    ended = CliRunner().invoke(app, words + sampled)
    assert ended.exit_code == 0, ended.output
    told = json.loads(ended.stdout)
    assert 0 < told["train_loss"] < 5
    assert (tmp_path / "model" / NUMBERS).exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--fanout 3", "--fanout belongs to --mini-batch N, which is missing, got '3'"),
        ("--evaluate-nodes 3", "--evaluate-nodes belongs to --mini-batch N, which is missing, got 3"),
        ("--mini-batch 4 --fanout 3;2", "--fanout must be whole numbers such as 15,10 (-1: all neighbours), got '3;2'"),
        ("--mini-batch 4 --fanout 0", "--fanout must be whole numbers of at least 1, or -1 for all neighbours, got 0"),
        ("--mini-batch 4 --batch-size 2", "--batch-size and --mini-batch exclude each other, got 2 and 4"),
        ("--mini-batch 0", "--mini-batch must be a whole number of at least 1, got 0"),
    ],
)
def test_the_command_refuses_in_one_line(words, said):
    ended = CliRunner().invoke(app, ["train", "clusters", *words.split()])
    assert said in str(ended.exception)


# -- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        ("dropedge:connected", {}, "the option connected looks at all edges in every epoch"),
        ("dropedge:exact", {}, "the option exact looks at all edges in every epoch"),
        ("graphsage", {}, "mini_batch cannot be used with graphsage, which samples neighbours in its own way"),
        ("ptdnet", {}, "mini_batch cannot be used with ptdnet, which looks at the whole graph"),
        ("dropedge", {"batch_size": 5}, "batch_size=5 and mini_batch exclude each other"),
        ("dropedge", {"normalization": "spectral"}, "normalization 'spectral' divides by an eigenvalue"),
    ],
)
def test_what_mini_batches_cannot_do_is_refused(method, settings, words):
    laboratory = Laboratory(clusters(), Architecture("gcn", 2, 8), 2)
    with pytest.raises(TadropedgeError, match=words):
        laboratory.train_sampled(Trial.of(method, **settings), MiniBatches(size=5))


def test_an_own_module_is_refused():
    name = own_network(lambda num_features, num_classes: torch.nn.Linear(num_features, num_classes), "mine:make")
    try:
        laboratory = Laboratory(clusters(), Architecture(name, 2, 8), 2)
        with pytest.raises(TadropedgeError, match="is your own module: its layers are not seen"):
            laboratory.train_sampled(Trial("dropedge"), MiniBatches(size=5))
    finally:
        del NETWORKS[name]


def test_batch_norm_of_several_processes_is_refused():
    laboratory = Laboratory(clusters(), Architecture("gcn", 2, 8), 2)
    with pytest.raises(TadropedgeError, match="batch_norm cannot be used by 2 processes"):
        laboratory.train_sampled(Trial.of("cdf", batch_norm=True), MiniBatches(size=5), ranks=Ranks(0, 2))


def test_a_fanout_that_does_not_fit_the_network_is_refused():
    laboratory = Laboratory(clusters(), Architecture("gcn", 3, 8), 2)
    with pytest.raises(TadropedgeError, match=r"fanout has 2 numbers \(15,10\), but the network reaches 3 hops"):
        laboratory.train_sampled(Trial("cdf"), MiniBatches(size=5, fanout=(15, 10)))


def test_a_training_pass_that_selects_is_refused():
    laboratory = Laboratory(clusters(), Architecture("gcn", 2, 8), 2, selection="training")
    with pytest.raises(TadropedgeError, match="selection 'training' needs the validation loss of the training pass"):
        laboratory.train_sampled(Trial("cdf"), MiniBatches(size=5))
