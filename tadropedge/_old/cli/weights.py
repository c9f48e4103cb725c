"""``tadropedge weights``: the score of every edge of a graph, as files, numbers and pictures."""

from __future__ import annotations

import sys
from collections.abc import Collection
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from tadropedge._old.checks import check_positive, name_or_path
from tadropedge._old.cli.options import (
    GRAPH_FILES,
    LAPLACIANS,
    Device_,
    Gamma_,
    Json_,
    KeepProb_,
    KeepRatio_,
    Out_,
    Plugin_,
    Root_,
    ScoreColumn_,
    Seed_,
    Wait_,
    check_count,
    check_own_column,
    check_score,
    chosen_budget,
    chosen_device,
    output_folder,
)
from tadropedge._old.cli.progress import announced, command_line, live_progress
from tadropedge._old.cli.reading import read_source
from tadropedge._old.cli.report import show
from tadropedge._old.errors import TadropedgeError, lookup
from tadropedge._old.method import PAPER_SCORE
from tadropedge._old.registry import DATASETS, SCORES

if TYPE_CHECKING:  # torch is loaded when a graph is, not for --help
    from tadropedge._old.graph import Graph

GRAPH = f"one of {', '.join(DATASETS)}, or {GRAPH_FILES}"
SCORE = f"one of {', '.join(SCORES)}, or one that you registered (default aggregate, or column if there is one)"
COMPONENT = "the component to look at; N is its number by size (1 is the largest)"
SOLVER = "auto (default), dense, shift-invert, davidson, lanczos, short-lanczos or slepc"

Clusters_ = Annotated[int | None, Option(metavar="N", help="about so many clusters: q at the nearest large eigengap")]
Ranks_ = Annotated[int | None, Option(metavar="K", help="processes of the solver slepc under MPI (default 1)")]
Tolerance_ = Annotated[float | None, Option(metavar="X", help="bound on the error of every score (default 1e-8)")]
RelativeError_ = Annotated[float | None, Option(metavar="X", help="of a sketched effective resistance (default 0.1)")]
Csv_ = Annotated[bool, Option(help="write weights.csv, a line per edge; weights.npz is always written")]
ComponentOf_ = Annotated[str | None, Option(metavar="NODE", help="the component of this node instead")]


@announced
def weights_command(
    graph: Annotated[str, Argument(metavar="GRAPH", help=GRAPH, show_default=False)],
    q: Annotated[int | None, Option(metavar="N", help="clusters per component (datasets: number of classes)")] = None,
    desired_clusters: Clusters_ = None,
    score: Annotated[str | None, Option(metavar="NAME", help=SCORE, show_default=False)] = None,
    kind: Annotated[str | None, Option(hidden=True)] = None,
    laplacian: Annotated[str | None, Option(metavar=LAPLACIANS, help="of aggregate (default combinatorial)")] = None,
    solver: Annotated[str | None, Option(metavar="NAME", help=SOLVER)] = None,
    ranks: Ranks_ = None,
    tolerance: Tolerance_ = None,
    relative_error: RelativeError_ = None,
    score_column: ScoreColumn_ = None,
    component: Annotated[str, Option(metavar="[largest|all|N]", help=COMPONENT)] = "largest",
    component_of: ComponentOf_ = None,
    keep_prob: KeepProb_ = None,
    keep_ratio: KeepRatio_ = None,
    gamma: Gamma_ = None,
    header: Annotated[bool | None, Option(help="whether the file's first line names columns")] = None,
    unweighted: Annotated[bool, Option("--unweighted", help="ignore edge weights and further columns")] = False,
    figures: Annotated[bool, Option(help="draw pictures and the page")] = True,
    csv: Csv_ = True,
    explain: Annotated[bool, Option("--explain", help="print the plan of the solvers; solve nothing")] = False,
    seed: Seed_ = 0,
    device: Device_ = "cpu",
    data_root: Root_ = None,
    out: Out_ = Path("weights"),
    wait: Wait_ = False,
    plugin: Plugin_ = None,
    as_json: Json_ = False,
) -> None:
    """Which edges hold this graph together? Writes scores, a summary, pictures and an interactive page.

    If it is interrupted, run the same command again to resume; it ends with the same files.
    """
    score = score if kind is None else kind
    if score is not None:
        lookup("score", score, dict.fromkeys(SCORES))  # not what it stands for, which would load torch
    source = name_or_path("dataset or file", graph, DATASETS)
    score = "column" if score_column is not None and score is None else score or PAPER_SCORE
    check_own_column(score_column, graph)
    check_score(score, score_column)
    budget = chosen_budget(keep_prob, keep_ratio)
    check_modes(q, desired_clusters, ranks, solver)
    check_component(component, component_of)

    from tadropedge._old.publish.label import run_label
    from tadropedge._old.score_report.part import Part
    from tadropedge._old.score_report.terminal import page
    from tadropedge._old.score_report.write import FILES, write_all
    from tadropedge._old.scores.solve import solve

    if gamma is not None:
        check_positive("gamma", gamma)
    place = chosen_device(device)
    if kind is not None:
        print("warning: --kind is deprecated, use --score", file=sys.stderr)
    options = {
        "q": q, "desired_clusters": desired_clusters, "laplacian": laplacian, "solver": solver, "ranks": ranks,
        "tolerance": tolerance, "relative_error": relative_error,
    }  # fmt: skip
    given = {option: value for option, value in options.items() if value is not None}
    with nullcontext() if explain else output_folder(out, *FILES, wait=wait):
        found = read_source(
            source, root=data_root, seed=seed, header=header, weighted=not unweighted, column=score_column,
            whole=needs_more(score, given), coloured=figures and not explain,
        ).without_arcs()  # fmt: skip
        settings = score_settings(score, given, {"seed": seed, **found.known}, found.name)
        if explain:
            _explain(found.graph, score, settings, place, as_json)
            return
        part = Part.chosen(found.graph, component, component_of)
        with live_progress(as_json, out / "cache") as report:
            scored = partial(solve, score=score, settings=settings, cache_dir=out / "cache", device=place)
            solved = scored(found.graph, progress=partial(report, "edges scored"))
            summary = write_all(
                solved, found.name, out, gamma=gamma, part=part, spoken=part.of(solved, scored), classes=found.labels,
                class_names=found.class_names, draw=figures, table=csv, run=run_label(place, command_line()),
                report=report, **budget,
            )  # fmt: skip
    show(summary, as_json, [page(summary), *summary["left_out"], f"written to {out}: {', '.join(summary['files'])}"])


