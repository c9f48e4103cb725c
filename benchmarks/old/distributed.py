"""One model on a graph that is spread over K processes: seconds per epoch, and edges per second and process.

A two-layer GCN of 128 hidden features on 128 dense features, DropEdge at two keep ratios, without evaluations. On a CPU
every process has one thread, the graph is com-dblp, and the ordinary trainer in one process (``alone``) runs beside
them. Edges are those of the whole graph, whether kept or not. CPU seconds are those of the first process: where others
use the machine, too, they say more than the clock.

On GPUs each process has one, and the graphs are random ones of 10⁷ and 10⁸ edges with a mean degree of 40, made on the
first GPU; with one process that is the ordinary trainer on one GPU.

    python benchmarks/old/distributed.py [--device cuda] [--processes 1 2] [--edges 1e7 1e8] [--out FILE] [--quick]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import socket
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from report import data_root, write

from tadropedge._old import Graph
from tadropedge._old.data import Dataset
from tadropedge._old.data.dataset import Split
from tadropedge._old.distributed.batch import SpreadBatch
from tadropedge._old.distributed.deal import deal
from tadropedge._old.distributed.group import Group, joined
from tadropedge._old.distributed.training import Keeping, prepare
from tadropedge._old.training.batch import Batch, Course
from tadropedge._old.training.config import Architecture, Trial
from tadropedge._old.training.laboratory import Laboratory, make_task

RATIOS = (1.0, 0.1)
FEATURES, HIDDEN, CLASSES = 128, 128, 16
DEGREE = 40
EPOCHS, WARM = 5, 2
SECONDS = 3600.0


def graph_of(edges: int | None, device: str) -> Graph:
    """The graph com-dblp, or a uniformly random one with about so many edges."""
    if edges is None:
        return Graph.from_file(data_root() / "graphs" / "com-dblp.tsv.gz")
    generator = torch.Generator(device).manual_seed(0)
    nodes = max(2, 2 * edges // DEGREE)
    ends = torch.randint(nodes, (2, edges), generator=generator, device=device)
    graph = Graph.from_edge_index(ends[:, ends[0] != ends[1]], num_nodes=nodes)
    return Graph(graph.pairs, graph.num_nodes)  # without the arcs, which nobody asks for


def laboratory_of(graph: Graph) -> Laboratory:
    """Random features and labels: speed does not depend on them."""
    generator = torch.Generator(graph.device).manual_seed(1)
    nodes, device = graph.num_nodes, graph.device
    thirds = torch.arange(nodes, device=device).tensor_split(3)
    data = Dataset(
        name="benchmark",
        graph=graph,
        features=torch.randn((nodes, FEATURES), generator=generator, device=device),
        labels=torch.randint(CLASSES, (nodes,), generator=generator, device=device),
        num_classes=CLASSES,
        level="node",
        split=Split(*thirds),
    )
    return Laboratory(data, Architecture(hidden=HIDDEN), epochs=WARM + EPOCHS)


def trial_of(ratio: float) -> Trial:
    """DropEdge, or nothing where all edges are kept."""
    return Trial("original") if ratio == 1 else Trial("dropedge", keep_ratio=ratio)


def epochs_of(batch: Batch, group: Group) -> tuple[float, float]:
    """Median seconds of an epoch, begun and ended by all processes together, and CPU seconds of this process."""
    taken, worked = [], []
    for _ in range(WARM + EPOCHS):
        _together(group)
        start, before = time.perf_counter(), time.process_time()
        batch.run_epoch(False)
        worked.append(time.process_time() - before)
        _together(group)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[WARM:]), statistics.median(worked[WARM:])


def _together(group: Group) -> None:
    if group.device.type == "cuda":
        torch.cuda.synchronize()
    group.all_sum_(torch.zeros(1))


def alone(laboratory: Laboratory, ratio: float) -> tuple[float, float]:
    """The ordinary trainer."""
    task = make_task(laboratory.dataset, [laboratory.dataset.split])
    batch = Batch(task, laboratory.architecture, [trial_of(ratio)], [0], Course(epochs=WARM + EPOCHS))
    return epochs_of(batch, Group(device=laboratory.dataset.device))


def work(rank: int, size: int, port: int, told: argparse.Namespace, edges: int | None, answers: Any) -> None:
    """One process: every keep ratio in turn; the first one answers."""
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    with joined(told.device, SECONDS) as group:
        laboratory = None
        if rank == 0:
            laboratory = laboratory_of(graph_of(edges, "cpu"))
        for ratio in RATIOS:
            made = group.after_first(
                lambda ratio=ratio: prepare(laboratory, trial_of(ratio), size, told.partition, Keeping())
            )
            plan = group.from_first(None if made is None else made[0])
            task = deal(group, None if made is None else made[1])
            rows = torch.tensor([len(task.part.nodes) - task.part.num_own])
            group.all_sum_(rows)
            batch = SpreadBatch(task, plan.architecture, [plan.trial], plan.course)
            taken = epochs_of(batch, group)
            if rank == 0:
                answers.put((ratio, taken, int(rows)))


def spread(size: int, told: argparse.Namespace, edges: int | None) -> dict[float, tuple[tuple[float, float], int]]:
    """Seconds per epoch and boundary rows of each keep ratio."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    workers = [context.Process(target=work, args=(rank, size, port, told, edges, answers)) for rank in range(size)]
    for worker in workers:
        worker.start()
    found = [answers.get(timeout=SECONDS) for _ in RATIOS]
    for worker in workers:
        worker.join()
    return {ratio: (taken, rows) for ratio, taken, rows in found}


