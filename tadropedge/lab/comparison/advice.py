"""What to do, the line of code that does it, and how sure that is: facts here, sentences in ``words.txt.j2``."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tadropedge._support.checks import settings_of
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.comparison.claims import controls_of
from tadropedge.lab.comparison.results import ORIGINAL, Cheaper, Comparison, Plain, Row, Yardstick
from tadropedge.lab.networks.network import RATES
from tadropedge.lab.reports.render import render
from tadropedge.lab.search.space import OF_DROPPING
from tadropedge.lab.statistics import LEAST, ROUNDING, Replicate, Verdict
from tadropedge.registry import SCORES

AT_MOST = 2 / 3  # of the time or memory of not dropping, to count as cheaper
FALL = 0.05  # below the median: five points, and
SPREADS = 5.0  # five robust standard deviations
FEW = 0.25  # of the replicates: what falls more often is the spread


def answered(rows: Sequence[Row], run: Plain, yardstick: Yardstick | None = None) -> Comparison:
    """The comparison of these rows, with what costs less and with the answer; ``run`` says the margin."""
    found = tuple(cheaper(rows, run["margin"]))
    results = Comparison(rows=tuple(rows), yardstick=yardstick, cheaper=found, run=run)
    return replace(results, answer=answer(results))


def answer(results: Comparison) -> dict[str, str]:
    """``do``, ``code`` and ``sure``, in sentences; ``code`` is a line of Python and, of a comparison, a command."""
    found = facts(results)
    do, sure = (" ".join(render("comparison/words.txt.j2", part=part, **found).split()) for part in ("do", "sure"))
    return {"do": do, "code": "\n".join(found["code"].values()), "sure": sure}


def facts(results: Comparison) -> dict[str, Any]:
    """What the answer says, as a dictionary.

    ``kind`` is one of ``failed`` (there is nothing to compare), ``few`` (replicates), ``fixed`` (one split),
    ``yardstick`` (the reference is no better than an MLP), ``better`` (and better than all controls), ``uncontrolled``
    (better than not dropping, but not than all of its controls, or they were not trained), ``cheaper``, ``worse``,
    ``same`` and ``undecided``. ``use`` is the candidate to take.
    """
    verdicts = {row.candidate: row.against[ORIGINAL] for row in family(results)}
    kind, use = _kind(results, verdicts)
    row = results.row(use)
    return {
        "kind": kind,
        "use": use,
        "verdict": verdicts.get(use),
        "unbeaten": unbeaten(row),
        "controls": [name for name in row.against if name != ORIGINAL],
        "cheaper": next((one for one in results.cheaper if one.candidate == use), None),
        "needed": max((one.needed or 0 for one in verdicts.values() if one.word == "undecided"), default=0),
        "closest": max(verdicts, key=lambda name: verdicts[name].difference, default=None),
        "undecided": [name for name, one in verdicts.items() if one.word == "undecided"],
        "verdicts": verdicts,
        "fallen": next((one for one in fallen(results) if one["candidate"] == use), None),
        "replicates": results.replicates,
        "least": LEAST,
        "margin": results.margin,
        "yardstick": results.yardstick,
        "row": row,
        "code": code(row, results.run),
    }


def family(results: Comparison) -> list[Row]:
    """The rows that were held against not dropping, all in one family of claims."""
    return [row for row in results.rows if ORIGINAL in row.against]


def unbeaten(row: Row) -> list[str]:
    """The controls of a candidate that it is not better than."""
    return [name for name, one in row.against.items() if name != ORIGINAL and one.word != "better"]


def _mean_validation(row: Row) -> float:
    """Over the starts whose score is a number: the test score of one split must not choose."""
    scores = [one.validation for one in row.replicates if not math.isnan(one.validation)]
    return sum(scores) / len(scores) if scores else -math.inf


def _kind(results: Comparison, verdicts: Mapping[str, Verdict]) -> tuple[str, str]:
    """Which situation this is, and the candidate to use in it."""
    finished = [row.candidate for row in results.rows if not all(map(math.isnan, row.tests))]
    if ORIGINAL not in finished or (len(results.rows) > 1 and len(finished) == 1):
        return "failed", ORIGINAL
    if results.run.get("split") == "fixed":
        return "fixed", max(results.rows, key=_mean_validation).candidate
    if results.replicates < LEAST:
        return "few", ORIGINAL
    if results.yardstick is not None and not results.yardstick.difference["low"] > 0:
        return "yardstick", ORIGINAL
    winners = [name for name, one in verdicts.items() if one.word == "better"]
    controlled = [
        name for name in winners if len(results.row(name).against) > 1 or not controls_of(Candidate.parse(name))
    ]
    proven = [name for name in controlled if not unbeaten(results.row(name))]
    for kind, names in (("better", proven), ("uncontrolled", winners)):
        if names:
            return kind, max(names, key=lambda name: verdicts[name].difference)
    if results.cheaper:
        gains = {one.candidate: max(one.time_factor or 0.0, one.memory_factor or 0.0) for one in results.cheaper}
        return "cheaper", max(gains, key=gains.__getitem__)
    words = {one.word for one in verdicts.values()}
    kind = "undecided" if "undecided" in words else "same" if "same" in words else "worse"
    return kind, ORIGINAL


def cheaper(rows: Sequence[Row], margin: float) -> list[Cheaper]:
    """The candidates that are no worse than not dropping and take at most two thirds of its time or memory.

    No worse: the lower end of the interval lies above −``margin``.
    """
    taken = {row.candidate: ((row.seconds_per_epoch or {}).get("train"), row.peak_bytes) for row in rows}
    found = []
    for row in rows:
        if ORIGINAL in row.against and row.against[ORIGINAL].low > -margin:
            both = zip(taken[ORIGINAL], taken[row.candidate], strict=True)
            time, memory = (reference / own if reference and own else None for reference, own in both)
            if max(time or 0.0, memory or 0.0) >= 1 / AT_MOST:
                found.append(Cheaper(candidate=row.candidate, time_factor=time, memory_factor=memory))
    return found


def fallen(results: Comparison) -> list[dict[str, Any]]:
    """The candidates some of whose replicates fell far below the others, whatever their interval says.

    A replicate has fallen if its difference from not dropping (of ``original`` its score) lies below the median by
    more than five points and more than five robust standard deviations, 1.4826 times the median distance from the
    median, as at most a quarter do. ``by`` is how far the deepest fell.
    """
    found = []
    reference = results.row(ORIGINAL).tests if ORIGINAL in results else None
    for row in results.rows:
        tests = np.asarray(row.tests)
        if reference is not None and row.candidate != ORIGINAL and len(reference) == len(tests):
            tests = tests - np.asarray(reference)
        tests = tests[~np.isnan(tests)]
        if len(tests) < LEAST:
            continue
        middle = float(np.median(tests))
        spread = 1.4826 * float(np.median(np.abs(tests - middle)))
        below = middle - tests[middle - tests > max(FALL, SPREADS * spread) + ROUNDING]
        if 0 < len(below) <= FEW * len(tests):
            counts = {"count": len(below), "replicates": len(row.replicates), "by": float(below.max())}
            found.append({"candidate": row.candidate, **counts})
    return found


def failed(results: Comparison) -> list[dict[str, Any]]:
    """The candidates of which a replicate has no score, because every training of its search failed."""
    counts = {row.candidate: sum(map(math.isnan, row.tests)) for row in results.rows}
    return [{"candidate": name, "count": count} for name, count in counts.items() if count]


# -- code ------------------------------------------------------------------------------------------------


def typical(row: Row) -> Replicate:
    """The replicate that can stand for all, settings and budget together: that of the median kept share."""
    known = [one for one in row.replicates if one.kept_share is not None]
    ordered = sorted(known or row.replicates, key=lambda one: (one.kept_share or 0.0, one.number))
    return ordered[(len(ordered) - 1) // 2]


def code(row: Row, run: Plain) -> dict[str, str]:
    """``python``, a line for PyTorch Geometric, and ``command``, which trains it where the network is one of ours."""
    candidate, chosen = Candidate.parse(row.candidate), typical(row).chosen
    if candidate.is_auto:  # what it chose
        taken = Candidate.parse(str(chosen["method"]))
        free = replace(taken.dropping, keep_prob=None, keep_ratio=None)
        candidate = replace(taken, network=candidate.network, dropping=free)
    budget = {name: chosen[name] for name in OF_DROPPING if name in chosen}
    found = {"python": _python(candidate, chosen, budget, run)}
    if run.get("task") not in ("run", "model"):
        found["command"] = _command(candidate, chosen, budget, run)
    return found


def _python(candidate: Candidate, chosen: Plain, budget: Plain, run: Plain) -> str:
    """What is imported, and one line that gives a model its edges: all of them once, or others in every step."""
    dropping = candidate.dropping
    if dropping.rule is None and not candidate.ways:
        return "out = model(data.x, data.edge_index)"
    said = {name: repr(value) for name, value in {**budget, **_of_score(candidate, run)}.items()}
    if "finish" in candidate.ways and (share := budget.get("keep_ratio", dropping.keep_ratio)) is not None:
        last = int(run.get("epochs", 400)) * 4 // 5
        said["keep_ratio"] = f"lambda epoch: {share!r} if epoch < {last} else 1.0"
        dropping = replace(dropping, keep_ratio=None)
    given = "".join(f", {name}={value}" for name, value in said.items())
    drop = f'DropEdge("{dropping}"{given})'
    imports = "from tadropedge.pyg import DropEdge\n"
    weighs = dropping.use in ("weighted", "expected") or "unbiased" in dropping.options
    model = f"model({{0}}.x, {{0}}.edge_index{', {0}.edge_weight' if weighs else ''})"
    if "consistent" in candidate.ways or "sharpen" in candidate.ways:
        settings = ", ".join(f"{name}={chosen[name]!r}" for name in ("temperature", "balance") if name in chosen)
        views = f"torch.stack([{model.format('view')} for view in drop.views(data, {chosen.get('draws', 4)})])"
        loss = f"consistency_loss({views}{', ' if settings else ''}{settings})"
        imports += "from tadropedge import consistency_loss\n"
        return f"{imports}drop = {drop}  # at each step: loss += {chosen.get('consistency_weight', 1.0)!r} * {loss}"
    if dropping.use in ("weighted", "pruned"):
        name = {"weighted": "weighed", "pruned": "pruned"}[dropping.use]
        return f"{imports}{name} = {drop}(data)  # once; then {model.format(name)}"
    evaluation = "; in evaluation: drop.eval()" if dropping.use == "expected" else ""
    return f"{imports}drop = {drop}  # at each training step: step = drop(data); {model.format('step')}{evaluation}"


def _of_score(candidate: Candidate, run: Plain) -> dict[str, Any]:
    """The settings of the run that the candidate's score takes."""
    score = candidate.dropping.score
    takes = settings_of(SCORES[score]) if isinstance(score, str) else {}
    return {name: value for name, value in run.get("score_settings", {}).items() if name in takes}


def _command(candidate: Candidate, chosen: Plain, budget: Plain, run: Plain) -> str:
    """The command that trains the candidate with these settings; what is not said is as ``train`` has it by default."""
    words = ["tadropedge", "train", str(run.get("source") or run["data"]["name"]), *run.get("options", ())]
    network = candidate.network or run.get("network")
    words += ["--network", str(network)] if network else []
    plain = str(candidate).removeprefix(f"{candidate.network}+")
    words += ["--method", ORIGINAL if plain == candidate.network else plain]
    for name in (*OF_DROPPING, *RATES):
        if name in chosen:
            words += [f"--{name.replace('_', '-')}", str(chosen[name])]
    q = _of_score(candidate, run).get("q")
    words += [] if q is None else ["--q", str(q)]
    for name, usual in (("layers", 2), ("hidden", 64), ("epochs", 400), ("measure", "accuracy")):
        if run.get(name, usual) != usual:
            words += [f"--{name}", str(run[name])]
    told = {**run.get("settings", {}), **chosen}
    told = {name: told[name] for name in told if name not in ("method", *OF_DROPPING, *RATES)}
    if told:
        given = (f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in told.items())
        words += ["--settings", ",".join(given)]
    return shlex.join(words)
