"""Write the tables of README and docs from the files in results/.

Run after a benchmark: python benchmarks/tables.py
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import tables_beyond as beyond
from procedure import TRUTHS, USUAL
from table import NOTHING_YET, ROOT, body, from_docs, load, page, present

from tadropedge.comparison.judging import KINDS, Against
from tadropedge.comparison.nulls import NULLS
from tadropedge.comparison.results import read_results
from tadropedge.paper.item import STATUSES
from tadropedge.paper.report import LISTS
from tadropedge.publish.tables import markdown
from tadropedge.publish.wording import percent, plus_minus, points
from tadropedge.regimes.report import opening
from tadropedge.regimes.results import read_map


def sampling() -> str:
    """One training epoch's mask and operator, CPU and GPU."""
    files = ("sampling-cpu.json", "sampling-cuda.json")
    cells = ("{graph}", "{edges:,}", "{device}", "{milliseconds:.2f} ms", "{pyg_milliseconds:.2f} ms")
    rows = [row for name in files for row in body(name, *cells, "{times_faster:.1f} ×")]
    found = [row.get("reads_milliseconds") for name in files for row in load(name)["sampling"]]
    rows = [[*row, "" if reads is None else f"{reads:.2f} ms"] for row, reads in zip(rows, found, strict=True)]
    columns = ("graph", "edges", "device", "ours", "PyG", "ratio", "reads alone")
    return page(columns, rows, (0, 2), map(from_docs, files))


def pyg() -> str:
    """One call of the module and one of PyG's function, CPU and GPU."""
    files = present("pyg-cpu.json", "pyg-cuda.json")
    if not files:
        return NOTHING_YET
    ours = ("{given_milliseconds:.2f} ms", "{rule_milliseconds:.2f} ms", "{data_milliseconds:.2f} ms")
    theirs = ("{pyg_milliseconds:.2f} ms", "{pyg_undirected_milliseconds:.2f} ms", "{times_faster:.1f} ×")
    rows = [row for name in files for row in body(name, "{graph}", "{edges:,}", "{device}", *ours, *theirs)]
    columns = ("graph", "edges", "device", "given", "rule", "`Data`", "PyG", "PyG, undirected", "ratio")
    return page(columns, rows, (0, 2), map(from_docs, files))


def accuracy() -> str:
    """Weights against a dense solution."""
    columns = ("dataset", "Laplacian", "q", "largest error", "Spearman", "ties at zero", "ours", "dense")
    cells = ("{dataset}", "{laplacian}", "{q}", "{largest_error:.0e}", "{spearman:.6f}", "{ties_at_zero:.2%}")
    rows = body("accuracy.json", *cells, "{seconds:.2f} s", "{dense_seconds:.0f} s")
    return page(columns, rows, (0, 1), [from_docs("accuracy.json")])


# How PyG was given the features: the faster way counts. Older measurements have the usual one alone.
WAYS = {"usual": "dense", "sparse": "sparse", None: "dense (sparse not measured)"}


def training() -> str:
    """One training on a CPU, a hundred at once on a GPU, beside the faster of two ways to write it with PyG."""
    files = ("training-cpu.json", "training-cuda.json")
    columns = ("graph", "layers", "device", "trainings", "ours", "PyG, one at a time", "features in PyG", "ratio")
    columns += ("PyG as usual", "products alone")
    epoch = ("{milliseconds_an_epoch:.1f} ms per epoch", "{pyg_milliseconds:.1f} ms per epoch")
    whole = ("{seconds:.2f} s", "{pyg_seconds_scaled:.0f} s (scaled)")
    rows = []
    for name, trainings, times, digits in ((files[0], "1", epoch, 1), (files[1], "{trials} × 400 epochs", whole, 0)):
        cells = body(name, "{graph}", "{layers}", "{device}", trainings, *times)
        for row, found in zip(load(name)["training"], cells, strict=True):
            bounds = [
                f"{row[key]:.1f} ms per epoch" if key in row else ""
                for key in ("pyg_usual_milliseconds", "products_milliseconds")
            ]
            found[3] += ", products in TF32" if row.get("precision") == "high" else ""
            rows.append([*found, WAYS[row.get("pyg_way")], f"{row['times_faster']:.{digits}f} ×", *bounds])
    return page(columns, rows, (0, 2, 6), map(from_docs, files))


