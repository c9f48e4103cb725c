"""``tadropedge sparsify``: a weighted graph of few edges, and a certificate of how close it is to the whole one."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from tadropedge.cli.options import FileOptions, RunOptions, ScoreOptions, Share
from tadropedge.cli.output import Display, command_line, keeps, show
from tadropedge.errors import TadropedgeError

UNIFORM = "uniform"
CERTIFICATE = "certificate.json"
FILES = ("edges.csv", "graph.npz", "data.pt", CERTIFICATE)


def sparsify(
    graph: str,
    /,
    *,
    keep_ratio: Share = 0.5,
    connected: Annotated[bool, Parameter(negative="--no-connected")] = True,
    certificate: Annotated[bool, Parameter(negative="--no-certificate")] = True,
    out: Path = Path("sparsified"),
    scores: ScoreOptions = ScoreOptions(),
    files: FileOptions = FileOptions(),
    running: RunOptions = RunOptions(),
) -> None:
    """Keep few edges, with larger weights, so that the graph as a whole stays what it was; say how close it is.

    Writes edges.csv, graph.npz, data.pt (PyTorch Geometric) and certificate.json. The score is effective unless said;
    uniform keeps all edges alike.

    Args:
        graph: The name of a dataset, or a file: csv, tsv, npz, pt, mtx, GraphML, Parquet.
        keep_ratio: The expected share of kept edges.
        connected: Keep every component in one piece.
        certificate: Measure how close the result is.
        out: The folder of the results.
    """
    running.begin()
    name = scores.chosen("effective", files, more=(UNIFORM,))

    from tadropedge._support.atomic import write_atomic
    from tadropedge._support.folder import claim
    from tadropedge.cli.reading import read_source
    from tadropedge.files import write_graph
    from tadropedge.lab.reports.label import run_label
    from tadropedge.lab.reports.text import facts
    from tadropedge.sparsifier.certificate import certify
    from tadropedge.sparsifier.sparsify import sparsify as thin

    device = running.found_device()
    source = read_source(graph, files, running.seed)
    settings = {} if name == UNIFORM else source.settings(name, scores.given)
    claim(out, FILES)
    keeps(out)
    begun = time.monotonic()
    with Display(running.json) as display:
        thinned, kept = thin(
            source.graph, None if name == UNIFORM else name, keep_ratio=keep_ratio, connected=connected,
            seed=running.seed, cache_dir=out / "cache", device=device,
            progress=lambda done, total: display.step("scoring edges", done, total), **settings,
        )  # fmt: skip
        if not thinned.num_edges:
            raise TadropedgeError(f"--keep-ratio {keep_ratio:g}: with seed {running.seed} no edge of {graph!r} is kept")
        if certificate:
            display.step("measuring how close it is", 0, 1)
            measured = certify(source.graph, thinned)
        display.step("writing files", 0, 1)
        write_graph(out / "edges.csv", thinned)
        write_graph(out / "graph.npz", thinned, nodes=source.nodes)
        write_graph(out / "data.pt", thinned, nodes=source.nodes)
    document = {
        "graph": {"name": source.name, "read": source.read, "nodes": source.graph.num_nodes},
        "settings": {
            "score": name,
            "keep_ratio": keep_ratio,
            "connected": connected,
            "seed": running.seed,
            **scores.given,
        },
        "kept": int(kept.sum()),
        "edges": source.graph.num_edges,
        "certificate": {**asdict(measured), "epsilon": measured.epsilon} if certificate else None,
        "files": list(FILES),
        "run": run_label(device, command_line(), time.monotonic() - begun),
    }
    write_atomic(out / CERTIFICATE, (json.dumps(document, indent=2) + "\n").encode())
    show(document, running.json, [facts(_told(document)), f"written to {out}: {', '.join(FILES)}"])


def _told(document: dict[str, Any]) -> dict[str, str]:
    """What there is to say of it."""
    kept, edges, found = document["kept"], document["edges"], document["certificate"]
    words = {"kept": f"{kept:,} of {edges:,} edges ({kept / edges:.1%}), by the score {document['settings']['score']}"}
    if found is None:
        return words
    ratio = found["degree_ratio"]
    return {
        **words,
        "components": f"{found['components_after']:,}, before {found['components_before']:,}",
        "energy": f"x'L'x is {found['lambda_min']:.4g} to {found['lambda_max']:.4g} times x'Lx, whatever x is",
        "degrees": f"{ratio['mean']:.3g} of what they were on average, {ratio['least']:.3g} to {ratio['largest']:.3g}",
    }
