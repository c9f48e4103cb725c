"""What is said of a comparison: ``report.html``, one self-contained page, and the tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tadropedge._old.atomic import write_atomic
from tadropedge._old.comparison.advice import at_least, edge_words, reach_words
from tadropedge._old.comparison.card import DataCard
from tadropedge._old.comparison.cautions import cautions
from tadropedge._old.comparison.costs import KEY, Cost, read_costs
from tadropedge._old.comparison.evidence import Evidence
from tadropedge._old.comparison.figures import drawn, save_figures
from tadropedge._old.comparison.judging import KINDS, Against
from tadropedge._old.comparison.nulls import NULLS, false_alarms, nearest
from tadropedge._old.comparison.outlook import outlook
from tadropedge._old.comparison.paired import ALPHA
from tadropedge._old.comparison.panels import Panel, differences, methods
from tadropedge._old.comparison.results import (
    MEASURED,
    MethodRow,
    Protocol,
    Results,
    as_document,
    evidence_of,
    grouped,
    honest_label,
    judged,
    labelled,
    measured,
    paper_label,
    parse,
    title,
    write_csv,
    write_results,
)
from tadropedge._old.comparison.statistics import Honest, verdict
from tadropedge._old.comparison.winner import winner
from tadropedge._old.publish.page import embedded, run_lines, script
from tadropedge._old.publish.page import render as render_page
from tadropedge._old.publish.tables import Table
from tadropedge._old.publish.terminal import Shown, terminal_table
from tadropedge._old.publish.wording import NOTHING, counted, listed, p_value, percent, plus_minus, points, shown

SHORT = {"none": "none", "dropedge": "DropEdge", "budget": "budget", "matched": "DropEdge"}
LEGEND = (
    "against none: not dropping; DropEdge: tuned; budget: DropEdge tuned at the share of edges that the method keeps"
)
OUT = "out of reach"
STYLES = {"better": "bold green", "worse": "bold red", "failed": "bold red"}
FILES = ("results.json", "results.csv", "report.html", "figures/")  # what write_all writes


def write_all(results: Results, folder: Path) -> Path:
    """Write ``results.json``, ``results.csv``, the figures and ``report.html``; return the report's path."""
    write_results(results, folder / "results.json")
    write_csv(results, folder / "results.csv")
    for group in grouped(results.rows):
        save_figures(group, folder / "figures")
    return write_report(results, folder / "report.html")


def write_report(results: Results, path: str | Path) -> Path:
    """Write ``report.html`` in one step and return its path."""
    return write_atomic(Path(path), render(results).encode())


def render(results: Results) -> str:
    """The page as text: the advice, the tests, the pictures and the run.

    >>> row = MethodRow(dataset="cora", backbone="gcn", layers=2, method="cdf")
    >>> page = render(Results([row], {"commit": "0123abcd"}))
    >>> "no method was compared with DropEdge." in page, "0123abcd" in page
    (True, True)
    """
    results = parse(as_document(results))
    shown_run = {name: value for name, value in results.run.items() if name != KEY}
    datasets = ", ".join(dict.fromkeys(row.dataset for row in results.rows)) or "nothing"
    groups = [_group(rows, results) for rows in grouped(results.rows)]
    heading = f"Which edge dropping helps on {datasets}?"
    return render_page(
        "comparison/report.html.j2",
        heading=heading,
        groups=groups,
        winner=winner(results),
        facts=[*facts(results.data), *_budget(results)],
        run=run_lines(shown_run),
        script=script("publish/tables.js", "comparison/report.js"),
    )


def opening(rows: Sequence[MethodRow], results: Results) -> str:
    """The first words on a group: the advice, or for results of version 0.1 the verdict."""
    if results.advice is not None:
        return results.advice.words
    older = {label: row.honest for label, row in labelled(rows).items() if row.honest}
    return f"{verdict(older, evidence_of(rows))}."


def regime(results: Results) -> str:
    """What the map of regimes found in the case nearest to the data; empty where there is none."""
    return "" if results.advice is None else results.advice.regime


