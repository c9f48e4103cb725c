"""Old studies and rows of results/paper to csv, once: deleted after the commit that used it.

Rows keep the commit that measured them; nothing resumes them. Intervals of fixed settings are made anew from the same
trainings, simultaneous within a figure, as the items make them now.
"""

import json
import re
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd

import experiments.paper.__main__  # noqa: F401
from experiments.frame import ITEMS, read_rows, write_rows
from experiments.paper import convergence as losses
from experiments.paper import fixed
from experiments.paper.printed import LAPLACIANS, SCRIPTS, STRATEGIES
from experiments.paper.table2 import COMPETITORS, DEPTHS
from experiments.paper.table3 import SETUPS

FOLDER = Path(__file__).resolve().parents[2] / "results" / "paper"
KINDS = {
    "table1": r"(?P<dataset>\w+)/(?P<cell>[\w-]+)/(?P<laplacian>\w+)/\w+/(test-\d+/)?(?P<phase>\w+)/"
    r"(?P<method>[\w-]+)(/.*)?",
    "table2": r"(?P<dataset>\w+)/\w+/(?P<phase>\w+)/(?P<method>[\w-]+)(/.*)?",
    "table3": r"(?P<setup>\w+)/graph-(?P<graph>\d+)/\w+/(?P<phase>\w+)/(?P<method>[\w-]+)(/.*)?",
    "accuracy-vs-p": r"(?P<laplacian>\w+)/(?P<reference>reference/)?(?P<method>[\w-]+)/(?P<p>[\d.]+)/\w+",
    "inverse": r"(?P<laplacian>\w+)/(?P<reference>reference/)?(?P<method>[\w-]+)/(?P<p>[\d.]+)/\w+",
    "convergence": r"(?P<laplacian>\w+)/(?P<method>[\w -]+)/\w+",
}
PHASES = {"search": "search", "honest": "fresh", "reference": "fresh, as many edges kept"}
OUTCOME = ["index", "seed", "split", "keep_ratio", "best_epoch", "failed", "train_loss", "val_loss", "val_accuracy"]
OUTCOME = [*OUTCOME, "test_accuracy", "commit"]


def journals(name: str) -> pd.DataFrame:
    """All trainings of an item: what its study is named after, its settings and its outcome."""
    rows = []
    with tarfile.open(FOLDER / "studies.tgz") as archive:
        for member in archive.getmembers():
            if not re.fullmatch(rf"studies/{name}(-\w+)?\.journal", member.name):
                continue
            studies = []
            for line in archive.extractfile(member).read().decode().splitlines():
                entry = json.loads(line)
                if entry["op_code"] == 0:
                    place = re.fullmatch(KINDS[name], entry["study_name"]).groupdict()
                    if name == "inverse":
                        place["dataset"] = member.name.partition("-")[2].partition(".")[0]
                    studies.append(place)
                elif entry["op_code"] == 2:
                    settings = entry["user_attr"]["settings"]
                    fresh = place.get("phase", "fresh") != "search"
                    place["test_nodes"] = (settings["fresh_sizes"] if fresh else settings["split"])[2]
                elif entry["op_code"] == 4:
                    told = {key: json.loads(kind)["attributes"] for key, kind in entry["distributions"].items()}
                    settings = {
                        key: told[key].get("choices", {value: value})[value] for key, value in entry["params"].items()
                    }
                    outcome = {key: entry["user_attrs"].get(key) for key in OUTCOME}
                    curves = entry["user_attrs"].get("curves")
                    rows.append({**studies[entry["study_id"]], **settings, **outcome, "curves": curves})
    return pd.DataFrame(rows)


def trials(name: str) -> pd.DataFrame:
    """Every training behind a table, as a file of its own; numbers with seven digits."""
    rows = journals(name).drop(columns="curves")
    rows["phase"] = rows["phase"].map(PHASES)
    if "laplacian" in rows:
        rows.loc[rows["method"].isin(["original", "dropedge"]), "laplacian"] = None
    rows.loc[rows["method"] == "original", ["keep_prob"]] = None
    if "gamma" in rows:
        rows.loc[~rows["method"].isin(["cutoff", "division"]), "gamma"] = None
    rows = rows.dropna(axis="columns", how="all")
    (FOLDER / "trials").mkdir(exist_ok=True)
    rows.to_csv(FOLDER / "trials" / f"{name}.csv.xz", index=False, float_format="%.7g", compression="xz")
    return rows