def baselines() -> str:
    """One training of each competitor beside our GCN."""
    columns = ("graph", "method", "per epoch", "400 epochs (scaled)", "times our GCN", "peak memory")
    cells = ("{graph}", "{method}", "{milliseconds_an_epoch:.0f} ms", "{seconds_400_scaled:.0f} s")
    rows = body("baselines-cpu.json", *cells, "{times_our_gcn:.1f}", "{peak_mb} MB")
    return page(columns, rows, (0, 1), [from_docs("baselines-cpu.json")])


def startup() -> str:
    """Imports and short answers of the command line."""
    rows = body("startup-cpu.json", "`{case}`", "{seconds:.2f} s")
    return page(("process", "time"), rows, (0,), [from_docs("startup-cpu.json")])


def torture() -> str:
    """What was tried to break it, and how often it behaved."""
    if not present("torture.json"):
        return NOTHING_YET
    rows = body("torture.json", "{tries}", "{tried:,}", "{behaved:,}")
    run, commits = load("torture.json")["run"], dict.fromkeys(row["commit"] for row in load("torture.json")["rows"])
    place = f"commit {', '.join(commits)}, {run['machine']}, torch {run['versions']['torch']}"
    note = f"[torture.json](../results/benchmarks/torture.json), by `make torture`: {place}"
    return page(("attack", "tried", "behaved"), rows, (0,), [note])


def calibration() -> str:
    """The noise at which source localisation scores what the paper prints."""
    columns = ("noise", "tuned original", "between graphs", "Bayes-optimal")
    cells = ("{noise:g}", "{tuned_original:.3f}", "± {deviation_between_graphs:.3f}", "{bayes:.3f}")
    return page(columns, body("calibration.json", *cells), (), [from_docs("calibration.json")])


REFERENCES = ("none", "dropedge", "budget")


def cora() -> str:
    """A comparison on Cora, every method against its three references, from the committed results."""
    results = read_results(ROOT / "results" / "cora-defaults" / "results.json")
    protocol, run = results.protocol, results.run
    rows = [
        (
            row.method,
            plus_minus(percent(row.honest.mean), row.honest.low, row.honest.high),
            *(_difference(row.against.get(kind)) for kind in REFERENCES),
        )
        for row in results.rows
    ]
    simulated = protocol.simulated
    notes = [
        f"[results/cora-defaults](results/cora-defaults): commit {run['commit']}, {run['machine']}, "
        f"{run['seconds']:.0f} s; {protocol.trials} trials per method on {protocol.choose_splits} choosing splits, "
        f"{protocol.epochs} epochs, "
        f"{protocol.seeds} fresh seeds and splits",
        f"{simulated.tests} tests, corrected together; simulated with the numbers of this run, choice of settings "
        f"included, the family raises a false alarm in {100 * simulated.false_alarms:.1f} % of runs; without regard to "
        f"the choice it would be {100 * simulated.without_choice:.0f} %",
    ]
    columns = ("method", "test accuracy (%)", *(f"against {KINDS[kind]}" for kind in REFERENCES))
    return f"> {results.advice.words}\n\n{page(columns, rows, (0,), notes)}"


def _difference(test: Against | None) -> str:
    if test is None or test.difference is None:
        return ""
    gap = plus_minus(points(test.difference), test.difference_low, test.difference_high)
    return f"{gap} ({test.outcome})"


def reproduction() -> dict[str, Any]:
    """The committed reproduction of the paper."""
    content: dict[str, Any] = json.loads((ROOT / "results" / "paper" / "results.json").read_text())
    return content


def claims() -> str:
    """How the claims of the paper and our own questions were judged."""
    verdicts = [verdict for item in reproduction()["verdicts"].values() for verdict in item]
    columns = ("", *STATUSES)
    rows = []
    for own, name in LISTS.items():
        mine = [verdict["status"] for verdict in verdicts if verdict["own"] == own]
        rows.append((name, *(str(mine.count(status)) for status in STATUSES)))
    return page(columns, rows, (0,), ["an own question is answered yes, partly, no, or cannot be asked"])


