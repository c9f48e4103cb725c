"""What is shipped: the source distribution without the results, and extras that have code behind them."""

import re
import tarfile
from pathlib import Path

import pytest

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SIZE = 2_000_000
MADE = ("__pycache__", "auto_tutorials")  # folders that are made in a checkout and never shipped


@pytest.fixture
def sdist(tmp_path, monkeypatch):
    """The source distribution, built as pip builds it."""
    build = pytest.importorskip("hatchling.build", reason="hatchling, which builds the package, is not installed")
    monkeypatch.chdir(ROOT)
    return tmp_path / build.build_sdist(str(tmp_path))


def test_the_source_distribution_is_small_and_whole(sdist):
    assert sdist.stat().st_size < SIZE
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert not [name for name in inside if name.startswith(("results/", "site/", "docs/auto_tutorials/"))]
    for path in ("tadropedge/py.typed", "tadropedge/paper/recipes/table1.toml", "tadropedge/score_report/graph.js"):
        assert path in inside
    assert {"PKG-INFO", "pyproject.toml", "README.md", "LICENSE", "tests/test_build.py"} <= inside


LINK = re.compile(r"\]\(([^)\s]+)\)")


def test_links_of_the_readme_work_here_and_on_a_package_index(sdist):
    here = LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert [link for link in here if "://" not in link and not (ROOT / link.partition("#")[0]).exists()] == []
    with tarfile.open(sdist) as archive:
        name = next(name for name in archive.getnames() if name.endswith("/PKG-INFO"))
        stream = archive.extractfile(name)
        assert stream is not None
        head, _, page = stream.read().decode().partition("\n\n")
    there = LINK.findall(page)
    assert len(there) == len(here)
    assert all(link.startswith("https://") for link in there)
    assert any(link.startswith("https://raw.githubusercontent.com/") and link.endswith(".png") for link in there)
    for said in ("Project-URL: Source, ", "Project-URL: Documentation, ", "Classifier: Typing :: Typed"):
        assert said in head


def test_what_the_source_distribution_is_told_to_hold_is_there_and_small(tmp_path):
    listed = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]
    assert "results" not in listed
    with tarfile.open(tmp_path / "sdist.tar.gz", "w:gz") as archive:
        for name in listed:
            archive.add(ROOT / name, name, filter=lambda entry: None if entry.name.endswith(MADE) else entry)
    assert (tmp_path / "sdist.tar.gz").stat().st_size < SIZE


def test_the_version_is_written_once_in_each_place():
    import tadropedge

    assert PROJECT["project"]["version"] == tadropedge.__version__


def test_every_extra_has_code_behind_it():
    assert set(PROJECT["project"]["optional-dependencies"]) == {"lab", "ray", "metis", "docs", "dev"}
