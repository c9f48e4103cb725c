"""``tadropedge doctor``: it tells what is there, names what to do about what is not, and never fails itself."""

import json
import re
import socket
from importlib import metadata

import pytest
import torch
from typer.testing import CliRunner

import tadropedge
from tadropedge.cli import app, doctor
from tadropedge.registry import DATASETS


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refused(*_, **__):
        raise AssertionError("doctor asked the network")

    monkeypatch.setattr(socket.socket, "connect", refused)


def run(*arguments):
    return CliRunner().invoke(app, ["doctor", *map(str, arguments)])


def told(*arguments):
    result = run(*arguments, "--json")
    return result.exit_code, json.loads(result.stdout)


def test_all_is_well_here(tmp_path, monkeypatch):
    monkeypatch.setenv("TADROPEDGE_DATA", str(tmp_path))
    result = run()
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "all is well"
    code, found = told()
    assert (code, found["well"], found["problems"]) == (0, True, [])
    assert found["versions"]["tadropedge"].startswith(tadropedge.__version__)
    assert found["packages"]["torch"].startswith(metadata.version("torch"))
    assert list(found["data"]) == ["folder", *DATASETS]
    assert found["data"]["cora"].startswith("not here")
    assert found["data"]["karate"] == "needs no files"
    assert str(torch.get_num_threads()) in found["devices"]["threads"]


def test_datasets_that_are_there_whole_or_in_part(tmp_path):
    from tadropedge.data.planetoid import citation_files

    for name, files in (("cora", 8), ("pubmed", 3)):
        for path in citation_files(name, tmp_path)[:files]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    _, found = told("--data-root", tmp_path)
    assert found["data"]["cora"] == "here"
    assert found["data"]["pubmed"].startswith("incomplete: ind.pubmed.y, ind.pubmed.ty, ")
    assert found["data"]["citeseer"].startswith("not here")


def test_a_package_that_is_missing_is_named_with_the_way_to_install_it(monkeypatch):
    there = doctor.find_spec
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name in ("optuna", "jinja2") else there(name))
    code, found = told()
    assert code == 1
    assert found["packages"]["optuna"].startswith("missing; needed by the command line")
    (problem,) = found["problems"]
    assert problem.startswith("jinja2, optuna: missing, needed by the command line")
    assert problem.endswith("pip install 'tadropedge[lab]'")


def test_a_package_that_is_too_old(monkeypatch):
    monkeypatch.setattr(doctor, "_version", lambda name: "1.9" if name == "torch" else "9999")
    code, found = told()
    assert code == 1
    assert found["problems"] == ["torch 1.9 is older than 2.6: pip install --upgrade 'torch>=2.6'"]


@pytest.mark.parametrize("look", ["_versions", "_packages", "_devices", "_data", "_disk", "_tried"])
def test_a_look_that_fails_ends_no_other(look, monkeypatch):
    def broken(*_):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(doctor, look, broken)
    code, found = told()
    assert code == 1
    (problem,) = found["problems"]
    assert problem.endswith(": RuntimeError: two lines")
    assert len([section for section in ("versions", "packages", "devices", "data", "disk") if found[section]]) >= 4
    assert run().stdout.splitlines()[-1] == f"wrong: {problem}"


def test_wrong_numbers_are_noticed(monkeypatch):
    monkeypatch.setattr("tadropedge.scores.solve.edge_scores", lambda *_: torch.ones(4))
    code, found = told()
    assert code == 1
    assert "and not 2/3, 2/3, 2/3 and 1" in found["problems"][0]


def test_a_folder_that_is_told_and_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("TADROPEDGE_DATA", str(tmp_path / "nowhere"))
    code, found = told()
    assert code == 1
    assert "nowhere' (TADROPEDGE_DATA), is not there" in found["problems"][0]
    code, found = told("--data-root", tmp_path / "elsewhere")
    assert code == 1
    assert "elsewhere' (--data-root), is not there" in found["problems"][0]
    (tmp_path / "file").touch()
    assert "file' (--data-root), is a file: name a folder" in told("--data-root", tmp_path / "file")[1]["problems"][0]


def test_without_rich_the_same_words_are_plain(monkeypatch, tmp_path):
    monkeypatch.setenv("TADROPEDGE_DATA", str(tmp_path))
    there = doctor.find_spec
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "rich" else there(name))
    result = run()
    assert result.exit_code == 1
    assert "  rich  missing; needed by the command line" in result.stdout


def test_the_packages_are_those_of_the_metadata():
    """What doctor asks for is what installing asks for."""
    from pathlib import Path

    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    for part, needed in (("dependencies", doctor.CORE), ("lab", doctor.LAB)):
        (listed,) = re.findall(rf"^{part} = \[\n(.*?)^\]", text, re.M | re.S)
        asked = dict(re.findall(r'"([\w-]+)>=([\d.]+)"', listed))
        asked.pop("tomli", None)
        assert asked == {name: least for name, (_, least, why) in doctor.PACKAGES.items() if why == needed}
