import csv
import json
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from comparisons import bare, comparison, honest, older

from tadropedge import TadropedgeError
from tadropedge.comparison.results import (
    Convergence,
    KeepProbPoint,
    PaperProtocol,
    Results,
    as_document,
    grouped,
    labelled,
    parse,
    read_results,
    write_csv,
    write_results,
)

COMMITTED = Path(__file__).parents[1] / "results" / "cora-gcn-2"
SMALL = bare(laplacian="combinatorial", paper_protocol=PaperProtocol(0.875, 100), honest=honest(0.5, 0.25, 0.75))


def test_what_was_written_is_read_again(tmp_path):
    results = comparison()
    again = read_results(write_results(results, tmp_path / "new" / "results.json"))
    assert as_document(again) == as_document(results)
    assert [row.honest for row in again.rows] == [row.honest for row in results.rows]
    assert again.run == results.run


def test_committed_results_are_read_and_written_byte_for_byte(tmp_path):
    results = read_results(COMMITTED / "results.json")
    for write, name in ((write_results, "results.json"), (write_csv, "results.csv")):
        assert write(results, tmp_path / name).read_bytes() == (COMMITTED / name).read_bytes()


def test_the_document_is_as_designed(tmp_path):
    document = json.loads(write_results(comparison(), tmp_path / "results.json").read_text(encoding="utf-8"))
    assert list(document) == ["advice", "protocol", "compare", "run"]
    assert list(document["advice"]) == ["words", "use", "settings", "warnings"]
    assert document["protocol"]["simulated"]["false_alarms"] == 0.031
    found = document["compare"][2]
    assert list(found)[:7] == ["dataset", "backbone", "layers", "method", "laplacian", "paper_protocol", "honest"]
    assert list(found["against"]) == ["none", "dropedge", "budget"]
    assert {"reference", "reference_mean", "difference", "p_value", "settings", "level"} <= set(
        found["against"]["none"]
    )
    assert set(found["paper_protocol"]) == {"best_test", "trials"}
    assert list(found["honest"])[:9] == [
        *("mean", "low", "high", "seeds", "difference", "difference_low", "difference_high", "p_value", "verdict")
    ]
    assert set(found["convergence"]) == {"epochs", "train_loss", "val_loss"}


def test_results_of_older_versions_are_written_as_they_were(tmp_path):
    document = json.loads(write_results(older(), tmp_path / "results.json").read_text(encoding="utf-8"))
    assert list(document) == ["compare", "run"]
    (found,) = [row for row in document["compare"] if row["method"] == "cdf"]
    assert not {"against", "measure", "trial", "unconverged"} & set(found)
    assert set(found["by_keep_prob"][0]) == {"keep_prob", "accuracy"}
    (test,) = next(row for row in older().rows if row.method == "cdf").tests.items()
    assert test[0] == "matched"
    assert test[1].difference == found["honest"]["difference"]


def test_the_same_rows_give_the_same_bytes(tmp_path):
    for write, name in ((write_results, "results.json"), (write_csv, "results.csv")):
        first = write(comparison(), tmp_path / "a" / name).read_bytes()
        assert write(comparison(), tmp_path / "b" / name).read_bytes() == first
    again = read_results(tmp_path / "a" / "results.json")
    assert write_results(again, tmp_path / "c.json").read_bytes() == (tmp_path / "a" / "results.json").read_bytes()


