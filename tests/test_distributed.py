"""A training that is spread over processes is that of one: masks bit for bit, losses to rounding."""

from __future__ import annotations

import numpy as np
import pytest
import spread
import torch

from tadropedge import Graph, TadropedgeError, sample_edges
from tadropedge.distributed.group import Group
from tadropedge.distributed.launch import ranks_told
from tadropedge.distributed.noise import SpreadDropout
from tadropedge.distributed.operators import SpreadSparse
from tadropedge.distributed.part import SpreadPart
from tadropedge.distributed.partition import HOW, cut_of, partition, work_of
from tadropedge.distributed.training import Keeping, check_spread, forget, prepare, spreads, train_spread
from tadropedge.nn import operators
from tadropedge.registry import NETWORKS
from tadropedge.sparse import Csr
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.noise import Dropout

pytestmark = pytest.mark.usefixtures("one_thread")
BACKBONES = ("gcn", "jknet", "incepgcn", "resgcn", "gcnii", "appnp", "sage", "gat", "mlp")
WAYS = {  # of dropping: by how many processes, the method, and whether operators are of the kept edges alone
    "whole": (4, "original", False),
    "dropping": (2, "dropedge", False),
    "unbiased": (4, "degree-proportional:unbiased", False),
    "compact": (4, "dropedge", True),
    "compact-unbiased": (2, "degree-proportional:unbiased", True),
}


@pytest.fixture(scope="module")
def crews():
    """Two processes and four, with gloo between them."""
    made = {size: spread.Crew(size) for size in (2, 4)}
    yield made
    for one in made.values():
        one.end()


@pytest.fixture(params=[2, 4])
def crew(request, crews):
    """Each of them."""
    return crews[request.param]


def reference(backbone, trial, settings):
    return spread.summary(spread.laboratory(backbone, **settings).train([trial], keep_state=True)[0])


def check_same(found, expected):
    """All curves to 1e-5, and the same model is kept."""
    assert set(found) == set(expected)
    for name, value in expected.items():
        if name == "state":
            for key, numbers in value.items():
                np.testing.assert_allclose(found["state"][key], numbers, atol=2e-4, err_msg=key)
        else:
            np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5, err_msg=name)


def trials():
    """Every backbone in every way, by two processes or by four."""
    for backbone in BACKBONES:
        for way, (size, method, compact) in WAYS.items():
            if backbone != "mlp" or way == "whole":
                trial = Trial(method, keep_prob=0.5, seed=3)
                yield pytest.param(size, backbone, trial, compact, id=f"{size}-{backbone}-{way}")


class TestOutcomes:
    @pytest.mark.parametrize(("size", "backbone", "trial", "compact"), list(trials()))
    def test_curves_are_those_of_one_process(self, crews, size, backbone, trial, compact):
        answers = crews[size].do(spread.outcome_job, backbone, trial, "multilevel", compact, {})
        expected = reference(backbone, trial, {})
        for answer in answers:  # every process knows the outcome
            check_same(answer, expected)

    @pytest.mark.parametrize(
        ("backbone", "trial", "settings"),
        [
            ("gcn", Trial.of("dropedge", batch_norm=True, self_weight=True), {}),
            ("mlp", Trial.of("original", batch_norm=True), {}),
            ("gat", Trial.of("dropedge", attention_dropout=0.4), {}),
            ("gcn", Trial("cdf:nested", keep_prob=0.4), {}),
            ("gcn", Trial("dropedge:expected", keep_prob=0.4), {}),
            ("gcn", Trial("dropedge", keep_prob=0.4), {"per_layer": True}),
            ("gcn", Trial("dropedge"), {"selection": "training", "measure": "macro-f1", "gradient_norms": True}),
            ("gcn", Trial("dropedge"), {"evaluate_every": 3, "measure": "roc-auc"}),
            ("gcnii", Trial("dropedge"), {"kind": "weighted"}),
            ("sage", Trial("dropedge:unbiased"), {"kind": "weighted"}),
            ("gcn", Trial("dropedge"), {"kind": "sparse"}),
        ],
        ids=lambda one: (
            None if isinstance(one, str) else "-".join(str(one.method if hasattr(one, "method") else one).split())
        ),
    )
    def test_options_are_those_of_one_process(self, crews, backbone, trial, settings):
        answers = crews[2].do(spread.outcome_job, backbone, trial, "random", False, settings)
        check_same(answers[-1], reference(backbone, trial, settings))

    @pytest.mark.parametrize("normalization", ["first-order", "gcn-residual", "random-walk", "laplacian"])
    def test_normalisations_are_those_of_one_process(self, crews, normalization):
        trial = Trial.of("dropedge", keep_prob=0.3, normalization=normalization)
        for compact in (False, True):
            (answer, *_) = crews[2].do(spread.outcome_job, "gcn", trial, "multilevel", compact, {"kind": "weighted"})
            check_same(answer, reference("gcn", trial, {"kind": "weighted"}))

    @pytest.mark.parametrize("backbone", BACKBONES)
    @pytest.mark.parametrize("method", ["original", "dropedge", "cdf:unbiased"])
    def test_one_process_needs_no_other(self, backbone, method, monkeypatch, device):
        method = "original" if backbone == "mlp" else method
        monkeypatch.setitem(operators.WORTH_COMPACTING, device.type, 0)
        trial, alone = Trial(method, keep_prob=0.5), Group(device=device)
        made = prepare(spread.laboratory(backbone), trial, 1, "auto", Keeping())
        check_same(spread.summary(train_spread(alone, made, Keeping())), reference(backbone, trial, {}))


