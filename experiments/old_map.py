"""Make csv rows of the old map's trials, once: ``python experiments/old_map.py``; it is deleted after that.

Reads ``results/regimes/studies.tar.xz``, the Optuna journals of the old package, and writes ``trials.csv.xz``, a row per
training, and ``map.csv`` as it is, with the protocol and the commits that trained its rows in two columns more.
"""

import io
import json
import lzma
import tarfile
from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).resolve().parents[1] / "results" / "regimes"
PROTOCOL = "old: tuned once, judged on 50 splits, with a model of the luck of choosing"
SAME = ("self_weight", "batch_norm")  # settings that were false in all trainings
KINDS = {"5": ("labels", "5"), "full": ("labels", "full"), "20": ("base", "")}
NETWORKS = {"gcn-2": None, "resgcn-8": ("depth", "8"), "gcnii-32": ("depth", "32"), "gat-2": ("network", "gat")}
CHANGES = {"+100%edges": ("noise", "1.0"), "+100%hidden": ("features", "1.0")}


def placed(study: str) -> dict[str, str]:
    """Dataset, condition, phase and method of a study, by its name."""
    dataset, labels, _, _, _, _, splits, network, _, phase, *rest = study.split("/")
    kind = KINDS[labels.removesuffix("-labels")]
    kind = CHANGES.get(splits.removeprefix("2-splits"), NETWORKS[network] or kind)
    if phase == "judged":
        phase, *rest = f"judged-{rest[0]}", *rest[1:]
    return {"dataset": dataset, "kind": kind[0], "value": kind[1], "phase": phase, "method": rest[0]}


def rows_of(name: str, journal: io.BufferedIOBase) -> list[dict]:
    """A row per training of a journal."""
    studies, rows = [], []
    for line in journal:
        told = json.loads(line)
        if told["op_code"] == 0:
            studies.append(placed(told["study_name"]))
        if told["op_code"] != 4:
            continue
        spaces = {key: json.loads(entry)["attributes"] for key, entry in told["distributions"].items()}
        drawn = {
            key: spaces[key]["choices"][value] if "choices" in spaces[key] else value
            for key, value in told["params"].items()
        }
        more = told["user_attrs"]
        assert not any(drawn.pop(key, False) for key in SAME)
        if "keep_ratio" in more:
            drawn["keep_ratio"] = more["keep_ratio"]
        rows.append(
            studies[told["study_id"]]
            | {"drawn": json.dumps(drawn)}
            | {key: more[key] for key in ("index", "split", "seed", "best_epoch", "failed")}
            | {
                "validation": more.get("val_score", more["val_accuracy"]),
                "test": more.get("test_score", more["test_accuracy"]),
            }
            | {"commit": more["commit"]}
        )
    return rows


def main() -> None:
    """Write both files."""
    with tarfile.open(FOLDER / "studies.tar.xz") as archive:
        found = [
            row
            for member in sorted(archive.getmembers(), key=lambda one: one.name)
            if member.name.endswith(".journal")
            for row in rows_of(member.name, archive.extractfile(member))
        ]
    trials = pd.DataFrame(found)
    trials["failed"] = trials["failed"].astype(int)
    trials = trials.rename(columns={"index": "trial"})
    order = ["dataset", "kind", "value", "phase", "method", "split", "trial"]
    trials = trials.sort_values(order, kind="stable")
    for name in ("validation", "test"):  # scores are float32
        trials[name] = trials[name].astype("float32").map(lambda value: f"{value:.5g}")
    text = trials.to_csv(index=False)
    (FOLDER / "trials.csv.xz").write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    cell = ["dataset", "kind", "value"]
    commits = trials.groupby(cell)["commit"].unique().map(lambda some: ", ".join(sorted(some)))
    table = pd.read_csv(FOLDER / "map.csv", dtype=str, keep_default_na=False)
    # A budget is a study of its own in the base setting.
    places = [
        (data, "base", "") if kind == "budget" else (data, kind, value) for data, kind, value in table[cell].to_numpy()
    ]
    table["protocol"], table["commit"] = PROTOCOL, [commits[place] for place in places]
    table.to_csv(FOLDER / "map.csv", index=False)
    print(len(trials), "trainings,", len(table), "rows")


if __name__ == "__main__":
    main()