def test_the_small_file_in_full(tmp_path):
    curves = {"convergence": Convergence([1, 2], [0.5, math.nan], [0.5, 0.25]), "by_keep_prob": [KeepProbPoint(0.5, 1)]}
    path = write_results(Results([replace(SMALL, honest=None, **curves)], {"seconds": 1.5}), tmp_path / "results.json")
    assert (
        path.read_text(encoding="utf-8")
        == """{
  "compare": [
    {
      "dataset": "cora",
      "backbone": "gcn",
      "layers": 2,
      "method": "cdf",
      "laplacian": "combinatorial",
      "paper_protocol": { "best_test": 0.875, "trials": 100 },
      "honest": null,
      "settings": {},
      "convergence": {
        "epochs": [ 1, 2 ],
        "train_loss": [ 0.5, null ],
        "val_loss": [ 0.5, 0.25 ]
      },
      "by_keep_prob": [
        { "keep_prob": 0.5, "accuracy": 1 }
      ]
    }
  ],
  "run": { "seconds": 1.5 }
}
"""
    )
    loss = read_results(path).rows[0].convergence.train_loss
    assert loss[0] == 0.5
    assert math.isnan(loss[1])


def test_texts_that_look_like_lists_stay_as_they_are(tmp_path):
    run = {"command": "a [\n  1,\n  2\n ] b", "note": "[   1,   2 ]"}
    assert read_results(write_results(Results([SMALL], run), tmp_path / "results.json")).run == run


def test_numpy_numbers_are_plain_numbers(tmp_path):
    numbers = honest(np.float32(0.5), np.float64(0.25), 0.75, seeds=np.int64(20))
    made = bare(layers=np.int64(2), honest=numbers, settings={"gamma": np.array([1.0])})
    again = read_results(write_results(Results([made]), tmp_path / "results.json")).rows[0]
    assert (again.layers, again.honest.seeds, again.honest.mean, again.settings) == (2, 20, 0.5, {"gamma": [1.0]})


