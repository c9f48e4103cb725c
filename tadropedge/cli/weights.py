"""``tadropedge weights``: what the edges of a graph weigh, as files, numbers and pictures."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tadropedge.cli.app import app
from tadropedge.cli.options import Device_, Json_, Laplacian_, Out_, Plugin_, Root_, Seed_, chosen_device
from tadropedge.cli.progress import live_progress
from tadropedge.errors import TadropedgeError, check_positive, check_probability, name_or_path
from tadropedge.registry import DATASETS, SCORES

if TYPE_CHECKING:
    from tadropedge.graph import Graph
    from tadropedge.score_report.weigh import Request

Graph_ = Annotated[
    str, typer.Argument(metavar="GRAPH", help=f"one of {', '.join(DATASETS)}, or an edge list or .npz file")
]


@app.command("weights")
def weights_command(
    graph: Graph_,
    q: Annotated[int | None, typer.Option("--q", help="clusters a component (datasets: number of classes)")] = None,
    desired_clusters: Annotated[
        int | None, typer.Option("--desired-clusters", help="about so many: q at the largest eigengap nearby")
    ] = None,
    kind: Annotated[str, typer.Option("--kind", help=" or ".join(SCORES))] = "aggregate",
    laplacian: Laplacian_ = "combinatorial",
    solver: Annotated[str, typer.Option("--solver", help="auto, dense, shift-invert, davidson, ...")] = "auto",
    tolerance: Annotated[float, typer.Option("--tolerance", help="bound on the error of every weight")] = 1e-8,
    relative_error: Annotated[
        float, typer.Option("--relative-error", help="of effective resistance, where it is sketched")
    ] = 0.1,
    keep_prob: Annotated[
        float, typer.Option("--keep-prob", help="the paper's p: probability of KEEPING an edge")
    ] = 0.7,
    gamma: Annotated[float | None, typer.Option("--gamma", help="threshold (default: the knee of the weights)")] = None,
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="whether the file's first line names columns")
    ] = None,
    unweighted: Annotated[bool, typer.Option("--unweighted", help="ignore edge weights and further columns")] = False,
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="draw pictures and the page")] = True,
    explain_only: Annotated[bool, typer.Option("--explain", help="say how it would be solved; solve nothing")] = False,
    seed: Seed_ = 0,
    device: Device_ = "cpu",
    data_root: Root_ = None,
    out: Out_ = Path("weights"),
    plugin: Plugin_ = None,
    as_json: Json_ = False,
) -> None:
    """Which edges hold this graph together? Writes weights, a summary, pictures and a page to look into.

    Killed at any moment, the same command goes on where it stopped, and ends with the same files.

    Example: tadropedge weights cora --q 7 --out cora-weights
    """
    name_or_path("dataset or file", graph, DATASETS)
    import torch
    from rich.console import Console

    from tadropedge.score_report.terminal import page
    from tadropedge.score_report.weigh import Request, weigh
    from tadropedge.score_report.write import run_info, write_all

    chosen = chosen_device(device)
    name, read, classes = read_graph(graph, data_root, seed, header, not unweighted)
    q = wanted_q(kind, q, desired_clusters, classes, name)
    request = Request(kind, q, desired_clusters, laplacian, solver, tolerance, relative_error, seed, chosen)
    request.clusters(read)
    check_probability("keep_prob", torch.tensor(keep_prob))
    if gamma is not None:
        check_positive("gamma", gamma)
    if explain_only:
        _explain(read, request, chosen, as_json)
        return
    if out.exists() and not out.is_dir():
        raise TadropedgeError(f"--out must be a folder, but '{out}' is a file")
    command = shlex.join(["tadropedge", *sys.argv[1:]])
    try:
        with live_progress(as_json) as report:
            weighing = weigh(read, request, out / "cache", report)
            summary = write_all(
                weighing, name, out, keep_prob=keep_prob, gamma=gamma, draw=figures,
                run=run_info(command, chosen), report=report,
            )  # fmt: skip
    except KeyboardInterrupt:
        print(f"\nstopped; finished components are kept. Go on with: {command}", file=sys.stderr)
        raise typer.Exit(130) from None
    if as_json:
        print(json.dumps(summary))
        return
    Console().print(page(summary))
    for line in summary["left_out"]:
        print(line)
    print(f"written to {out}: {', '.join(summary['files'])}")


def read_graph(
    graph: str, root: Path | None, seed: int, header: bool | None, weighted: bool
) -> tuple[str, Graph, int | None]:
    """A dataset by its name, else a file; the name to call it by, and the number of classes where there are any."""
    from tadropedge.data import load_dataset
    from tadropedge.graph import Graph

    path = name_or_path("dataset or file", graph, DATASETS)
    if isinstance(path, str):
        data = load_dataset(path, root=root, seed=seed)
        return data.name, data.graph, data.num_classes
    return path.name.partition(".")[0], Graph.from_file(path, header=header, weighted=weighted), None


def wanted_q(kind: str, q: int | None, desired: int | None, classes: int | None, name: str) -> int | None:
    """The given q, else the number of classes of a dataset."""
    if kind == "effective" and not (q is None and desired is None):
        raise TadropedgeError(
            "effective resistance uses all modes: --q and --desired-clusters go with --kind aggregate"
        )
    if kind != "aggregate" or q is not None or desired is not None:
        return q
    if classes is None:
        raise TadropedgeError(f"'{name}' has no classes to take q from: give --q or --desired-clusters")
    return classes


def _explain(graph: Graph, request: Request, device: str, as_json: bool) -> None:
    from rich.console import Console

    from tadropedge.score_report.terminal import explained
    from tadropedge.spectrum import explain

    if request.kind == "effective":
        raise TadropedgeError("--explain is about eigensolvers, which --kind effective does not use")
    parts = explain(
        graph, request.q, desired_clusters=request.desired_clusters, laplacian=request.laplacian,
        solver=request.solver, device=device,
    )  # fmt: skip
    if as_json:
        print(json.dumps([asdict(part) for part in parts]))
    else:
        Console().print(explained(parts))