def competitors() -> str:
    """Table 2 of the paper, both protocols, from the committed reproduction."""
    content = reproduction()
    rows = {(row["row"], row["dataset"]): row for row in content["table2"]}
    datasets = list(dict.fromkeys(dataset for _, dataset in rows))
    lines = []
    for name in dict.fromkeys(name for name, _ in rows):
        cells = [name]
        for dataset in datasets:
            row = rows[name, dataset]
            honest = percent(row["honest_mean"], 1)
            if row["honest_mean"] is not None:
                honest += f" ± {50 * (row['honest_high'] - row['honest_low']):.1f}"
            cells.append(f"{percent(row['accuracy'], 1)} ({percent(row['printed'], 1)}); {honest}")
        lines.append(cells)
    run = content["run"]["table2"]
    commits = ", ".join(dict.fromkeys(one for row in rows.values() for one in row["commit"].split(", ")))
    machine = run["trained_on"][0].partition(";")[0]
    notes = [f"[results/paper](../results/paper): commits {commits}, {machine}; {run['settings']}"]
    return page(["method", *datasets], lines, (0,), notes)


def spectrum() -> str:
    """The lowest eigenvectors, ours and the calls people make."""
    files = present("spectrum-cpu.json", "spectrum-cuda.json")
    if not files:
        return NOTHING_YET
    rows = []
    for name in files:
        content = load(name)
        on = content["run"]["machine"] if name == "spectrum-cuda.json" else ""
        for row in content["spectrum"]:
            if on and row["method"] != "ours":
                continue
            method = f"**ours**{' on the GPU' if on else ''}" if row["method"] == "ours" else f"`{row['method']}`"
            cells = [row["graph"], row["laplacian"], method]
            if row["spearman"] is None:
                cells += [f"> {row['seconds']:.0f} s" if row["status"] == "time limit" else row["status"], "", "", ""]
            else:
                cells += [f"{row['seconds']:.2f} s", f"{row['peak'] / 1e9:.1f} GB"]
                cells += [f"{row['residual']:.0e}", f"{row['spearman']:.6f}"]
            rows.append(cells)
    columns = ("graph", "Laplacian", "method", "time", "memory", "residual", "Spearman")
    return page(columns, rows, (0, 1, 2), map(from_docs, files))


def large() -> str:
    """Ours beside the best of the other calls, and on the GPU."""
    found = {
        name: {(row["graph"], row["laplacian"], row["method"]): row for row in load(name)["spectrum"]}
        for name in present("spectrum-cpu.json", "spectrum-cuda.json")
    }
    mine, there = found.get("spectrum-cpu.json", {}), found.get("spectrum-cuda.json", {})
    if not mine:
        return NOTHING_YET
    rows = []
    for verdict in load("spectrum-cpu.json")["verdicts"]:
        case = (verdict["graph"], verdict["laplacian"])
        ours, best, gpu = mine[(*case, "ours")], mine[(*case, verdict["best_peer"])], there.get((*case, "ours"))
        over = "> " if best["status"] == "time limit" else ""
        other = f"{over}{best['seconds']:.2f} s" + ("" if over else f" (`{verdict['best_peer']}`)")
        ratio = f"{over}{1 / verdict['share_of_best']:.1f} ×"
        cells = [case[0], f"{ours['nodes']:,}", f"{ours['edges']:,}", case[1], f"{ours['seconds']:.2f} s", other, ratio]
        rows.append([*cells, "" if gpu is None else f"{gpu['seconds']:.2f} s"])
    columns = ("graph", "nodes", "edges", "Laplacian", "ours", "best other call", "ratio", "ours on the GPU")
    return page(columns, rows, (0, 3), map(from_docs, found))


GROWTH = (
    "spectrum-growth-cpu.json",
    "spectrum-growth-cuda.json",
    "effective-growth-cpu.json",
    "effective-growth-cuda.json",
)


def growth() -> str:
    """Time and memory of growing graphs."""
    if not present(*GROWTH):
        return NOTHING_YET
    rows, fits = [], []
    for name in present(*GROWTH):
        content, device = load(name), name.split("-")[-1].split(".")[0]
        for row in content["growth"]:
            if row["status"]:
                continue
            cells = [f"{row['nodes']:,}", f"{row['edges']:,}", row["laplacian"], device]
            rows.append([*cells, f"{row['seconds']:.1f} s", f"{row['peak'] / 1e9:.1f} GB"])
        for fit in content["fits"]:
            fits.append(
                f"{device}, {fit['laplacian']}: time grows as edges^{fit['seconds']['exponent']:.2f}, memory as "
                f"edges^{fit['peak']['exponent']:.2f}"
            )
    columns = ("nodes", "edges", "quantity", "device", "time", "memory")
    return page(columns, rows, (2, 3), [*fits, *map(from_docs, present(*GROWTH))])


