import csv
import io
import json

import numpy as np
import pytest
from compare.fakes import made

from tadropedge import TadropedgeError
from tadropedge.lab.comparison.results import Comparison

WINNER = "jaccard-proportional:weighted"


@pytest.fixture(scope="module")
def found():
    costs = {"original": (0.06, 300), "dropedge@0.1:finish": (0.02, 150)}
    gains = {"dropedge": 0.0, WINNER: 0.03, "dropedge@0.1:finish": 0.0, "cdf": 0.0}
    return made(gains, mlp=-0.1, costs=costs)[0]


def test_results_json_has_exactly_these_members(found):
    read = json.loads(found.as_json())
    assert set(read) == {"rows", "yardstick", "cheaper", "answer", "run"}
    for row in read["rows"]:
        of_row = {"candidate", "mean", "low", "high", "replicates", "seconds_per_epoch", "peak_bytes", "against"}
        assert set(row) == of_row
        assert {frozenset(one) for one in row["replicates"]} == {
            frozenset({"number", "chosen", "validation", "test", "kept_share"})
        }
        for verdict in row["against"].values():
            assert set(verdict) == {"word", "difference", "low", "high", "replicates", "needed"}
            assert verdict["word"] in ("better", "worse", "same", "undecided")
    assert read["rows"][0]["candidate"] == "original"
    assert read["rows"][0]["against"] == {}
    assert set(read["rows"][0]["seconds_per_epoch"]) == {"train", "evaluate"}
    assert set(read["yardstick"]) == {"candidate", "mean", "low", "high", "difference"}
    assert set(read["yardstick"]["difference"]) == {"value", "low", "high"}
    assert [set(one) for one in read["cheaper"]] == [{"candidate", "time_factor", "memory_factor"}]
    assert set(read["answer"]) == {"do", "code", "sure"}
    assert all(isinstance(value, str) for value in read["answer"].values())


def test_what_is_written_is_read_back(found, tmp_path):
    found.save(tmp_path)
    read = Comparison.from_file(tmp_path / "results.json")
    assert read == found
    tests = [one.test for row in found.rows for one in row.replicates]
    lines = list(csv.DictReader(io.StringIO((tmp_path / "results.csv").read_text())))
    assert [float(line["test"]) for line in lines] == tests
    assert json.loads(lines[-1]["chosen"])["learning_rate"] == 0.01


def test_what_is_not_known_is_null():
    found, _ = made({"dropedge": 0.0, "cdf": np.nan}, replicates=3)
    read = json.loads(found.as_json())
    row = read["rows"][2]
    assert (row["mean"], row["low"], row["high"], row["replicates"][0]["test"]) == (None,) * 4
    verdict = row["against"]["original"]
    assert (verdict["word"], verdict["difference"], verdict["replicates"]) == ("undecided", None, 0)
    again = Comparison.from_dict(read)
    assert again.as_json() == found.as_json()
    assert again.row("cdf").low == -np.inf
    assert "failed" in str(found)


WRONG = ['"mean": "5"', '"replicates": {}', '"candidate": 5', '"against": {"original": {"word": "good"}}', '"mean": []']


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"rows": 5}', '{"rows": [{}]}', "[" * 10_000, *WRONG])
def test_what_is_no_results_json_is_refused(content, found, tmp_path):
    path = tmp_path / "results.json"
    if content in WRONG:
        name, value = json.loads(f"{{{content}}}").popitem()
        whole = found.as_dict()
        content = json.dumps(whole | {"rows": [whole["rows"][0] | {name: value}]})
    path.write_text(content)
    with pytest.raises(TadropedgeError, match=r"no results\.json"):
        Comparison.from_file(path)
    with pytest.raises(TadropedgeError, match="cannot read"):
        Comparison.from_file(tmp_path / "other.json")