def test_the_csv_holds_every_row_once(tmp_path):
    results = comparison()
    with write_csv(results, tmp_path / "results.csv").open(encoding="utf-8", newline="") as stream:
        table = list(csv.DictReader(stream))
    assert [line["method"] for line in table] == [row.method for row in results.rows]
    for line, row in zip(table, results.rows, strict=True):
        assert float(line["honest_mean"]) == row.honest.mean
        assert float(line["paper_best_test"]) == row.paper_protocol.best_test
        for kind, test in row.against.items():
            assert float(line[f"{kind}_p_value"]) == test.p_value
            assert line[f"{kind}_verdict"] == test.verdict
    assert table[0]["none_p_value"] == ""


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = write_results(Results([SMALL]), tmp_path / "results.json")
    before = path.read_bytes()
    with pytest.raises(TadropedgeError, match=r"compare\[0\].honest.mean must be in \[0, 1\], got 81.5"):
        write_results(Results([replace(SMALL, honest=honest(81.5, 80, 83))]), path)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TadropedgeError, match=r"cannot write '.*results.json': the disk is full"):
        write_results(comparison(), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_what_json_cannot_hold_is_named(tmp_path):
    with pytest.raises(TadropedgeError, match=r"texts, numbers, lists and mappings, got .*Path\('x'\)"):
        write_results(Results([SMALL], {"out": Path("x")}), tmp_path / "results.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "results.json:1: not JSON: Expecting value"),
        (b'{"compare": [\n}', "results.json:2: not JSON: Expecting value"),
        (b"\xff\xfe\xff", r"results.json: cannot be read as JSON \(.*\)"),
        (b"[" * 200_000, r"results.json: cannot be read as JSON \(.*\)"),
        (b"[]", r"results.json: must be an object, got \[\]"),
        (b"{}", "results.json: lacks 'compare', found nothing"),
        (b'{"table1": []}', "results.json: lacks 'compare', found table1"),
        (
            b'{"compare": [], "rum": {}}',
            "results.json: has an unknown member 'rum'; choose from advice, compare, data, protocol, run",
        ),
        (b'{"compare": {}}', r"results.json: compare must be a list, got {}"),
        (b'{"compare": [7]}', r"results.json: compare\[0\] must be an object, got 7"),
        (b'{"compare": [], "run": 3}', "results.json: run must be an object, got 3"),
    ],
)
def test_a_malformed_file_is_named(tmp_path, content, message):
    path = tmp_path / "results.json"
    path.write_bytes(content)
    with pytest.raises(TadropedgeError, match=message):
        read_results(path)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("dataset",), "", r"compare\[0\].dataset must be a text that is not empty, got ''"),
        (("layers",), True, r"compare\[0\].layers must be a whole number, got True"),
        (("laplacian",), 3, r"compare\[0\].laplacian must be a text"),
        (("honest", "mean"), "high", r"compare\[0\].honest.mean must be a number, got 'high'"),
        (("honest", "mean"), math.nan, r"compare\[0\].honest.mean must be a number, got nan"),
        (("honest", "mean"), 10**400, r"compare\[0\].honest.mean must be a number, got 1000.*\.\.\."),
        (("honest", "p_value"), 1.5, r"compare\[0\].honest.p_value must be in \[0, 1\], got 1.5"),
        (("honest", "high"), None, r"compare\[0\].honest: must give mean, low, high or none of them, but lacks high"),
        (
            ("honest", "p_value"),
            None,
            r"compare\[0\].honest: must give .*, difference_high, p_value or none of them, but lacks p_value",
        ),
        (("honest", "seeds"), None, r"compare\[0\].honest.seeds must be a whole number"),
        (("honest", "men"), 1, r"compare\[0\].honest has an unknown member 'men'; choose from difference, "),
        (("paper_protocol", "trials"), -1, r"compare\[0\].paper_protocol.trials must be at least 0, got -1"),
        (("settings",), [], r"compare\[0\].settings must be an object, got \[\]"),
        (
            ("convergence", "val_loss"),
            [1.0],
            r"compare\[0\].convergence: val_loss has 1 entries, but there are 60 epochs",
        ),
        (("convergence", "val_loss"), ["x"], r"convergence.val_loss\[0\] must be a number, got 'x'"),
        (("by_keep_prob",), [{"keep_prob": 2, "accuracy": 1}], r"by_keep_prob\[0\].keep_prob must be in \[0, 1\]"),
        (("by_keep_prob",), [{"keep_prob": 1}], r"by_keep_prob\[0\] lacks 'accuracy', found keep_prob"),
    ],
)
def test_a_wrong_field_is_named_by_its_place(place, value, message):
    document = as_document(older(gains={"cdf": 0.0}))
    *path, last = place
    target = document["compare"][0]
    for name in path:
        target = target[name]
    target[last] = value
    with pytest.raises(TadropedgeError, match=message):
        parse(document)


def test_every_number_of_the_honest_part_must_be_there():
    document = as_document(Results([SMALL]))
    for name in set(document["compare"][0]["honest"]) - {"failed"}:
        less = {key: value for key, value in document["compare"][0]["honest"].items() if key != name}
        with pytest.raises(TadropedgeError, match=rf"results: compare\[0\].honest lacks '{name}', found "):
            parse({"compare": [document["compare"][0] | {"honest": less}]})


def test_missing_files_and_repeated_rows_are_named(tmp_path):
    with pytest.raises(TadropedgeError, match=r"no such file: '.*results.json'"):
        read_results(tmp_path / "results.json")
    with pytest.raises(TadropedgeError, match=r"compare\[2\] repeats compare\[0\]: cora gcn 2 cdf combinatorial"):
        write_results(Results([SMALL, replace(SMALL, method="cutoff"), SMALL]), tmp_path / "results.json")


def test_rows_are_grouped_by_what_may_be_compared():
    other = replace(SMALL, layers=3)
    normalized = replace(SMALL, laplacian="normalized")
    assert grouped([SMALL, other, normalized]) == [[SMALL, normalized], [other]]
    assert labelled([SMALL, normalized]) == {"cdf (combinatorial)": SMALL, "cdf (normalized)": normalized}
    assert list(labelled([SMALL, replace(normalized, method="cutoff")])) == ["cdf", "cutoff"]