class TestNoise:
    @pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
    def test_rows_have_the_coins_of_the_whole(self, device, rate):
        rates, seeds = torch.tensor([rate, 0.5], device=device), torch.tensor([3, 4], device=device)
        whole = Dropout(rates, seeds, torch.tensor(7, device=device))
        rows = torch.tensor([5, 2, 30], device=device)
        mine = SpreadDropout(whole, rows, rows + 1)
        x, part = (torch.ones(2, count, 9, device=device) for count in (40, 3))
        for layer in (0, 4):
            expected = whole(x, layer)[:, rows]
            assert torch.equal(mine(part, layer), expected)
            assert torch.equal(mine.drop(part, layer), expected)
            assert torch.equal(mine.rectified(part.clone(), torch.zeros(2, 9, device=device), layer), expected)
        assert torch.equal(mine.at(seeds * 0.1)(part, 0), whole.at(seeds * 0.1)(x, 0)[:, rows + 1])

    def test_gradients_are_dropped_alike(self, device):
        whole = Dropout(
            torch.tensor([0.5], device=device), torch.tensor([3], device=device), torch.tensor(7, device=device)
        )
        mine = SpreadDropout(whole, torch.arange(4, device=device), torch.arange(4, device=device))
        x = torch.randn(1, 4, 6, device=device, requires_grad=True)
        mine(x, 0).sum().backward()
        assert torch.equal(x.grad, mine(torch.ones_like(x), 0))


class TestMasks:
    @pytest.mark.parametrize(
        ("method", "per_layer"), [("dropedge", False), ("cdf:unbiased", True), ("cdf:nested", False)]
    )
    def test_every_process_keeps_what_one_would(self, crew, method, per_layer):
        laboratory = spread.laboratory("gcn", per_layer=per_layer)
        whole = prepare(laboratory, Trial(method, seed=5), 1, "random", Keeping())[1]
        answers = crew.do(spread.masks_job, method, "random", per_layer)
        seen = np.zeros(laboratory.dataset.graph.num_edges, dtype=int)
        for numbers, masks in answers:
            seen[numbers] += 1
            for epoch, found in enumerate(masks):
                if not per_layer:  # the coins of the public function, row by row
                    expected = [sample_edges(row, seed=5, epoch=epoch).numpy() for row in whole.rows[:, 0]]
                    for mine, all_pairs in zip(found, expected, strict=True):
                        np.testing.assert_array_equal(mine, all_pairs[numbers])
                for other_numbers, other_masks in answers:  # of a shared pair, both say the same
                    _, mine, theirs = np.intersect1d(numbers, other_numbers, return_indices=True)
                    for here, there in zip(found, other_masks[epoch], strict=True):
                        np.testing.assert_array_equal(here[mine], there[theirs])
        assert set(seen) == {1, 2}  # a pair is held by the processes of its ends