def check_component(component: str, node: str | None) -> None:
    """Refuse two ways to choose a component."""
    if node is not None and component != "largest":
        raise TadropedgeError(f"give --component {component} or --component-of {node}, not both")


def check_modes(q: int | None, desired_clusters: int | None, ranks: int | None, solver: str | None) -> None:
    """Refuse what is no number of clusters or ranks, and ranks where no solver takes them, before anything is read."""
    for name, value in (("q", q), ("desired_clusters", desired_clusters), ("ranks", ranks)):
        check_count(name, value)
    if ranks is not None and solver != "slepc":
        given = "no --solver" if solver is None else f"--solver {solver}"
        raise TadropedgeError(f"--ranks {ranks} is for --solver slepc, got {given}")


def needs_more(score: str, given: Collection[str]) -> bool:
    """Whether a score looks at more than the graph: features, or the number of classes where q is not given."""
    from tadropedge._old.scores.solve import settings_for

    clusters = {"q", "desired_clusters"} & set(given)
    return bool(settings_for(score, {"features": None} | ({} if clusters else {"q": None})))


def score_settings(score: str, given: dict[str, Any], known: dict[str, Any], name: str) -> dict[str, Any]:
    """What the user gave, and of what is known what the score takes; q is the number of classes unless it is given."""
    from tadropedge._old.scores.column import needs
    from tadropedge._old.scores.solve import check_settings, required, settings_for

    if settings_for(score, {"q": None}) and not {"q", "desired_clusters"} & set(given):
        if "classes" not in known:
            raise TadropedgeError(f"'{name}' has no classes to take q from: give --q or --desired-clusters")
        given = {"q": known["classes"], **given}
    for lacking in required(score):
        if lacking in ("features", "column") and lacking not in known:
            raise TadropedgeError(needs(score, lacking, f"'{name}'"))
    settings = settings_for(score, known) | given
    check_settings(score, settings)
    return settings


def _explain(graph: Graph, score: str, settings: dict[str, Any], device: str, as_json: bool) -> None:
    from tadropedge._old.score_report.terminal import explained
    from tadropedge._old.spectrum.plan import FACTS, explain

    if score != "aggregate":
        raise TadropedgeError(f"--explain is about eigensolvers, which the score {score!r} does not use")
    steps = explain(graph, device=device, **{name: value for name, value in settings.items() if name != "tolerance"})
    show([{name: getattr(step, name) for name in FACTS} for step in steps], as_json, [explained(steps)])