def million() -> str:
    """Every score on graphs of a million nodes, by device."""
    found: dict[str, dict[str, str]] = {}
    for name in ("scores-cpu.json", "scores-cuda.json"):
        for row in load(name)["large"]:
            cell = f"{row['seconds']:.3g} s, {row['peak'] / 1e9:.1f} GB"
            found.setdefault(row["score"], {})[row["device"]] = cell
    for name in present(*GROWTH):
        device = name.split("-")[-1].split(".")[0]
        for row in load(name)["growth"]:
            if row["nodes"] > 900_000 and not row["status"]:
                score = row["laplacian"] if row["laplacian"] == "effective" else f"aggregate, {row['laplacian']}"
                cell = f"{row['seconds']:.3g} s, {row['peak'] / 1e9:.1f} GB"
                found.setdefault(score, {})[device] = cell
    rows = [[score, cells["cpu"], cells.get("cuda", "")] for score, cells in found.items()]
    sources = [
        from_docs(name).replace("(../", "(../../")
        for name in ("scores-cpu.json", "scores-cuda.json", *present(*GROWTH))
    ]
    return page(("score", "2 cores", "one H200"), rows, (0,), sources)


def outlook() -> str:
    """From the largest graph that was measured on to 10^8 and 10^9 edges, by the fitted powers, but none below one."""
    if not present(*GROWTH):
        return NOTHING_YET
    rows, measured = [], beyond.measured_at_hundred_million()
    for name in present(*GROWTH):
        content, device = load(name), name.split("-")[-1].split(".")[0]
        for fit in content["fits"]:
            known = [row for row in content["growth"] if row["laplacian"] == fit["laplacian"] and not row["status"]]
            largest = max(known, key=lambda row: int(row["edges"]))
            for edges in (10**8, 10**9):
                if edges == 10**8 and (fit["laplacian"], device) in measured:
                    continue
                seconds, peak = (
                    largest[key] * (edges / largest["edges"]) ** max(1.0, fit[key]["exponent"])
                    for key in ("seconds", "peak")
                )
                cells = [f"{edges:,}", fit["laplacian"], device, f"{seconds / 60:,.0f} min", f"{peak / 1e9:,.0f} GB"]
                rows.append(cells)
    return "\n".join(markdown(("edges", "quantity", "device", "time", "memory"), rows, (1, 2)))


def spaces() -> str:
    """What else was tried where cells of Table 1 fall short."""
    content = load("spaces-citeseer.json")
    found: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for row in content["spaces"]:
        if row["laplacian"] != "combinatorial":
            continue
        found.setdefault(row["attempt"], {})[row["cell"].partition("/")[2], row["method"]] = row
    cases = list(next(iter(found.values())))
    in_table1 = {
        (f"{row['backbone']}-{row['layers']}", row["method"]): row["paper_protocol"]["best_test"]
        for row in reproduction()["table1"]
        if (row["dataset"], row["laplacian"]) == ("citeseer", "combinatorial")
    }
    first = next(iter(found.values()))
    rows = [
        ["*printed*", *(f"{first[case]['printed']:.3f}" for case in cases)],
        ["*Table 1*", *(f"{in_table1[case]:.3f}" for case in cases)],
    ]
    for attempt, tried in found.items():
        cells = (f"{tried[case]['best_test']:.3f} ({tried[case]['mean_of_ten_best']:.3f})" for case in cases)
        rows.append([attempt, *cells])
    return page(["attempt", *map(" ".join, cases)], rows, (0,), [from_docs("spaces-citeseer.json")])


FALSE_ALARMS = "false-alarms.json"


def false_alarms() -> str:
    """How often equal methods are called better or worse: the largest rate over all numbers of methods."""
    found: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for row in load(FALSE_ALARMS)["nulls"]:
        found.setdefault(row["null"], {}).setdefault(row["seeds"], []).append(row)
    rows = [
        [NULLS[name].words, *(_both(rates, "false_alarms") for rates in by_seeds.values())]
        for name, by_seeds in found.items()
    ]
    largest = max(row["error"] for row in load(FALSE_ALARMS)["nulls"])
    notes = [f"in per cent, ± {100 * largest:.1f} or less", from_docs(FALSE_ALARMS)]
    return page(["differences are", *(f"{seeds} seeds" for seeds in next(iter(found.values())))], rows, (0,), notes)


