"""Mini-batches of sampled neighbours, and the processes that share them."""

import os
import socket
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import tadropedge as tde
from tadropedge import Graph, TadropedgeError
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.data.load import load
from tadropedge.lab.networks.view import View
from tadropedge.lab.training.batch import Batch
from tadropedge.lab.training.experiment import Experiment
from tadropedge.lab.training.fit import Run, fit, objective
from tadropedge.lab.training.neighbours import Neighbours, SampledBatch
from tadropedge.lab.training.ranks import joined_ranks
from tadropedge.lab.training.trainer import Trainer
from tadropedge.lab.training.trial import MiniBatch, TrainingSettings, Trial

ALL = MiniBatch(size=10**6, fanout=(-1,))
NETWORKS = ("gcn", "jknet", "incepgcn", "resgcn", "gcnii", "appnp", "gat", "sage")
DROPPINGS = (
    "dropedge@0.5",
    "degree-proportional@0.5:unbiased",
    "jaccard-proportional@0.5:weighted",
    "cdf@0.9:connected",
)


@pytest.fixture(scope="module")
def data():
    return load("clusters")


def experiment(data, mini_batch, epochs=3):
    training = TrainingSettings(epochs=epochs, keep="loss", mini_batch=mini_batch)
    return Experiment(data=data, layers=3, hidden=16, score_settings={"q": 4}, training=training)


def trial(name, **settings):
    return Trial(candidate=Candidate.parse(name), seed=5, settings=settings)


@pytest.mark.parametrize("dropping", DROPPINGS)
@pytest.mark.parametrize("network", NETWORKS)
def test_one_step_with_all_neighbours_is_a_step_on_the_whole_graph(data, network, dropping):
    one = trial(f"{network}+{dropping}")
    whole = fit(Batch(experiment(data, None), [one]))[0]
    parts = fit(SampledBatch(experiment(data, ALL), [one]))[0]
    for name, curve in whole.curves.items():
        assert parts.curves[name] == pytest.approx(curve, abs=2e-5), name


def test_attention_drops_the_same_entries_in_a_mini_batch(data):
    one = trial("gat+dropedge@0.5", attention_dropout=0.5)
    whole = fit(Batch(experiment(data, None), [one]))[0]
    parts = fit(SampledBatch(experiment(data, ALL), [one]))[0]
    assert parts.curves["train_loss"] == pytest.approx(whole.curves["train_loss"], abs=2e-5)


def test_an_epoch_trains_every_node_once_in_a_new_order(data):
    batch = SampledBatch(experiment(data, MiniBatch(size=7, fanout=(2,))), [trial("dropedge@0.5")])
    orders = []
    for epoch in range(2):
        steps = list(batch.steps(epoch))
        assert [step.nodes.shape[1] for step in steps] == [7, 7, 6]
        assert sum(step.part for step in steps) == pytest.approx(1.0)
        seeds = torch.cat([step.views[0].noise.names[: step.nodes.shape[1]] for step in steps])
        assert sorted(seeds.tolist()) == batch.train[0].nonzero()[:, 0].tolist()
        orders.append(seeds.tolist())
    assert orders[0] != orders[1]


@pytest.mark.parametrize("fanout", [1, 3])
def test_sampled_neighbours_are_kept_ones_and_stand_for_all(fanout):
    star = Graph.from_edge_index([[0] * 12, list(range(1, 13))])
    kept = torch.arange(12) % 4 != 0
    ones = torch.ones(1, 13, 1)
    found = set()
    for epoch in range(60):
        view = View(star, kept, epoch=torch.tensor(epoch))
        nodes, (block,) = Neighbours(view, hops=[0], fanout=[fanout], seed=3).around(torch.tensor([0]))
        assert len(nodes) == 1 + fanout
        assert bool(kept[nodes[1:] - 1].all())
        assert block.share.tolist() == [9 / fanout]
        found |= set(nodes[1:].tolist())
        values = view.operator(["adjacency"]).values[0, block.entry] * block.share[block.row]
        assert float(values.sum()) == pytest.approx(float((view.shift(["adjacency"]) @ ones)[0, 0, 0]))
    assert found == {1 + place for place in range(12) if kept[place]}  # each is taken some time


def test_every_set_of_neighbours_is_equally_likely():
    star = Graph.from_edge_index([[0] * 4, list(range(1, 5))])
    counts = torch.zeros(5)
    for seed in range(2000):
        nodes, _ = Neighbours(View(star), hops=[0], fanout=[2], seed=seed).around(torch.tensor([0]))
        counts[nodes[1:]] += 1
    assert counts[1:].tolist() == pytest.approx([1000] * 4, abs=110)  # five standard deviations