class TestCheckpoints:
    TRIAL = Trial.of("dropedge", keep_prob=0.5, batch_norm=True)

    def interrupted(self, folder, at=13):
        """A training of one process that ends in the middle, and where it would have ended."""

        def stop(epoch, epochs):
            if epoch == at:
                raise KeyboardInterrupt

        keeping = Keeping(folder=folder, every=5)
        made = prepare(spread.laboratory("gcn"), self.TRIAL, 1, "auto", Keeping())
        with pytest.raises(KeyboardInterrupt):
            train_spread(Group(), made, keeping, stop)
        return keeping, spread.summary(train_spread(Group(), made, Keeping()))

    def test_one_process_goes_on_bit_for_bit(self, tmp_path):
        keeping, expected = self.interrupted(tmp_path)
        made = prepare(spread.laboratory("gcn"), self.TRIAL, 1, "auto", keeping)
        assert made[0].epochs_done == 10
        found = spread.summary(train_spread(Group(), made, keeping))
        for name in spread.CURVES:
            np.testing.assert_array_equal(found[name], expected[name])
        for name, value in expected["state"].items():
            np.testing.assert_array_equal(found["state"][name], value)
        forget(keeping)
        assert list(tmp_path.iterdir()) == []

    def test_another_number_of_processes_goes_on(self, crew, tmp_path):
        _, expected = self.interrupted(tmp_path)
        for answer in crew.do(spread.resume_job, self.TRIAL, tmp_path):
            check_same(answer, expected)

    def test_that_of_another_training_is_not_used(self, tmp_path):
        keeping, _ = self.interrupted(tmp_path)
        others = (self.TRIAL.but(seed=9), self.TRIAL), (spread.laboratory("gcn"), spread.laboratory("gcn", layers=2))
        for trial, laboratory in zip(*others, strict=True):
            assert prepare(laboratory, trial, 1, "auto", keeping)[0].epochs_done == 0

    def test_a_damaged_one_is_refused(self, tmp_path):
        keeping, _ = self.interrupted(tmp_path)
        path = tmp_path / "checkpoint.safetensors"
        path.write_bytes(path.read_bytes()[:100])
        with pytest.raises(TadropedgeError, match=r"damaged .* delete it to train from the start"):
            prepare(spread.laboratory("gcn"), self.TRIAL, 1, "auto", keeping)


class TestExchange:
    @pytest.mark.parametrize("how", ["multilevel", "random"])
    def test_rows_arrive_and_gradients_return(self, crew, how):
        answers = crew.do(spread.exchange_job, how)
        held = np.concatenate([answer["nodes"] for answer in answers])
        times = np.bincount(held)  # how many processes hold a node
        assert (np.sort(np.concatenate([answer["nodes"][answer["own"]] for answer in answers])) == np.arange(200)).all()
        for answer in answers:
            rows = np.broadcast_to(answer["nodes"][:, None], (len(answer["nodes"]), 3))
            np.testing.assert_array_equal(answer["spread"], np.stack((rows, -rows)))
            own = answer["nodes"][answer["own"]]
            np.testing.assert_array_equal(answer["gradient"][0], np.broadcast_to(times[own][:, None], (len(own), 3)))
            asked = answer["asked"]
            np.testing.assert_array_equal(answer["thin"][:, asked], np.stack((rows, -rows))[:, asked])
            assert answer["sent"][1] < answer["sent"][0]


def test_a_process_that_does_not_answer_is_lost():
    crew = spread.Crew(2)
    told, silent = crew.do(spread.silent_job)
    crew.end()
    assert silent is None
    assert told.startswith("another process of this training is gone or does not answer (")
    assert "\n" not in told