PROCEDURE = "procedure.json"


def procedure() -> str:
    """How often a whole comparison errs if no method has any effect, by truth and by plan."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in load(PROCEDURE)["procedure"]:
        found.setdefault(row["truth"], []).append(row)
    cells = [
        [TRUTHS[name][0], *(f"{100 * row['false_alarms']:.1f} ({100 * row['without_choice']:.0f})" for row in rows)]
        for name, rows in found.items()
    ]
    largest = max(row["error"] for row in load(PROCEDURE)["procedure"])
    notes = [f"in per cent, ± {100 * largest:.1f} or less", from_docs(PROCEDURE)]
    return page(["settings are", *_plans()], cells, (0,), notes)


def findable() -> str:
    """The smallest effect that a whole comparison finds with a chance of 80 %."""
    found: dict[str, list[str]] = {}
    for row in load(PROCEDURE)["procedure"]:
        found.setdefault(TRUTHS[row["truth"]][0], []).append(f"{row['detectable']:.1f}")
    notes = ["in points", from_docs(PROCEDURE)]
    return page(["settings are", *_plans()], [[words, *row] for words, row in found.items()], (0,), notes)


def _plans() -> list[str]:
    """What differs from the usual plan, for each column."""
    rows = load(PROCEDURE)["procedure"]
    usual = rows[0]
    changed = [
        [f"{row[name]} {name if row[name] > 1 else name[:-1]}" for name in USUAL if row[name] != usual[name]]
        for row in rows
        if row["truth"] == usual["truth"]
    ]
    return [", ".join(words) or "usual" for words in changed]


def power() -> str:
    """How often a true difference of one of four methods is found."""
    found: dict[int, dict[float, list[dict[str, Any]]]] = {}
    for row in load(FALSE_ALARMS)["power"]:
        if row["methods"] == 4:
            found.setdefault(row["seeds"], {})[row["effect"]] = [row]
    rows = [[str(seeds), *(_both(one, "found") for one in by.values())] for seeds, by in found.items()]
    effects = [f"{effect:g} σ" for effect in next(iter(found.values()))]
    return page(["seeds", *effects], rows, (), ["in per cent", from_docs(FALSE_ALARMS)])


def _both(rows: Sequence[dict[str, Any]], name: str) -> str:
    """The largest share in per cent, and in brackets that of the t-test."""
    ours, alone = (max(row[key] for row in rows) for key in (name, "t_test_alone"))
    return (
        f"{100 * ours:.1f} ({100 * alone:.0f})" if name == "false_alarms" else f"{100 * ours:.0f} ({100 * alone:.0f})"
    )


SPARSIFY = ("sparsify.json", "sparsify-cuda.json")


def sparsifiers() -> str:
    """Effective resistance beside degree and chance, below and above what a spanning forest needs."""
    if not present(*SPARSIFY):
        return NOTHING_YET
    columns = ("graph", "forest", "kept", "score", "components", "λ_min", "λ_max", "degrees, 5 to 95 %", "seconds")
    rows = []
    for name in present(*SPARSIFY):
        for row in load(name)["sparsify"]:
            degree, seconds = row["degree_ratio"], row["seconds"]
            parts = f"{row['components_before']:,} → {row['components_after']:,}"
            cells = [row["graph"], f"{row['forest']:.3f}", f"{row['keep_ratio']:g}", row["score"], parts]
            cells += [_eigenvalue(row["lambda_min"]), _eigenvalue(row["lambda_max"])]
            cells += [f"{degree['5 %']:.2f} to {degree['95 %']:.2f}"]
            rows.append([*cells, f"{seconds['scoring']:.1f} + {seconds['certificate']:.1f}"])
    forest = "forest: the share of the edges that a spanning forest has; seconds: of scoring and of the certificate"
    notes = [forest, *map(from_docs, present(*SPARSIFY))]
    return page(columns, rows, (0, 3), notes)


def _eigenvalue(found: dict[str, Any]) -> str:
    if found["value"] is None:
        return f"{found['low']:.3g} to {found['high']:.3g}"
    return f"{found['value']:.3g}" if found["converged"] else f"{found['value']:.3g} (not converged)"


SCORES = ("scores-cpu.json", "scores-cuda.json")


def triangles() -> str:
    """Scores of com-dblp beside networkit's and SciPy's."""
    columns = ("score", "device", "ours", "networkit", "its threads", "times networkit", "SciPy's A @ A")
    rows = []
    for name in present(*SCORES):
        found = load(name)["peers"]
        for row in (one for one in found if one["method"] == "ours" and one["times_networkit"] is not None):
            same = [one for one in found if one["score"] == row["score"]]
            peer = min((one for one in same if one["method"].startswith("networkit")), key=lambda one: one["seconds"])
            scipy = next((_ms(one["seconds"]) for one in same if one["method"] == "scipy"), "")
            threads = peer["method"].split()[1]
            mine = (_ms(row["seconds"]), _ms(peer["seconds"]), threads, f"{row['times_networkit']:.2f} ×", scipy)
            rows.append([row["score"], row["device"], *mine])
    return page(columns, rows, (0, 1), map(from_docs, present(*SCORES))) if rows else NOTHING_YET


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms" if seconds >= 0.1 else f"{1e3 * seconds:.1f} ms"


def large_scores() -> str:
    """Every score of a graph of 10⁷ edges with a large hub."""
    files = [name for name in present(*SCORES) if load(name).get("large")]
    rows = [
        [row["score"], row["device"], f"{row['edges']:,}", f"{row['largest_degree']:,}", f"{row['seconds']:.2f} s",
         f"{row['peak'] / 1e9:.1f} GB"]
        for name in files
        for row in load(name)["large"]
    ]  # fmt: skip
    columns = ("score", "device", "edges", "largest degree", "time", "peak memory")
    return page(columns, rows, (0, 1), map(from_docs, files)) if rows else NOTHING_YET


KEPT = ("keep-ratio-cpu.json", "keep-ratio-cuda.json")


def kept_edges() -> str:
    """The time of a training step by the share of the edges that it keeps."""
    columns: tuple[str, ...] = ("graph", "edges", "device", "kept", "ours", "faster than all edges")
    columns += ("PyG's GCNConv", "ratio", "its EdgeIndex by hand", "ratio")
    rows = []
    for name in present(*KEPT):
        for row in load(name)["keep_ratio"]:
            cells = [row["graph"], f"{row['edges']:,}", row["device"], f"{row['keep_ratio']:g}"]
            cells += [f"{row['milliseconds_an_epoch']:.2f} ms", f"{row['times_faster_than_all']:.1f} ×"]
            fits = row["pyg_milliseconds"] is not None
            cells += [f"{row['pyg_milliseconds']:.2f} ms ({row['pyg_way']})" if fits else "does not fit"]
            cells += [f"{row['times_faster']:.1f} ×" if fits else ""]
            cells += [f"{row['by_hand_milliseconds']:.2f} ms", f"{row['times_faster_than_by_hand']:.1f} ×"]
            rows.append(cells)
    return page(columns, rows, (0, 2), map(from_docs, present(*KEPT))) if rows else NOTHING_YET


OPERATORS, ERRORS = ("renormalised", "unbiased"), ("bias", "spread")
FORESTS = ("forests-cpu.json", "forests-cuda.json")


def forests() -> str:
    """Connected and exact masks beside plain ones and SciPy's forest."""
    ways = ("plain", "connected", "exact", "both", "scipy")
    columns = ("graph", "edges", "device", "plain", "connected", "exact", "both", "SciPy's forest alone")
    rows = []
    for name in present(*FORESTS):
        found = load(name)
        for row in next(iter(found.values())):
            times = [f"{row[f'{way}_milliseconds']:.1f} ms" for way in ways]
            rows.append([row["graph"], f"{row['edges']:,}", row["device"], *times])
    return page(columns, rows, (0, 2), map(from_docs, present(*FORESTS))) if rows else NOTHING_YET