def _group(rows: Sequence[MethodRow], results: Results) -> dict[str, object]:
    """What the page says of one dataset, backbone and depth."""
    named, tests = labelled(rows), [test for row in rows for test in row.tests.values() if test.p_value is not None]
    known = any(test.evidence for test in tests)
    return {
        "title": title(rows),
        "opening": opening(rows, results),
        "regime": regime(results),
        "cautions": cautions(rows, results.protocol),
        "measure": measured(rows),
        "honest_label": honest_label(rows),
        "judged": bool(judged(rows)),
        "methods": _methods(rows, read_costs(results.run)),
        "costs": bool(read_costs(results.run)),
        "panels": differences(rows, measured(rows)),
        "outlook": outlook(rows, results.protocol),
        "tested": counted(len(tests), "test"),
        "older": any(row.tests and not row.against for row in rows),
        "chosen": any(test.choice_error for test in tests),
        "protocol": results.protocol,
        "procedure": procedure_words(results.protocol),
        "found": chosen_words(rows),
        "behind": behind(rows),
        "nulls": _nulls(max(one.seeds for one in tests), len(tests)) if tests and known else None,
        "paper_label": paper_label(rows),
        "paper": {label: row.paper_protocol for label, row in named.items() if row.paper_protocol},
        "pictures": {name: embedded(picture) for name, picture in drawn(rows, ["convergence"]).items()},
        "settings": _settings(rows),
    }


def facts(data: DataCard | None) -> list[tuple[str, str]]:
    """The card of the data, name by name; nothing for results of older versions, which did not record it."""
    if data is None:
        return []
    measure = MEASURED.get(None if data.measure == "accuracy" else data.measure, data.measure)
    sizes = "{} to train, {} to validate, {} to test".format(*data.split)
    drawn = [] if data.splits.startswith(sizes) else [("splits", data.splits)]
    homophily = [] if data.homophily is None else [("edge homophily", f"{data.homophily:.2f}")]
    return [
        ("nodes", f"{data.nodes:,}"),
        ("edges", f"{data.edges:,}"),
        ("degree", f"mean {data.mean_degree:.1f}, median {data.median_degree:g}, largest {data.largest_degree:,}"),
        *homophily,
        *([] if data.samples is None else [("samples", f"{data.samples:,}")]),
        ("classes", f"{data.classes:,}"),
        ("features", f"{data.features:,}"),
        ("components", _components(data)),
        ("split", sizes if drawn else data.splits),
        *drawn,
        ("measure", measure),
    ]


def _budget(results: Results) -> list[tuple[str, str]]:
    """The share that all methods keep, where it was fixed."""
    share = None if results.protocol is None else results.protocol.keep_ratio
    return [] if share is None else [("budget", f"every method that drops keeps {shown(100 * share)} % of the edges")]


def _components(data: DataCard) -> str:
    if data.components == 1:
        return "1"
    return f"{data.components:,}, the largest of {data.largest_component:,} nodes"


COSTS = ("scores\n(s, once)", "epoch\n(ms)", "training\n(s)")


def _methods(rows: Sequence[MethodRow], costs: Mapping[str, Cost]) -> Panel | None:
    """Every method with its mean, the budget that it chose, and what it costs."""
    cells = {}
    for label, row in labelled(rows).items():
        edges = [*([str(row.settings["method"])] if "method" in row.settings else []), *edge_words(row.settings)]
        if row.least_share is not None:
            kept_edges, dropping = f"at least\n{at_least(row.least_share)}", OUT
            cells[label] = (kept_edges, dropping, *[NOTHING] * (len(COSTS) if costs else 1))
            continue
        cost = costs.get(row.method)
        untold = ["not recorded"] * (len(COSTS) if costs else 1)
        spent = untold if cost is None else [_seconds(cost.scores), *_training(cost)]
        cells[label] = (percent(kept(row), 1), ", ".join(edges) or NOTHING, *spent)
    columns = ("kept edges\n(%)", "dropping chosen", *(COSTS if costs else ("costs",)))
    return methods(rows, measured(rows), columns, cells, left=(2,))


def kept(row: MethodRow) -> float | None:
    """The expected share of edges that a method keeps with the settings that were chosen for it.

    >>> names = {"dataset": "cora", "backbone": "gcn", "layers": 2, "settings": {"keep_prob": 0.7}}
    >>> [kept(MethodRow(**names, method=method)) for method in ("dropedge", "cdf")]
    [0.7, None]
    """
    shares = [row.settings.get(name) for name in ("kept_share", "keep_ratio")]
    if row.method == "dropedge":
        shares.append(row.settings.get("keep_prob"))
    if row.method == "original":
        shares.append(1.0)
    return next((float(share) for share in shares if isinstance(share, float | int)), None)


