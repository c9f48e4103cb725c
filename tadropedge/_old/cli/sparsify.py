"""``tadropedge sparsify``: a weighted graph of few edges, and a certificate of how close it is to the whole one."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from tadropedge._old.checks import name_or_path
from tadropedge._old.cli.options import (
    GRAPH_FILES,
    LAPLACIANS,
    Device_,
    Json_,
    Out_,
    Plugin_,
    Root_,
    ScoreColumn_,
    Seed_,
    Wait_,
    check_own_column,
    check_score,
    chosen_device,
    output_folder,
)
from tadropedge._old.cli.progress import Report, announced, command_line, live_progress
from tadropedge._old.cli.reading import read_source
from tadropedge._old.cli.report import show
from tadropedge._old.cli.weights import (
    SOLVER,
    Clusters_,
    Ranks_,
    RelativeError_,
    Tolerance_,
    check_modes,
    score_settings,
)
from tadropedge._old.errors import TadropedgeError, lookup
from tadropedge._old.registry import DATASETS, SCORES

if TYPE_CHECKING:  # torch is loaded when a graph is, not for --help
    from rich.table import Table

    from tadropedge._old.certificate import Certificate
    from tadropedge._old.data.files import Contents
    from tadropedge._old.pencil import Extreme
    from tadropedge._old.sparsifier import Sparsified

GRAPH = f"one of {', '.join(DATASETS)}, or {GRAPH_FILES}"
SCORE = (
    f"uniform, one of {', '.join(SCORES)}, or one that you registered (default effective, or column if there is one)"
)
CERTIFICATE, UNIFORM = "certificate.json", "uniform"


@announced
def sparsify_command(
    graph: Annotated[str, Argument(metavar="GRAPH", help=GRAPH, show_default=False)],
    score: Annotated[str | None, Option(metavar="NAME", help=SCORE, show_default=False)] = None,
    keep_ratio: Annotated[float, Option(metavar="SHARE", help="the expected share of kept edges, up to 1")] = 0.1,
    q: Annotated[int | None, Option(metavar="N", help="clusters per component (datasets: number of classes)")] = None,
    desired_clusters: Clusters_ = None,
    laplacian: Annotated[str | None, Option(metavar=LAPLACIANS, help="of aggregate (default combinatorial)")] = None,
    solver: Annotated[str | None, Option(metavar="NAME", help=SOLVER)] = None,
    ranks: Ranks_ = None,
    tolerance: Tolerance_ = None,
    relative_error: RelativeError_ = None,
    score_column: ScoreColumn_ = None,
    header: Annotated[bool | None, Option(help="whether the file's first line names columns")] = None,
    unweighted: Annotated[bool, Option("--unweighted", help="ignore edge weights and further columns")] = False,
    certificate: Annotated[bool, Option(help="measure how close the result is")] = True,
    seed: Seed_ = 0,
    device: Device_ = "cpu",
    data_root: Root_ = None,
    out: Out_ = Path("sparsified"),
    wait: Wait_ = False,
    plugin: Plugin_ = None,
    as_json: Json_ = False,
) -> None:
    """Keep few edges, with larger weights, so that the graph as a whole stays what it was; say how close it is.

    Writes edges.csv, graph.npz, data.pt (PyTorch Geometric) and certificate.json. If it is interrupted, run the same
    command again to resume; it ends with the same files.
    """
    score = score if score is not None else "effective" if score_column is None else "column"
    lookup("score", score, dict.fromkeys((UNIFORM, *SCORES)))  # not what it stands for, which would load torch
    check_own_column(score_column, graph)
    check_score(score, score_column)
    source = name_or_path("dataset or file", graph, DATASETS)
    check_modes(q, desired_clusters, ranks, solver)

    from tadropedge._old.certificate import certify
    from tadropedge._old.checks import check_seed
    from tadropedge._old.export import WRITERS
    from tadropedge._old.publish.label import run_label
    from tadropedge._old.sparsifier import check_ratio, draw, edge_importance

    check_ratio(keep_ratio)
    check_seed(seed)
    place = chosen_device(device)
    options = {
        "q": q, "desired_clusters": desired_clusters, "laplacian": laplacian, "solver": solver,
        "tolerance": tolerance, "relative_error": relative_error, "ranks": ranks,
    }  # fmt: skip
    given = {option: value for option, value in options.items() if value is not None}
    with output_folder(out, *WRITERS, CERTIFICATE, "cache/", wait=wait):
        begun = time.monotonic()
        found = read_source(
            source, root=data_root, seed=seed, header=header, weighted=not unweighted, column=score_column
        )
        name, read = found.name, found.graph
        settings = given if score == UNIFORM else score_settings(score, given, found.known, name)
        with live_progress(as_json, out / "cache") as report:
            how: dict[str, Any] = {"cache_dir": out / "cache", "device": place}
            importance = edge_importance(read, score, settings, progress=partial(report, "edges scored"), **how)
            sparse = draw(read, keep_ratio, importance, seed)
            if not sparse.num_edges:
                raise TadropedgeError(f"no edge of '{name}' was kept with keep_ratio={keep_ratio:g} and seed={seed}")
            measured = certify(read, sparse, progress=partial(report, "edges judged"), **how) if certificate else None
            document = {
                "graph": {"name": name, "nodes": read.num_nodes, "edges": read.num_edges},
                "settings": {"score": score, "keep_ratio": keep_ratio, "seed": seed, **_told(settings, score_column)},
                "edges": sparse.num_edges,
                "certificate": None if measured is None else plain(measured),
                "files": [*WRITERS, CERTIFICATE],
                "run": run_label(place, command_line(), time.monotonic() - begun),
            }
            _write(out, sparse, found.contents, document, report)
    written = f"written to {out}: {', '.join([*WRITERS, CERTIFICATE])}"
    show(document, as_json, [_page(document, measured), written])


def _told(settings: dict[str, Any], column: str | None) -> dict[str, Any]:
    """The settings that JSON can hold, and the column by its name."""
    told = {name: value for name, value in settings.items() if name not in ("features", "column")}
    return told | ({"score_column": column} if "column" in settings else {})


def _write(
    folder: Path, found: Sparsified, contents: Contents | None, document: dict[str, Any], report: Report
) -> None:
    """Every file whole or not at all, the certificate last: where it is, all others belong to it."""
    from tadropedge._old.atomic import write_atomic
    from tadropedge._old.export import WRITERS

    (folder / CERTIFICATE).unlink(missing_ok=True)
    for done, (file, write) in enumerate(WRITERS.items()):
        report("files written", done, len(WRITERS) + 1)
        write(folder / file, found, contents)
    write_atomic(folder / CERTIFICATE, (json.dumps(document, indent=2) + "\n").encode())
    report("files written", len(WRITERS) + 1, len(WRITERS) + 1)


def plain(found: Certificate) -> dict[str, Any]:
    """A certificate ready for JSON, where what is not known is ``null``."""
    values = asdict(found)
    for name in ("lambda_min", "lambda_max"):
        kept = {key: value if math.isfinite(value) else None for key, value in values[name].items()}
        values[name] = {**kept, "converged": getattr(found, name).converged}
    return values


def _page(document: dict[str, Any], found: Certificate | None) -> Table:
    from rich.table import Table
    from rich.text import Text

    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, words in _facts(document, found):
        facts.add_row(Text(name), Text(words))
    return facts


def _facts(document: dict[str, Any], found: Certificate | None) -> Iterator[tuple[str, str]]:
    graph, settings = document["graph"], document["settings"]
    yield "graph", f"{graph['name']}: {graph['nodes']:,} nodes, {graph['edges']:,} edges"
    share = document["edges"] / graph["edges"]
    score = f"column {settings['score_column']}" if "score_column" in settings else f"score {settings['score']}"
    yield "kept", f"{document['edges']:,} edges ({share:.2%}) by the {score}, seed {settings['seed']}"
    if found is None:
        return
    parted = found.components_after > found.components_before
    yield "λ_min", "0, exactly: components fell apart" if parted else _words(found.lambda_min)
    yield "λ_max", _words(found.lambda_max)
    yield "", "all xᵀL'x / xᵀLx lie from λ_min to λ_max, with the Laplacians L before and L' after"
    isolated = f"isolated nodes {found.isolated_before:,} before, {found.isolated_after:,} after"
    yield "components", f"{found.components_before:,} before, {found.components_after:,} after; {isolated}"
    ratio = found.degree_ratio
    middle = ", ".join(f"{name} {ratio[name]:.3g}" for name in ratio if name not in ("least", "largest"))
    yield "degrees", f"after over before: {middle}; from {ratio['least']:.3g} to {ratio['largest']:.3g}"


def _words(one: Extreme) -> str:
    """An eigenvalue with what is known of its error.

    >>> from tadropedge._old.pencil import UNKNOWN, Extreme
    >>> _words(Extreme(value=2.0, error=1e-4, low=2.0, high=2.2))
    '2 ± 0.0001; between 2 and 2.2 but for a chance of one in a million'
    >>> _words(UNKNOWN)
    'not found: between 0 and inf'
    """
    if math.isnan(one.value):
        return f"not found: between {one.low:.4g} and {one.high:.4g}"
    error = f" ± {one.error:.1g}" if math.isfinite(one.error) else ", of an unknown error"
    if one.high - one.low <= 2 * one.error or f"{one.low:.4g}" == f"{one.high:.4g}":
        return f"{one.value:.4g}{error}"
    far = "" if one.converged else " (not converged)"
    ends = f"between {one.low:.4g} and {one.high:.4g} but for a chance of one in a million"
    return f"{one.value:.4g}{error}{far}; {ends}"