def measured(told: argparse.Namespace, edges: int | None) -> Iterator[dict[str, Any]]:
    """One row per keep ratio and number of processes."""
    made = laboratory_of(graph_of(edges, told.device))
    graph = made.dataset.graph
    head = {"graph": "com-dblp" if edges is None else "random", "nodes": graph.num_nodes, "edges": graph.num_edges}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    if told.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    single = {}
    for ratio in RATIOS:
        single[ratio] = alone(made, ratio)
        peak = torch.cuda.max_memory_allocated() / 2**30 if told.device == "cuda" else None
        yield _row(head, told, ratio, 1, single, single[ratio], None, way="alone", gib=peak)
    torch.set_num_threads(threads)
    del made, graph
    if told.device == "cuda":
        torch.cuda.empty_cache()
    for size in told.processes:
        if told.device == "cuda" and size == 1:
            continue  # that is the ordinary trainer
        for ratio, (taken, rows) in spread(size, told, edges).items():
            yield _row(head, told, ratio, size, single, taken, rows, way="spread", gib=None)


def _row(
    head: dict[str, Any],
    told: argparse.Namespace,
    ratio: float,
    size: int,
    single: dict[float, tuple[float, float]],
    taken: tuple[float, float],
    rows: int | None,
    *,
    way: str,
    gib: float | None,
) -> dict[str, Any]:
    seconds, worked = taken
    return {
        **head,
        "device": told.device,
        "way": way,
        "processes": size,
        "keep_ratio": ratio,
        "seconds_per_epoch": round(seconds, 4),
        "edges_per_second_and_process": round(head["edges"] / seconds / size),
        "speedup": round(single[ratio][0] / seconds, 3),
        "cpu_seconds_per_epoch": round(worked, 4),
        "boundary_rows": rows,
        "peak_gib": None if gib is None else round(gib, 1),
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--processes", type=int, nargs="+", default=None)
    parser.add_argument("--edges", type=float, nargs="+", default=None)
    parser.add_argument("--partition", default="auto")
    parser.add_argument("--out", type=Path, help="default results/benchmarks/distributed-DEVICE.json")
    parser.add_argument("--quick", action="store_true")
    told = parser.parse_args()
    if told.processes is None:
        told.processes = [1, 2] if told.device == "cpu" else list(range(1, torch.cuda.device_count() + 1))
    sizes = [1e4] if told.quick else told.edges or ([None] if told.device == "cpu" else [1e7, 1e8])
    rows = []
    for edges in sizes:
        for row in measured(told, None if edges is None else int(edges)):
            print(row, flush=True)
            rows.append(row)
    if told.out is not None or not told.quick:
        out = told.out or f"results/benchmarks/distributed-{told.device}.json"
        write(out, {"distributed": rows}, told.device)


if __name__ == "__main__":
    main()
