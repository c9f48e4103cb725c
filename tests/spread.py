"""Processes of one machine that train together: started once for many jobs, so that torch is imported once."""

from __future__ import annotations

import multiprocessing
import os
import socket
import traceback
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch

from tadropedge import Graph
from tadropedge.data import Dataset, load_noisy_clusters
from tadropedge.distributed.batch import SpreadBatch
from tadropedge.distributed.deal import deal
from tadropedge.distributed.exchange import Exchange
from tadropedge.distributed.group import Group, joined
from tadropedge.distributed.part import SpreadPart
from tadropedge.distributed.partition import partition
from tadropedge.distributed.training import Keeping, prepare, train_spread
from tadropedge.errors import LostError
from tadropedge.nn import operators
from tadropedge.training.config import Outcome, Trial
from tadropedge.training.laboratory import Laboratory, laboratory_for

CURVES = ("train_loss", "val_loss", "val_accuracy", "test_accuracy")
EPOCHS = 20
SECONDS = 300  # after which a process that hangs ends the test


def dataset(kind: str = "plain") -> Dataset:
    """200 nodes in noisy clusters; ``weighted`` edges, or features as a ``sparse`` matrix."""
    made = load_noisy_clusters(seed=1, classes=4, nodes=10, clusters=5)
    if kind == "weighted":
        weight = torch.rand(made.graph.num_edges, generator=torch.Generator().manual_seed(2)).double() + 0.5
        return replace(made, graph=Graph(made.graph.pairs, made.graph.num_nodes, weight))
    if kind == "sparse":
        features = torch.where(made.features.abs() > 3, made.features, 0.0).to_sparse_csr()
        return replace(made, features=features)
    return made


def laboratory(backbone: str, *, kind: str = "plain", layers: int = 3, **settings: Any) -> Laboratory:
    """Small enough for many trainings."""
    return laboratory_for(dataset(kind), backbone, layers, 12, epochs=EPOCHS, **settings)


def outcome_job(group: Group, backbone: str, trial: Trial, how: str, compact: bool, settings: dict[str, Any]) -> Any:
    """Train one trial and return its curves and its best model."""
    before = dict(operators.WORTH_COMPACTING)
    operators.WORTH_COMPACTING["cpu"] = 0 if compact else before["cpu"]
    try:
        made = None
        if group.rank == 0:
            made = prepare(laboratory(backbone, **settings), trial, group.size, how, Keeping())
        return summary(train_spread(group, made, Keeping()))
    finally:
        operators.WORTH_COMPACTING.update(before)


def resume_job(group: Group, trial: Trial, folder: Path) -> Any:
    """Go on from the checkpoint in a folder."""
    keeping = Keeping(folder=folder, every=5)
    made = prepare(laboratory("gcn"), trial, group.size, "random", keeping) if group.rank == 0 else None
    return summary(train_spread(group, made, keeping))


def summary(outcome: Outcome) -> dict[str, Any]:
    """What is compared of an outcome."""
    found: dict[str, Any] = {name: getattr(outcome, name).copy() for name in CURVES}
    found |= {"best_epoch": outcome.best_epoch, "state": outcome.state}
    if outcome.scores is not None:
        found |= {"val_score": outcome.scores[0], "test_score": outcome.scores[1]}
    if outcome.gradient_norms is not None:
        found["gradient_norms"] = outcome.gradient_norms.norms
    return found


def masks_job(group: Group, method: str, how: str, per_layer: bool) -> Any:
    """The pairs that this process holds, and which of them it keeps in some epochs."""
    made = None
    if group.rank == 0:
        made = prepare(laboratory("gcn", per_layer=per_layer), Trial(method, seed=5), group.size, how, Keeping())
    plan = group.from_first(None if made is None else made[0])
    task = deal(group, None if made is None else made[1])
    batch = SpreadBatch(task, plan.architecture, [plan.trial], plan.course)
    masks = [[keep[0].numpy() for keep in batch.coins.keeps(torch.tensor(epoch))] for epoch in range(3)]
    return task.part.numbers.numpy(), masks


def exchange_job(group: Group, how: str) -> Any:
    """Fetch rows that say which node they belong to, and send ones back; with all pairs and with some."""
    graph = dataset().graph
    part = SpreadPart.of(graph, partition(graph, group.size, how), group.rank, group.size)
    exchange = Exchange(part, group)
    own = part.nodes[part.own].to(torch.float32)
    x = torch.stack((own, -own))[..., None].repeat(1, 1, 3).requires_grad_()
    spread = exchange.everywhere(x)
    spread.sum().backward()
    keep = part.numbers % 3 == 0
    thin = exchange.thinned(keep)
    asked = part.graph.pairs[:, keep].flatten().unique()
    return {
        "nodes": part.nodes.numpy(),
        "own": part.own.numpy(),
        "spread": spread.detach().numpy(),
        "gradient": x.grad.numpy(),
        "asked": asked.numpy(),
        "thin": thin.fetched(x.detach()).numpy(),
        "sent": (sum(exchange.lists.sent), sum(thin.lists.sent)),
    }


def silent_job(group: Group) -> Any:
    """The first process waits, but not for long, for a sum that the other one never adds to; what it is told."""
    c10d = torch.distributed.distributed_c10d
    store = c10d._get_default_store()
    if group.rank:
        store.wait(["told"])
        return None
    c10d._set_pg_timeout(timedelta(seconds=1))
    try:
        group.all_sum_(torch.ones(1))
    except LostError as error:
        return str(error)
    finally:
        store.set("told", "1")
    return None


def _serve(rank: int, size: int, port: int, jobs: Any, answers: Any) -> None:
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    with joined("cpu", SECONDS) as group:
        while (job := jobs.get()) is not None:
            call, arguments = job
            try:
                answers.put((rank, None, call(group, *arguments)))
            except Exception:
                answers.put((rank, traceback.format_exc(), None))


class Crew:
    """``size`` processes that do one job after the other, each in a group of all."""

    def __init__(self, size: int) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tadropedge.distributed.training", "tadropedge.data"])
        self.size, self.answers = size, context.Queue()
        self.jobs = [context.SimpleQueue() for _ in range(size)]
        port = free_port()
        self.workers = [
            context.Process(target=_serve, args=(rank, size, port, self.jobs[rank], self.answers), daemon=True)
            for rank in range(size)
        ]
        for worker in self.workers:
            worker.start()

    def do(self, call: Any, *arguments: Any) -> list[Any]:
        """What every process answers, in order."""
        for queue in self.jobs:
            queue.put((call, arguments))
        answers = {}
        for _ in range(self.size):
            rank, failure, answer = self.answers.get(timeout=SECONDS)
            assert failure is None, failure
            answers[rank] = answer
        return [answers[rank] for rank in range(self.size)]

    def end(self) -> None:
        """Let them go."""
        for queue in self.jobs:
            queue.put(None)
        for worker in self.workers:
            worker.join(timeout=30)


def free_port() -> int:
    """A port of loopback that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