def scores_of(name: str, rows: pd.DataFrame, value) -> dict:
    """By (dataset, laplacian, p): the scores of each method, seed by seed."""
    rows = rows.assign(dataset=rows.get("dataset", "cora"), p=rows.get("p", "0.7"))
    if "reference" in rows:
        rows["method"] = np.where(rows["reference"].notna(), "dropedge as " + rows["method"], rows["method"])
    found: dict = {}
    for (dataset, laplacian, p, method), mine in rows.groupby(["dataset", "laplacian", "p", "method"], sort=False):
        mine = mine.sort_values("index")
        found.setdefault((dataset, laplacian, float(p)), {})[method] = [value(one) for one in mine.itertuples()]
    return found


def of_fixed(name: str) -> pd.DataFrame:
    """Accuracies by p: those of DropEdge, of each method and its differences."""
    old = read_rows(FOLDER / f"{name}.csv").set_index(["dataset", "laplacian", "keep_prob", "method"])
    ps = len(ITEMS[name].presets["paper"]["ps"])
    rows = []
    for (dataset, laplacian, p), scores in scores_of(name, journals(name), lambda one: one.test_accuracy).items():
        methods = [method for method in scores if method != "dropedge" and " as " not in method]
        shares = {method: old.loc[(dataset, laplacian, p, method), "kept_share"] for method in ["dropedge", *methods]}
        place = {"dataset": dataset, "laplacian": laplacian, "keep_prob": p}
        told = {"commit": old.loc[(dataset, laplacian, p, "dropedge"), "commit"]} | place
        rows += [told | row for row in fixed.summary(scores, shares, methods, len(methods) * ps)]
        for row in rows[-len(methods) :]:  # the same numbers as before
            before = old.loc[(dataset, laplacian, p, row["method"])]
            assert abs(before["same_p_difference"] - row["same_p_difference"]) < 1e-6, (row, before)
            assert abs(before["same_budget_difference"] - row["same_budget_difference"]) < 1e-6, (row, before)
    return pd.DataFrame(rows)


def convergence() -> pd.DataFrame:
    """The losses of each strategy."""
    old = read_rows(FOLDER / "convergence.csv").set_index(["laplacian", "method"])
    curves = journals("convergence")
    rows = []
    found = scores_of("convergence", curves, lambda one: one.curves)
    for (dataset, laplacian, p), methods in found.items():
        kept = {name: [{key: np.array(each[key], float) for key in ("train_loss", "val_loss")} for each in mine]
                for name, mine in methods.items()}  # fmt: skip
        shares = {name: old.loc[(laplacian, name), "kept_share"] for name in methods}
        epochs = np.array(old.loc[(laplacian, "dropedge"), "epoch"])
        told = {"commit": old.loc[(laplacian, "dropedge"), "commit"], "dataset": dataset, "laplacian": laplacian}
        rows += [told | {"keep_prob": p} | row for row in losses.summary(kept, shares, epochs)]
        for row in rows[-len(methods) :]:
            before = old.loc[(laplacian, row["method"])]
            for loss in losses.LOSSES:
                assert abs(before[loss] - row[loss]) < 1e-6, (loss, before[loss], row[loss])
    return pd.DataFrame(rows)


def table3(trained: pd.DataFrame) -> pd.DataFrame:
    """A row for each graph and method."""
    rows = []
    search = trained[trained["phase"] == "search"].assign(graph=lambda one: one["graph"].astype(int))
    groups = dict(list(search.groupby(["setup", "graph", "method"])))
    for old in read_rows(FOLDER / "table3.csv").itertuples():
        noise, training = SETUPS[old.noise]
        graphs = sorted({graph for setup, graph, _ in groups if setup == old.noise})
        assert len(graphs) == len(old.best_by_graph) == old.graphs
        assert (noise, training) == (old.deviation, old.training)
        for graph, best, bayes in zip(graphs, old.best_by_graph, old.bayes_by_graph, strict=True):
            mine = groups[old.noise, graph, old.method]
            assert abs(mine["test_accuracy"].max() - best) < 1e-6
            assert len(mine) == old.trials
            chosen = mine.loc[mine["val_accuracy"].idxmax(), "test_accuracy"]
            commit = ", ".join(sorted(set(mine["commit"])))
            rows.append({"commit": commit, "setup": old.noise, "graph": graph, "noise": noise, "training": training,
                         "method": old.method, "bayes": bayes, "trials": old.trials, "best": best,
                         "chosen": round(chosen, 6)})  # fmt: skip
    return pd.DataFrame(rows)


