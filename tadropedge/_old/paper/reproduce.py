"""The driver: run items of the paper and keep everything they gave in one folder.

``results.json``, one csv per item, ``figures/``, ``report.html``, ``README.md`` and ``claims.md`` are written after
each item, each in one step. Trainings and measurements live in ``studies/``, edge scores in ``cache/``: if a run is
interrupted, the same call resumes it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

from tadropedge._old.atomic import write_atomic
from tadropedge._old.checks import check_integer, check_number, check_seed
from tadropedge._old.errors import RepeatedEigenvalueWarning, TadropedgeError
from tadropedge._old.paper.check import LEAST, SecondLook, last_check
from tadropedge._old.paper.document import Document, Entry, read_document, write_document, write_rows
from tadropedge._old.paper.item import Bench, Item, Report, silent
from tadropedge._old.paper.recipe import Recipe, load_recipe
from tadropedge._old.paper.registry import ITEMS, item_module, named_items
from tadropedge._old.paper.report import write_pages
from tadropedge._old.publish.label import run_label

QUICK = "quick preset: far fewer trials, seeds or epochs than the paper, too few to judge"
LEAST_SHARE = 1e-6  # of a check
FILES = ("results.json", "report.html", "README.md", "claims.md", "figures/")  # beside one csv per item


@dataclass(frozen=True)
class Run:
    """How items are run; see the options of ``tadropedge reproduce``."""

    out: Path
    preset: str = "quick"
    _: KW_ONLY
    device: str = "cpu"
    root: Path | None = None
    seed: int = 0
    parts: Sequence[str] = ()
    again: bool = False
    check: float | None = None  # the share of what is finished that is trained and measured again
    check_batch: int = LEAST  # trainings that are then made together, at least
    command: str = "tadropedge reproduce"
    report: Report = silent
    say: Callable[[str], None] = print


def reproduce(name: str, run: Run) -> Document:
    """Run one item, or all of them, and return what the folder then holds."""
    names = named_items(name)
    check_seed(run.seed)
    if run.parts and names not in (["table1"], ["table2"]):
        raise TadropedgeError(f"--part {run.parts[0]!r} belongs to table1 or table2, got {name!r}")
    recipes = {item: load_recipe(item, run.preset) for item in names}
    document = stored(run.out)
    if run.check is not None:
        return _check(document, recipes, run)
    if not run.again:
        _check_presets(document, recipes, run)
    for item, recipe in recipes.items():
        if not run.again and not run.parts and _finished(document.get(item), recipe, run.seed):
            run.say(f"{item} is finished in '{run.out}' and not run again (--again does)")
            continue
        entry = run_item(recipe, run)
        document = {**stored(run.out), item: entry}  # read again: another process may have added an item
        write_folder(document, run.out)
    return document


def _check(document: Document, recipes: Mapping[str, Recipe], run: Run) -> Document:
    """Make a sample of finished items again, and say on the pages how it agrees with what is recorded."""
    share = check_number("--check (a share)", run.check, LEAST_SHARE, 1)
    least = check_integer("--check-batch", run.check_batch, least=1)
    if run.parts or run.again:
        raise TadropedgeError("--check looks at whole items that are finished: leave --part and --again out")
    for item, recipe in recipes.items():
        if not _finished(document.get(item), recipe, run.seed):
            raise TadropedgeError(
                f"{item} is not finished in '{run.out}' with preset {run.preset!r} and seed {run.seed}: "
                "run it without --check first"
            )
    for item, recipe in recipes.items():
        with _known_repeats():
            found = SecondLook(_bench(recipe, run), share, least).run()
        run.say(f"{item}: {found.sentence}")
        document = stored(run.out)
        entry = document[item]
        document[item] = replace(entry, run={**entry.run, "check": found.sentence})
        write_folder(document, run.out)
    return document


def _bench(recipe: Recipe, run: Run) -> Bench:
    return Bench(
        recipe, run.out, device=run.device, root=run.root, seed=run.seed, report=run.report, parts=tuple(run.parts)
    )


@contextmanager
def _known_repeats() -> Iterator[None]:
    """Without warnings of eigenvalues that repeat: the notes of Table 1 say it once for all of the paper."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepeatedEigenvalueWarning)
        yield


def stored(out: Path) -> Document:
    """What a folder holds; nothing where there is none."""
    path = out / "results.json"
    return read_document(path) if path.exists() else {}


def run_item(recipe: Recipe, run: Run) -> Entry:
    """Run one item and write its pictures and its table."""
    started = time.monotonic()
    bench = _bench(recipe, run)
    with _known_repeats():
        found: Item = item_module(recipe.name).run(bench)
    figures = []
    for stem, content in found.figures.items():
        name = stem if stem.startswith(recipe.name) else f"{recipe.name}-{stem}"
        figures.append(write_atomic(run.out / "figures" / f"{name}.png", content).name)
    write_rows(found.rows, run.out / f"{recipe.name}.csv")
    verdicts = found.verdicts
    if is_quick(recipe):
        verdicts = [replace(verdict, reason=f"{verdict.reason} ({QUICK})") for verdict in verdicts]
    checked = last_check(bench)
    told = {} if checked is None else {"check": checked.sentence}
    return Entry(found.rows, verdicts, found.notes, figures, run=_run_info(found, recipe, run, started) | told)


def write_folder(document: Document, out: Path) -> Path:
    """Write the pages, then ``results.json``, which makes an item count as finished; return the page's path."""
    document = {name: document[name] for name in ITEMS if name in document}
    page = write_pages(document, out)
    write_document(document, out / "results.json")
    return page


def is_quick(recipe: Recipe) -> bool:
    """Whether this recipe does less than the paper's preset; some items have but one size."""
    return recipe.preset == "quick" and recipe.settings != load_recipe(recipe.name, "paper").settings


def _finished(entry: Entry | None, recipe: Recipe, seed: int) -> bool:
    wanted = {"preset": recipe.preset, "fingerprint": recipe.fingerprint, "seed": seed}
    return entry is not None and entry.complete and all(entry.run[key] == value for key, value in wanted.items())


def _check_presets(document: Document, recipes: Iterable[str], run: Run) -> None:
    """Results of one preset are not replaced by those of the other unless asked."""
    for item in recipes:
        if item in document and (there := document[item].run["preset"]) != run.preset:
            raise TadropedgeError(
                f"{item} is in '{run.out}' with preset {there!r}, and {run.preset!r} would replace it; "
                "take --again, or another --out"
            )


def _run_info(found: Item, recipe: Recipe, run: Run, started: float) -> dict[str, Any]:
    """What depends on the run; the seconds of an item with parts are those of all its runs together."""
    parts = found.run.get("seconds_of", {})
    summed = sum(seconds for phases in parts.values() for seconds in phases.values())
    return {
        "preset": recipe.preset,
        "quick": is_quick(recipe),
        "complete": found.complete,
        "seconds": round(summed or time.monotonic() - started, 1),
        **found.run,
        "seed": run.seed,
        "fingerprint": recipe.fingerprint,
        **run_label(run.device, run.command),
    }
