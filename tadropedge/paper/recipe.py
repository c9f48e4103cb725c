"""A recipe: one TOML file for each table or figure, with its settings, its presets and the printed numbers.

``[settings]`` holds for both presets; ``[quick]`` and ``[paper]`` add to it or replace parts of it. What the paper
prints is in ``[published]``; ``[notes]`` holds, by preset, sentences that stand beside the results.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from tadropedge.errors import TadropedgeError, lookup
from tadropedge.search.space import method_space

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PRESETS = {"quick": None, "paper": None}


@dataclass(frozen=True)
class Recipe:
    """What is run for one item, with the settings of one preset, and what the paper prints."""

    name: str
    title: str
    claim: str
    preset: str
    settings: Mapping[str, Any]
    published: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()  # what a reader of this preset's results has to know; decides nothing

    def __getitem__(self, key: str) -> Any:
        """A setting; one that is missing is named together with its recipe."""
        if key not in self.settings:
            raise TadropedgeError(f"recipe {self.name!r} has no setting {key!r} for preset {self.preset!r}")
        return self.settings[key]

    @property
    def fingerprint(self) -> str:
        """A hash of everything that decides the result: also the recipes it ``uses``, its ``competitors``' spaces."""
        used = [load_recipe(name, self.preset).fingerprint for name in self.settings.get("uses", [])]
        spaces = [method_space(method).table() for method in self.settings.get("competitors", {})]
        own = [self.name, self.preset, dict(self.settings), dict(self.published)]
        content = json.dumps([*own, *used, *spaces], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def load_recipe(name: str, preset: str) -> Recipe:
    """Read a recipe that is part of the package.

    >>> load_recipe("components", "quick").published["Cora"]
    [78, 2484, 2]
    """
    lookup("preset", preset, PRESETS)
    path = resources.files("tadropedge.paper") / "recipes" / f"{name}.toml"
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    settings = {**content.get("settings", {}), **content.get(preset, {})}
    notes = content.get("notes", {}).get(preset, [])
    return Recipe(name, content["title"], content["claim"], preset, settings, content.get("published", {}), notes)