def _training(cost: Cost) -> tuple[str, str]:
    return f"{1000 * cost.epoch:.3g}", _seconds(cost.training)


def _seconds(seconds: float) -> str:
    return (
        "0"
        if seconds == 0
        else "< 0.01"
        if seconds < 0.005
        else f"{seconds:.2f}"
        if seconds < 10
        else f"{seconds:,.0f}"
    )


def _reference(one: Honest) -> str:
    """The mean of the reference; rows of version 0.1 do not say it."""
    return percent(one.reference_mean) if isinstance(one, Against) else NOTHING


def _lines(rows: Sequence[MethodRow]) -> Iterator[tuple[str, str, Honest]]:
    """A line for each test, and one for a method without any: label, kind of reference, and what was found."""
    for label, row in labelled(rows).items():
        tests = row.tests
        yield from ((label, kind, test) for kind, test in tests.items())
        if not tests and row.honest is not None:
            yield label, "", row.honest


def chosen_words(rows: Sequence[MethodRow]) -> str:
    """What ``auto`` chose, with the settings of its dropping; nothing where it did not take part.

    >>> settings = {"method": "degree-proportional", "keep_ratio": 0.3, "dropout": 0.5}
    >>> chosen_words([MethodRow(dataset="cora", backbone="gcn", layers=2, method="auto", settings=settings)])
    'auto chose degree-proportional with keep_ratio 0.3.'
    """
    said = []
    for label, row in labelled(rows).items():
        if "method" in row.settings:
            edges = edge_words(row.settings)
            said.append(f"{label} chose {row.settings['method']}{f' with {listed(edges)}' if edges else ''}.")
    return " ".join(said)


def procedure_words(protocol: Protocol | None) -> str:
    """How often this procedure errs and what it finds, as simulated with the numbers of this run."""
    if protocol is None or protocol.simulated is None:
        return ""
    found = protocol.simulated
    power = [
        f"{points(effect).removeprefix('+')} points with {percent(chance, 0)} %"
        for effect, chance in zip(found.effects, found.power, strict=True)
    ]
    held = "" if found.level >= ALPHA else f", because only p-values of at most {found.level:.4f} decide"
    least = (
        "No gain, however large, is found with a chance of 80 %"
        if found.detectable is None
        else f"A true gain of {points(found.detectable).removeprefix('+')} points is found with a chance of 80 %"
    )
    return (
        f"Simulated as a whole {found.families} times with the numbers of this run, choice of settings included "
        f"({counted(protocol.trials, 'trial')} on {counted(protocol.choose_splits, 'split')}, "
        f"{counted(protocol.seeds, 'seed')}, {counted(found.tests, 'test')}), this procedure calls something better or "
        f"worse, although nothing is, in {percent(found.false_alarms, 1)} ± {percent(found.error, 1)} % of families"
        f"{held} (ignoring the choice, it would be {percent(found.without_choice, 1)} %). {least}; a gain of "
        f"{', '.join(power)}. Validation noise with heavy tails, which the simulation does not have, causes more "
        "false alarms (see Statistics in the documentation)."
    )


def _settings(rows: Sequence[MethodRow]) -> Table | None:
    """The settings of every method and reference."""
    chosen = {label: row.settings for label, row in labelled(rows).items() if row.settings}
    for row in rows:
        chosen |= {test.reference: test.settings for test in row.against.values() if test.reference not in chosen}
    if not chosen:
        return None
    names = list(dict.fromkeys(name for settings in chosen.values() for name in settings))
    cells = [(label, *(shown(settings.get(name)) for name in names)) for label, settings in chosen.items()]
    titles = ["chosen method" if name == "method" else name for name in names]  # auto's, beside its own name
    return Table(f"settings, {title(rows)}", ["method", *titles], cells)


def _nulls(seeds: int, tests: int) -> dict[str, object]:
    """Rates of false alarms, measured nearest to this comparison: where 5 % is held, and where it is not."""
    near, rates = nearest(seeds, tests), false_alarms(seeds, tests)
    columns = ("null", "mean difference 0, and replicates are", "false alarms (%)")
    where = f"{counted(near[0], 'replicate')} and {counted(near[1], 'test')}"
    rows = {
        one: [(name, NULLS[name].words, percent(rate, 1)) for name, rate in rates.items() if NULLS[name].held == one]
        for one in (True, False)
    }
    held, unheld = (
        Table(f"{words}, {where}", columns, rows[one], left=(0, 1))
        for one, words in ((True, "5 % is held"), (False, "5 % is not always held"))
    )
    return {"where": where, "held": held, "unheld": unheld}


