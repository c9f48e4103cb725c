"""``tadropedge datasets`` and ``tadropedge methods``: what has a name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tadropedge.cli.options import RunOptions
from tadropedge.cli.output import show
from tadropedge.lab.registry import DATASETS, MEASURES, NETWORKS
from tadropedge.registry import OPTIONS, RULES, SCORES, USES

EXAMPLES = (
    "original, dropedge@0.7, degree-proportional@0.1, cdf, inverse-cdf, jaccard-proportional:weighted, "
    "effective-cutoff:connected, gat+dropedge, degree-proportional:consistent, dropedge@0.1:finish, auto"
)


def datasets(*, running: RunOptions = RunOptions()) -> None:
    """List the datasets that have names, and say which are on this machine.

    Files of your own need no name: see tadropedge compare --help.
    """
    running.begin()
    from tadropedge.lab.data.pyg import SETS, data_folder, raw_folder
    from tadropedge.lab.reports.text import Table, terminal_table

    folder = data_folder()
    cited = {"cora": "Planetoid/Cora", "citeseer": "Planetoid/CiteSeer", "pubmed": "Planetoid/PubMed"}
    listed: list[dict[str, Any]] = []
    for name in (*DATASETS, *SETS):
        known = SETS.get(f"pyg:{cited[name]}" if name in cited else name)
        sizes = dict(zip(("nodes", "edges", "features", "classes"), known.sizes, strict=True)) if known else {}
        here = known is None or raw_folder(known.name) is not None
        listed.append({"name": name, **sizes, "use": known.use if known else _first_line(DATASETS[name]), "here": here})
    rows = [
        (entry["name"], *(f"{entry[key]:,}" if key in entry else "" for key in ("nodes", "edges", "classes")),
         "yes" if entry["here"] else "")
        for entry in listed
    ]  # fmt: skip
    table = Table("", ("name", "nodes", "edges", "classes", "here"), rows)
    told: list[Any] = [
        terminal_table(table),
        f"Those that are not here are looked for in {folder} (TADROPEDGE_DATA names another folder), and downloaded by "
        "PyTorch Geometric when they are first used. Those without numbers are made from a seed.",
    ]
    show({"folder": str(folder), "datasets": listed}, running.json, told)


def methods(*, running: RunOptions = RunOptions()) -> None:
    """List what methods are made of: scores, rules, uses, options, ways of training, networks, your plug-ins' too."""
    running.begin()
    from tadropedge.dropping import grammar
    from tadropedge.lab.candidate import WAYS

    kinds: dict[str, Mapping[str, Any]] = {
        "scores": SCORES, "rules": RULES, "uses": USES, "options": OPTIONS, "networks": NETWORKS, "measures": MEASURES,
    }  # fmt: skip
    listed = {kind: {name: _first_line(found[name]) for name in found} for kind, found in kinds.items()}
    listed["ways of training"] = WAYS
    form = f"[NETWORK+]DROPPING[:WAY…], where DROPPING is {grammar().partition(';')[0]}"
    show({"form": form, **listed, "examples": EXAMPLES.split(", ")}, running.json, _told(form, listed))


def _told(form: str, listed: Mapping[str, Mapping[str, str]]) -> Iterator[Any]:
    from tadropedge.lab.reports.text import facts

    yield f"A method is {form}.\n"
    for kind, entries in listed.items():
        yield kind
        yield facts({f"  {name}": words for name, words in entries.items()})
        yield ""
    yield f"Examples: {EXAMPLES}"


def _first_line(thing: object) -> str:
    """The first sentence of a docstring, without marks of code.

    >>> _first_line(SCORES["degree"]).startswith("1/d_u + 1/d_v")
    True
    """
    words = (inspect.getdoc(thing) or "").partition("\n\n")[0]
    words = re.sub(r":\w+:`([^`]*)`", r"\1", words).replace("``", "").replace(", float64 [M]", "")
    return " ".join(words.split()) or "(no docstring)"
