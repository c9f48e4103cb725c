"""``tadropedge weights``: the score of every edge of a graph, as files, numbers and pictures."""

from __future__ import annotations

import json
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tadropedge.cli.app import app
from tadropedge.cli.options import Device_, Json_, Out_, Root_, Seed_, chosen_device
from tadropedge.errors import TadropedgeError, check_positive, check_probability, lookup
from tadropedge.registry import DATASETS, SCORES

if TYPE_CHECKING:  # torch is loaded when a graph is, not for --help
    from tadropedge.graph import Graph

Graph_ = Annotated[
    str, typer.Argument(metavar="GRAPH", help=f"one of {', '.join(DATASETS)}, or an edge list or .npz file")
]
SOLVER = "auto (default), dense, shift-invert, davidson, lanczos or short-lanczos"


@app.command("weights")
def weights_command(
    graph: Graph_,
    q: Annotated[int | None, typer.Option(help="clusters per component (datasets: number of classes)")] = None,
    desired_clusters: Annotated[
        int | None, typer.Option(help="about so many: q at the largest eigengap nearby")
    ] = None,
    score: Annotated[str, typer.Option(help=f"one of {', '.join(SCORES)}, or one that you registered")] = "aggregate",
    kind: Annotated[str | None, typer.Option(hidden=True)] = None,
    laplacian: Annotated[str | None, typer.Option(help="combinatorial (default) or normalized")] = None,
    solver: Annotated[str | None, typer.Option(help=SOLVER)] = None,
    tolerance: Annotated[float | None, typer.Option(help="bound on the error of every score (default 1e-8)")] = None,
    relative_error: Annotated[
        float | None, typer.Option(help="of a sketched effective resistance (default 0.1)")
    ] = None,
    keep_prob: Annotated[float, typer.Option(help="the paper's p: probability of KEEPING an edge")] = 0.7,
    gamma: Annotated[float | None, typer.Option(help="threshold (default: the knee of the scores)")] = None,
    header: Annotated[bool | None, typer.Option(help="whether the file's first line names columns")] = None,
    unweighted: Annotated[bool, typer.Option("--unweighted", help="ignore edge weights and further columns")] = False,
    figures: Annotated[bool, typer.Option(help="draw pictures and the page")] = True,
    explain: Annotated[bool, typer.Option("--explain", help="print the plan of the solvers; solve nothing")] = False,
    seed: Seed_ = 0,
    device: Device_ = "cpu",
    data_root: Root_ = None,
    out: Out_ = Path("weights"),
    as_json: Json_ = False,
) -> None:
    """Which edges hold this graph together? Writes scores, a summary, pictures and a page to look into.

    If it is interrupted, run the same command again to resume; it ends with the same files.

    Example: tadropedge weights cora --q 7 --out cora-weights
    """
    if kind is not None:
        print("warning: --kind is deprecated, use --score", file=sys.stderr)
        score = kind
    lookup("score", score, SCORES)
    named_or_file(graph)

    import torch
    from rich.console import Console

    from tadropedge.cli.progress import live_progress
    from tadropedge.score_report.terminal import page
    from tadropedge.score_report.write import run_info, write_all
    from tadropedge.scores.solve import solve

    check_probability("keep_prob", torch.tensor(keep_prob))
    if gamma is not None:
        check_positive("gamma", gamma)
    chosen = chosen_device(device)
    name, read, known = read_graph(graph, data_root, seed, header, not unweighted)
    options = {
        "q": q, "desired_clusters": desired_clusters, "laplacian": laplacian, "solver": solver,
        "tolerance": tolerance, "relative_error": relative_error,
    }  # fmt: skip
    given = {option: value for option, value in options.items() if value is not None}
    settings = score_settings(score, given, {"seed": seed, **known}, name)
    if explain:
        _explain(read, score, settings, chosen, as_json)
        return
    if out.exists() and not out.is_dir():
        raise TadropedgeError(f"--out must be a folder, but '{out}' is a file")
    command = shlex.join(["tadropedge", *sys.argv[1:]])
    try:
        with live_progress(as_json) as report:
            counted = partial(report, "edges scored")
            found = solve(read, score, settings, cache_dir=out / "cache", progress=counted, device=chosen)
            summary = write_all(
                found, name, out, keep_prob=keep_prob, gamma=gamma, draw=figures,
                run=run_info(command, chosen), report=report,
            )  # fmt: skip
    except KeyboardInterrupt:
        print(f"\nstopped; finished components are kept. Resume with: {command}", file=sys.stderr)
        raise typer.Exit(130) from None
    if as_json:
        print(json.dumps(summary))
        return
    Console().print(page(summary))
    for line in summary["left_out"]:
        print(line)
    print(f"written to {out}: {', '.join(summary['files'])}")


def named_or_file(graph: str) -> Path | None:
    """The path of a file, or ``None`` for the name of a dataset; a typo is answered before torch is loaded."""
    path = Path(graph)
    if graph.lower() in DATASETS:
        return None
    if not (path.suffix or path.name != graph or path.is_file()):
        lookup("dataset or file", graph, DATASETS)
    return path


def read_graph(
    graph: str, root: Path | None, seed: int, header: bool | None, weighted: bool
) -> tuple[str, Graph, dict[str, Any]]:
    """A dataset by its name, else a file; the name to call it by, and what is known for scores to use."""
    from tadropedge.data import load_dataset
    from tadropedge.graph import Graph

    path = named_or_file(graph)
    if path is None:
        data = load_dataset(graph, root=root, seed=seed)
        return data.name, data.graph, {"classes": data.num_classes, "features": data.features}
    return path.name.partition(".")[0], Graph.from_file(path, header=header, weighted=weighted), {}


def score_settings(score: str, given: dict[str, Any], known: dict[str, Any], name: str) -> dict[str, Any]:
    """What the user gave, and of what is known what the score takes; q is the number of classes unless it is given."""
    from tadropedge.scores.solve import check_settings, settings_for

    if settings_for(score, {"q": None}) and not {"q", "desired_clusters"} & set(given):
        if "classes" not in known:
            raise TadropedgeError(f"'{name}' has no classes to take q from: give --q or --desired-clusters")
        given = {"q": known["classes"], **given}
    settings = settings_for(score, known) | given
    check_settings(score, settings)
    return settings


def _explain(graph: Graph, score: str, settings: dict[str, Any], device: str, as_json: bool) -> None:
    from rich.console import Console

    from tadropedge.score_report.terminal import explained
    from tadropedge.spectrum.plan import FACTS, explain

    if score != "aggregate":
        raise TadropedgeError(f"--explain is about eigensolvers, which the score {score!r} does not use")
    steps = explain(graph, device=device, **{name: value for name, value in settings.items() if name != "tolerance"})
    if as_json:
        print(json.dumps([{name: getattr(step, name) for name in FACTS} for step in steps]))
    else:
        Console().print(explained(steps))