def unbiased() -> str:
    """Bias and spread of thinned operators, renormalised and unbiased."""
    if not present("unbiased.json"):
        return NOTHING_YET
    found = load("unbiased.json")["unbiased"]
    kinds = [(way, what) for way in OPERATORS for what in ERRORS]
    rows = []
    for row in found:
        errors = (f"{100 * row[f'{way}_{what}']:.1f} %" for way, what in kinds)
        rows.append([row["method"], f"`{row['normalization']}`", *errors])
    columns = ("method", "normalisation", *(f"{way}: {what}" for way, what in kinds))
    share, count = 100 * found[0]["keep_ratio"], found[0]["unbiased_draws"]
    draws = (
        f"cora, {share:g} % of the edges kept, {count:,} draws (200 of `spectral` where renormalised); in percent of "
    )
    draws += "the norm of S x"
    return page(columns, rows, (0, 1), [draws, from_docs("unbiased.json")])


def noise() -> str:
    """Random edges, and what dropping by each score does at the same budget and with fixed settings."""
    if not present("noise.json"):
        return NOTHING_YET
    found = load("noise.json")["noise"]
    variants = list(dict.fromkeys(row["variant"] for row in found))
    table: dict[tuple[str, str], dict[str, Any]] = {}
    for row in found:
        table.setdefault((row["graph"], row["method"]), {})[row["variant"]] = row
    rows = []
    for (graph, method), mine in table.items():
        area = mine[variants[0]]["area"]
        cells = [f"{mine[variant]['accuracy']:.1f}{_gain(mine[variant])}" for variant in variants]
        rows.append([graph, method, "" if area is None else f"{area:.2f}", *cells])
    splits = f"test accuracy in percent over {found[0]['splits']} splits with 20 labels per class; in brackets the "
    splits += "difference to DropEdge in points, ± 1.96 standard errors of the paired difference"
    columns = ("graph", "method", "finds random edges", *variants)
    return page(columns, rows, (0, 1), [splits, from_docs("noise.json")])