def test_which_neighbours_are_sampled_does_not_depend_on_who_asks():
    graph = load("clusters").graph
    sampled = Neighbours(View(graph), hops=[0], fanout=[3], seed=1)
    together, (block,) = sampled.around(torch.tensor([5, 9]))
    alone, (own,) = sampled.around(torch.tensor([9]))
    assert block.entry[block.row == 1].tolist() == own.entry.tolist()
    assert set(alone.tolist()) <= set(together.tolist())


@pytest.mark.parametrize("network", ["gcn", "gat", "appnp"])
def test_draws_agree_on_nodes_taken_from_all(data, network):
    told = {"draws": 3, "consistency_weight": 2.0, "temperature": 0.4, "balance": 0.3}
    one = trial(f"{network}+degree-proportional@0.5:consistent", **told)
    small, big = experiment(data, MiniBatch(size=7, fanout=(-1,))), experiment(data, None)
    run, whole = Run(SampledBatch(small, [one])), Batch(big, [one])
    steps = list(run.batch.steps(0))
    asked = []
    for step in steps:
        with torch.no_grad():
            logits = torch.stack([whole.network()(x, view)[0] for x, view in next(whole.steps(0)).passes])
        seeds = step.views[0].noise.names[: step.nodes.shape[1]]
        assert all(torch.equal(view.noise.names[: len(seeds)], seeds) for view in step.views)
        mine, agree = seeds[step.nodes[0] > 0], seeds[step.agree]
        entropy = torch.nn.functional.cross_entropy(logits[:, mine].flatten(0, 1), data.labels[mine].repeat(3))
        agreed = tde.consistency_loss(logits[:, agree], temperature=0.4, balance=0.3)
        loss, bare = (one.detach() for one in objective(run, step))
        assert float(bare) == pytest.approx(float(entropy), abs=1e-5)
        assert float(loss) == pytest.approx(float(entropy + 2.0 * agreed), abs=1e-5)
        asked += agree.tolist()
    assert len(set(asked)) == len(asked) == sum(int(step.nodes.sum()) for step in steps)
    assert not set(asked) <= set(whole.train[0].nonzero()[:, 0].tolist())
    fit(SampledBatch(small, [one]))


def test_what_cannot_be_trained_by_mini_batches_is_refused(data):
    with pytest.raises(TadropedgeError, match="fanout"):
        Trainer(experiment(data, MiniBatch(size=5, fanout=(3, 2)))).train([trial("gcn+dropedge@0.5")])
    with pytest.raises(TadropedgeError, match="2 processes"):
        SampledBatch(experiment(data, MiniBatch(size=5)), [trial("sharpen")], ranks=SimpleNamespace(count=2))


WORKER = """
import json, sys
import torch
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.data.load import load
from tadropedge.lab.training.experiment import Experiment
from tadropedge.lab.training.ranks import joined_ranks
from tadropedge.lab.training.trainer import Trainer
from tadropedge.lab.training.trial import MiniBatch, TrainingSettings, Trial

torch.set_num_threads(1)
training = TrainingSettings(epochs=2, keep="loss", mini_batch=MiniBatch(size=7, fanout=(3,)))
with joined_ranks() as ranks:
    experiment = Experiment(data=load("clusters"), hidden=8, training=training)
    trial = Trial(candidate=Candidate.parse("degree-proportional@0.5"), seed=5)
    outcome = Trainer(experiment, ranks=ranks).train([trial])[0]
    if ranks.first:
        print(json.dumps({name: curve.tolist() for name, curve in outcome.curves.items()}))
"""


def test_two_processes_train_what_one_trains(tmp_path):
    import json

    script = tmp_path / "worker.py"
    script.write_text(WORKER)

    def run(*command):
        quiet = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, *command, script], capture_output=True, text=True, timeout=120, env=quiet
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.strip().splitlines()[-1])

    alone = run()
    both = run("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    for name, curve in alone.items():
        assert both[name] == pytest.approx(curve, abs=2e-5), name


def test_variables_that_do_not_fit_together_are_one_line(monkeypatch):
    for name, value in {"RANK": "5", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TadropedgeError, match="RANK='5'"), joined_ranks():
        pass


def test_processes_that_never_meet_are_one_line(monkeypatch):
    from datetime import timedelta

    with socket.socket() as free:  # nobody listens where this was
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr("tadropedge.lab.training.ranks.PATIENCE", timedelta(seconds=1))
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TadropedgeError, match=str(port)), joined_ranks():
        pass


def test_rungs_are_not_for_mini_batches(data):
    made = experiment(data, MiniBatch(size=7), epochs=4)
    rungs = replace(made, training=replace(made.training, rungs=(2,)))
    trials = [trial("dropedge@0.5"), trial("dropedge@0.5")]
    assert [outcome.stopped for outcome in Trainer(rungs).train(trials)] == [None, None]