def test_a_product_is_made_in_the_same_order_by_all_processes():
    """Else one would fetch signals of another width than its neighbours send."""
    few = torch.tensor([0, 1]), torch.tensor([0])
    sparse = SpreadSparse(Csr(*few, num_cols=1000), torch.ones(1, 1))
    assert not sparse.narrows(torch.ones(1, 1000, 4), 512)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"WORLD_SIZE": "abc"}, "WORLD_SIZE must be a whole number, as torchrun sets it, got 'abc'"),
        ({"MASTER_PORT": "p"}, "MASTER_PORT must be a whole number"),
        ({"RANK": "5"}, "RANK must be below WORLD_SIZE, 2, got 5"),
    ],
)
def test_an_environment_that_torchrun_did_not_make_is_refused(told, words, monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": "29500", **told}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TadropedgeError, match=words):
        ranks_told()


class TestPartition:
    @pytest.mark.parametrize("how", HOW)
    @pytest.mark.parametrize("parts", [1, 2, 3, 7])
    def test_every_part_has_nodes_and_about_the_same_work(self, how, parts):
        if how == "metis":
            pytest.importorskip("pymetis")
        graph = spread.dataset().graph
        owner = partition(graph, parts, how, seed=4)
        assert owner.unique().tolist() == list(range(parts))
        load = torch.zeros(parts, dtype=torch.int64).index_add_(0, owner, work_of(graph))
        assert float(load.max()) < 1.35 * float(load.sum()) / parts
        assert torch.equal(owner, partition(graph, parts, how, seed=4))

    @pytest.mark.parametrize("parts", [2, 7])
    @pytest.mark.parametrize("kind", ["triangles", "triangles and lonely nodes", "one edge", "no edges", "star"])
    def test_our_own_takes_components_and_nodes_without_neighbours(self, kind, parts):
        base = 3 * torch.arange(50)
        triangles = torch.cat([torch.stack((base + i, base + j)) for i, j in ((0, 1), (1, 2), (0, 2))], dim=1)
        edges = {
            "one edge": torch.tensor([[3], [7]]),
            "no edges": torch.empty(2, 0, dtype=torch.int64),
            "star": torch.stack((torch.zeros(99, dtype=torch.int64), torch.arange(1, 100))),
        }
        nodes = 230 if kind == "triangles and lonely nodes" else 150
        owner = partition(Graph.from_edge_index(edges.get(kind, triangles), num_nodes=nodes), parts, "multilevel")
        assert owner.unique().tolist() == list(range(parts))

    def test_a_cut_is_counted(self):
        path = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 4]])
        cut = cut_of(path, torch.tensor([0, 0, 1, 0, 0]))
        # Node 2 is fetched once, by process 0; nodes 1 and 3 by process 1. Work: 2 + 16 of 8 + 80.
        assert (cut.edges, cut.boundary) == (2, 3)
        assert cut.load == pytest.approx(2 * 70 / 88, abs=1e-4)

    @pytest.mark.parametrize("how", ["auto", "multilevel"])
    def test_two_cliques_are_told_apart(self, how):
        clique = torch.combinations(torch.arange(40)).t()
        graph = Graph.from_edge_index(torch.cat((clique, clique + 40, torch.tensor([[0], [40]])), dim=1))
        assert cut_of(graph, partition(graph, 2, how)).edges == 1

    def test_fewer_edges_are_cut_than_at_random(self):
        side = torch.arange(900).view(30, 30)
        across = torch.stack((side[:, :-1].flatten(), side[:, 1:].flatten()))
        down = torch.stack((side[:-1].flatten(), side[1:].flatten()))
        grid = Graph.from_edge_index(torch.cat((across, down), dim=1))
        cut, chance = (cut_of(grid, partition(grid, 4, how)).edges for how in ("multilevel", "random"))
        assert cut < 150 < 1000 < chance  # two straight lines cut 60

    @pytest.mark.parametrize(
        ("parts", "how", "words"),
        [(0, "auto", "parts"), (9, "random", "at most the number of nodes, 3"), (2, "mitis", "mitis")],
    )
    def test_wrong_requests_are_refused(self, parts, how, words):
        with pytest.raises(TadropedgeError, match=words):
            partition(Graph.from_edge_index([[0, 1], [1, 2]]), parts, how)


class TestParts:
    def test_parts_travel_as_tensors(self):
        graph = spread.dataset("weighted").graph
        part = SpreadPart.of(graph, partition(graph, 3, "random"), 1, 3)
        made = SpreadPart.made(part.tensors(), torch.device("cpu"))
        for name in ("nodes", "owner", "numbers", "first"):
            assert torch.equal(getattr(made, name), getattr(part, name)), name
        assert torch.equal(made.graph.pairs, part.graph.pairs)
        assert torch.equal(made.graph.weight, graph.weight[part.numbers])
        # Rows of the whole pattern, by where they begin and by their columns.
        crow, col = graph.pattern.crow, graph.pattern.col
        local = part.graph.pattern
        for place, own in enumerate(part.own.tolist()):
            node = int(part.nodes[own])
            assert int(part.first[place]) == int(crow[node])
            mine = local.col[int(local.crow[own]) : int(local.crow[own + 1])].long()
            assert torch.equal(part.nodes[mine], col[int(crow[node]) : int(crow[node + 1])].long())


class TestRefused:
    @pytest.mark.parametrize(
        ("backbone", "trial", "words"),
        [
            ("gcn", Trial("cdf:connected"), "spanning forest"),
            ("gcn", Trial("dropedge:exact"), "number of kept edges"),
            ("gcn", Trial("graphsage"), "graphsage cannot be trained by several processes; choose from gcn"),
            ("gcn", Trial("ptdnet"), "ptdnet cannot be trained"),
            ("gcnn", Trial("original"), "gcnn cannot be trained"),
            ("gcn", Trial.of("original", normalization="spectral"), "eigenvalue of the whole graph"),
            ("gcn", Trial("dropedge", batch_size=10), "batch_size=10"),
        ],
    )
    def test_in_one_line(self, backbone, trial, words):
        with pytest.raises(TadropedgeError, match=words) as told:
            check_spread(Architecture(backbone), trial)
        assert "\n" not in str(told.value)

    def test_every_full_batch_network_can_be_spread(self):
        assert {name for name, network in NETWORKS.items() if spreads(network)} == set(BACKBONES)

    def test_own_classes_are_not_known_to_spread(self):
        class Mine(NETWORKS["gcn"]):
            """Of a user."""

        assert not spreads(Mine)