def _gain(row: dict[str, Any]) -> str:
    return "" if row["method"] == "dropedge" else f" ({row['gain']:+.1f} ± {row['gain_error']:.1f})".replace("-", "−")


def regimes() -> str:
    """The map of regimes in three sentences, and who made it."""
    found = read_map(ROOT / "results" / "regimes" / "results.json")
    run = found.run
    made = f"* [results/regimes](results/regimes): commit {run['commit']}, {run['machine']}, {run['seconds']:,.0f} s"
    return f"{opening(found)}\n\n{made}"


PLACES = {
    "README.md": {
        "cora": cora,
        "regimes": regimes,
        "claims": claims,
    },
    "docs/robustness.md": {"torture": torture},
    "docs/speed.md": {
        "training": training,
        "sampling": sampling,
        "kept edges": kept_edges,
        "forests": forests,
        "triangles": triangles,
        "large scores": large_scores,
        "startup": startup,
        "large": large,
    },
    "docs/pyg.md": {"pyg": pyg},
    "docs/scores.md": {"noise": noise},
    "docs/method.md": {"accuracy": accuracy, "unbiased": unbiased},
    "docs/sparsify.md": {"sparsify": sparsifiers},
    "docs/laboratory.md": {"calibration": calibration, "baselines": baselines},
    "docs/reproduction.md": {"spaces": spaces, "competitors": competitors},
    "docs/statistics.md": {"false-alarms": false_alarms, "power": power, "procedure": procedure, "findable": findable},
    "docs/large-graphs.md": {
        "spectrum": spectrum,
        "cliques": beyond.cliques,
        "growth": growth,
        "hundred million": beyond.hundred_million,
        "outlook": outlook,
    },
    "docs/ray.md": {"ray": beyond.workers},
    "docs/distributed.md": {"partition": beyond.partitions, "distributed": beyond.spread},
    "docs/slepc.md": {"slepc": beyond.ranks},
    "docs/mini_batches.md": {"mini-batches": beyond.mini_batches},
    "docs/howto/million-nodes.md": {"million": million},
}


def filled(text: str, name: str, table: str) -> str:
    """The text with a fresh table between its two marks."""
    begin, end = f"<!-- {name} table -->", f"<!-- end of {name} table -->"
    before, rest = text.split(begin)
    after = rest.split(end)[1] if end in rest else rest
    return f"{before}{begin}\n{table}\n{end}{after}"


def main() -> None:
    for file, tables in PLACES.items():
        path = ROOT / file
        text = path.read_text(encoding="utf-8")
        for name, make in tables.items():
            text = filled(text, name, make())
        path.write_text(text, encoding="utf-8")
        print(f"written: {file}")


if __name__ == "__main__":
    main()