def notes() -> None:
    """How each item was measured, as run.json tells it."""
    runs = json.loads((FOLDER / "results.json").read_text(encoding="utf-8"))["run"]
    told = {}
    for name, one in ITEMS.items():
        run = runs[name]
        places = sorted({re.sub(r" \(commits? [^)]*\)|; commit \w+", "", place) for place in run["trained_on"]})
        told[name] = {"preset": run["preset"], "protocol": one.protocol, "seed": run["seed"],
                      "machine": " and ".join(places), "settings": run.get("settings", "")}  # fmt: skip
    (FOLDER / "run.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Everything, in place."""
    made = {name: of_fixed(name) for name in ("accuracy-vs-p", "inverse")}
    made["convergence"] = convergence()
    tables = {name: trials(name) for name in ("table1", "table2", "table3")}
    made["table3"] = table3(tables["table3"])
    for name in ("variance", "over-smoothing"):  # the rows that claims are about: one normalisation, and the common one
        rows = read_rows(FOLDER / f"{name}.csv")
        its_own = rows["normalization"] == rows["dataset"].map(SCRIPTS)
        common = (rows["normalization"] == "gcn") & (name == "variance")
        made[name] = rows[(its_own | common) & ((rows["strategy"] == "cdf") | (name != "variance"))]
    made["proposition1"] = read_rows(FOLDER / "proposition1.csv").drop(columns="distances")
    for name in ("table1", "table2"):  # their rows stay as they are; every one is found again among the trials
        check(name, tables[name])
    notes()
    for name, rows in made.items():
        write_rows(rows.dropna(axis="columns", how="all"), FOLDER / f"{name}.csv")


def check(name: str, trained: pd.DataFrame) -> None:
    """The best test of N of the trials is that of the rows."""
    rows, search = read_rows(FOLDER / f"{name}.csv"), trained[trained["phase"] == "search"]
    if name == "table1":
        rows = rows.assign(cell=rows["backbone"] + "-" + rows["layers"].astype(str))
        keys = ["dataset", "cell", "method", "laplacian"]
        best = search.fillna({"laplacian": ""}).groupby(keys)["test_accuracy"].agg(["max", "size"])
        for row in rows.fillna({"laplacian": ""}).itertuples():
            cell = row.cell if (row.dataset, row.cell) in {key[:2] for key in best.index} else "jknet-3"  # the same
            found = best.loc[(row.dataset, cell, row.method, row.laplacian)]
            assert abs(found["max"] - row.paper_protocol_best_test) < 1e-6, row
            assert found["size"] == 100, row
    else:
        best = search.groupby(["dataset", "method"])["test_accuracy"].max()
        for row in rows[rows["row"].isin(COMPETITORS)].itertuples():
            assert abs(best[row.dataset, row.method] - row.accuracy) < 1e-6, row
        of_table1 = (
            pd.read_csv(FOLDER / "trials" / "table1.csv.xz").query("phase == 'search'").fillna({"laplacian": ""})
        )
        for row in rows[~rows["row"].isin(COMPETITORS)].itertuples():
            kind, _, backbone = row.row.partition("-")
            cell = DEPTHS[backbone].replace("incepgcn-3", "jknet-3")
            mine = of_table1[(of_table1["dataset"] == row.dataset) & (of_table1["cell"] == cell)]
            if kind == "TADropEdge":  # trial i has strategy i mod 3 and Laplacian i // 3 mod 2
                place = mine["method"] + " " + mine["laplacian"]
                turn = [f"{STRATEGIES[i % 3]} {LAPLACIANS[i // 3 % 2]}" for i in mine["index"]]
                mine = mine[place == turn]
            else:
                mine = mine[mine["method"] == kind.lower()]
            assert len(mine) == row.looks == 100, row
            assert abs(mine["test_accuracy"].max() - row.accuracy) < 1e-6, row


if __name__ == "__main__":
    main()
