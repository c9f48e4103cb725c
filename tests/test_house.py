"""The rules of the house that a program can check."""

import ast
import dataclasses
import importlib
import pkgutil
from collections import Counter
from pathlib import Path

import tadropedge

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tadropedge"
SOURCES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def modules():
    for found in pkgutil.walk_packages([str(PACKAGE)], "tadropedge."):
        if not found.name.startswith(("tadropedge.kernels.", "tadropedge.__main__", "tadropedge.cli")):
            yield importlib.import_module(found.name)


def test_the_architecture_names_every_file():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    items = {path.name for path in (PACKAGE / "paper" / "items").iterdir()}
    commands = {path.name for path in (PACKAGE / "cli").iterdir()}
    names = {path.name for path in SOURCES} - {"__init__.py"} - items - commands
    assert [name for name in sorted(names) if name not in page] == []


def test_records_of_more_than_four_fields_are_made_by_name():
    wrong = []
    for module in modules():
        for name, kind in vars(module).items():
            if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ == module.__name__:
                fields = [one for one in dataclasses.fields(kind) if one.init]
                positional = sum(not one.kw_only for one in fields)
                if len(fields) > 4 and positional > 4:
                    wrong.append(f"{module.__name__}.{name}")
    assert wrong == []


def test_a_class_has_a_name_of_its_own():
    names = Counter(
        node.name
        for tree in SOURCES.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_a_public_function_shares_its_name_with_no_module():
    beside = {path.stem for path in PACKAGE.iterdir()}
    assert [name for name in tadropedge.__all__ if name in beside] == []


def test_public_names_are_there_and_stay():
    of_version_0_1 = [
        "STRATEGIES",
        "Components",
        "ConvergenceError",
        "Graph",
        "NotEnoughMemoryError",
        "RepeatedEigenvalueWarning",
        "ShiftOperator",
        "TadropedgeError",
        "aggregate_resistance",
        "auto_gamma",
        "effective_resistance",
        "keep_probabilities",
        "sample_directed",
        "sample_edges",
        "shift_operator",
    ]
    assert set(of_version_0_1) <= set(tadropedge.__all__)
    for name in tadropedge.__all__:
        assert getattr(tadropedge, name) is not None
        assert name in dir(tadropedge)


def test_no_function_is_longer_than_a_screen():
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path, tree in SOURCES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= 80
    ]
    assert long == []