def behind(rows: Sequence[MethodRow], kinds: Sequence[str] = tuple(KINDS)) -> Table | None:
    """What stands behind the tests of a group against some ``kinds``; ``None`` where nothing is known of it.

    >>> behind([MethodRow(dataset="cora", backbone="gcn", layers=2, method="cdf")]) is None
    True
    """
    proofs: list[tuple[str, str, Honest, Evidence]] = []
    for label, row in labelled(rows).items():
        tests = {kind: test for kind, test in row.tests.items() if kind in kinds}
        proofs += [(label, SHORT[kind], test, test.evidence) for kind, test in tests.items() if test.evidence]
        if not row.tests and row.evidence and row.honest:
            proofs.append((label, "", row.honest, row.evidence))
    columns = (
        *("method", "against", f"worst\n{measured(rows)}", "worst\ndifference", "collapsed", "could\ncollapse"),
        *("finds\n(80 %)", "seeds\nfor half"),
    )
    cells = [_behind(*proof) for proof in proofs]
    words = "what the replicates can and cannot show (in brackets: which replicate)"
    if len({line[1] for line in cells if line[1]}) < 2:  # one kind of reference needs no column
        one = [(label, *rest) for label, _, *rest in (columns, *cells)]
        return Table(words, one[0], one[1:]) if cells else None
    return Table(words, columns, cells, left=(0, 1))


def _behind(label: str, against: str, judged: Honest, one: Evidence) -> tuple[str, ...]:
    gap = f"{points(one.worst_difference)} ({one.worst_difference_replicate})"
    half = (
        NOTHING if one.detectable is None else "more splits" if one.seeds_for_half is None else str(one.seeds_for_half)
    )
    return (
        *(label, against, f"{percent(one.worst)} ({one.worst_replicate})"),
        *(NOTHING if one.worst_difference is None else gap, f"{one.collapses} of {judged.seeds}"),
        *(f"≤ {percent(one.collapse_rate, 0)} %", points(one.detectable).removeprefix("+"), half),
    )


def told(results: Results) -> Iterator[Shown | str]:
    """What a comparison found, as the terminal shows it: the advice, the tables, and how to train what it advises."""
    for rows in grouped(results.rows):
        yield opening(rows, results)
        if said := regime(results):
            yield said
        yield from tables(rows, results.protocol)
    if (made := winner(results)) is not None:
        yield f"train it: {made.command}"


def tables(rows: Sequence[MethodRow], protocol: Protocol | None = None) -> list[Shown | str]:
    """What the terminal shows of one dataset, backbone and depth: every test, and what stands behind the first ones."""
    made, careful = behind(rows, kinds=("none", "matched")), "\n".join(cautions(rows, protocol))
    if made is None:
        return [table(rows, protocol), *([careful] if careful else [])]
    return [table(rows, protocol), terminal_table(made, below=careful)]


def table(rows: Sequence[MethodRow], protocol: Protocol | None = None) -> Shown:
    """Every test in the terminal, for one dataset, backbone and depth, with 95 % intervals.

    >>> table([MethodRow(dataset="cora", backbone="gcn", layers=2, method="cdf")]).row_count
    0
    """
    cells, last = [], ""
    out = [label for label, row in labelled(rows).items() if row.least_share is not None]
    for label, kind, one in _lines(rows):
        again, last = label == last, label
        mean = plus_minus(percent(one.mean), one.low, one.high)
        gap = plus_minus(points(one.difference), one.difference_low, one.difference_high)
        end = (_reference(one), gap, p_value(one.p_value), one.outcome or "")
        cells.append(("" if again else label, "" if again else mean, SHORT.get(kind, ""), *end))
    cells += [(label, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, OUT) for label in out]
    columns = ("method", f"test\n{measured(rows)}", "against", "its\n(%)", "difference\n(points)", "p", "verdict")
    fair = any(row.against for row in rows)
    reach = f"{told}." if (told := reach_words(rows)) else ""
    words = (honest_label(rows), LEGEND if fair else "", reach, chosen_words(rows), procedure_words(protocol))
    below = "\n".join(filter(None, words))
    return terminal_table(Table(title(rows), columns, cells, left=(0, 2, 6)), STYLES, below)
