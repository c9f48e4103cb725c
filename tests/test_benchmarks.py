"""Results of benchmarks belong to their commands, and tables in pages to their results."""

import pytest

from benchmarks.fill import fill
from benchmarks.frame import RESULTS, digest, write

MARK = "<!-- table fast-often.csv: graph, ours_ms where kind=a and graph=karate -->\n<!-- end -->\n"


@pytest.fixture
def house(tmp_path):
    """A house with one benchmark, its results and a page that shows them."""
    for folder in ("docs", "benchmarks"):
        (tmp_path / folder).mkdir()
    source = tmp_path / "benchmarks" / "fast.py"
    source.write_text("print('fast')\n")
    rows = [{"graph": name, "kind": kind, "ours_ms": 1234.5} for name in ("karate", "cora") for kind in "ab"]
    write(tmp_path / RESULTS / "fast-often.csv", rows, {"commit": "0123", "source": digest(source)})
    (tmp_path / "docs" / "speed.md").write_text(f"Before.\n\n{MARK}\nAfter.\n")
    return tmp_path


def test_the_results_and_tables_of_this_repository_are_of_today():
    assert fill(check=True) == []


def test_a_table_is_filled_once_and_stays(house):
    page = house / "docs" / "speed.md"
    assert len(fill(house, check=True)) == 1
    assert page.read_text() == f"Before.\n\n{MARK}\nAfter.\n"
    assert fill(house) == []
    filled = page.read_text()
    assert "| graph | ours ms |\n|---|---:|\n| karate | 1,234 |\n" in filled
    assert "cora" not in filled
    assert "(../results/benchmarks/fast-often.csv)" in filled
    assert filled.startswith("Before.\n\n<!-- table")
    assert filled.endswith("<!-- end -->\n\nAfter.\n")
    assert fill(house, check=True) == fill(house) == []
    assert page.read_text() == filled


def test_results_of_another_source_name_the_command(house):
    fill(house)
    (house / "benchmarks" / "fast.py").write_text("print('faster')\n")
    [line] = fill(house, check=True)
    assert "python -m benchmarks.fast --only fast-often" in line


def test_results_without_a_benchmark_and_tables_without_results(house):
    fill(house)
    (house / RESULTS / "fast-often.csv").rename(house / RESULTS / "slow.csv")
    belongs, missing = fill(house, check=True)
    assert "slow.csv" in belongs
    assert "python -m benchmarks.fast" in missing
