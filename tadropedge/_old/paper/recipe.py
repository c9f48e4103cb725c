"""A recipe: one TOML file for each table or figure, with its settings, its presets and the printed numbers.

``[settings]`` holds for both presets; ``[quick]`` and ``[paper]`` add to it or replace parts of it. What the paper
prints is in ``[published]``. Texts decide nothing: ``[claims.NAME]`` holds the words of a verdict, ``own = true`` where
the question is ours and not the paper's, and ``[notes]`` what stands beside the results (``[notes.PRESET]`` of one
preset), with ``{names}`` where settings and numbers go.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from importlib import resources
from typing import Any

from tadropedge._old.errors import TadropedgeError, lookup
from tadropedge._old.fingerprint import fingerprint
from tadropedge._old.search.space import method_space

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PRESETS = {"quick": None, "paper": None}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The words of a verdict, each a template: see :class:`tadropedge._old.paper.item.Verdict`."""

    claim: str
    reason: str
    printed: str = ""
    measured: str = ""
    own: bool = False


@dataclass(frozen=True)
class Recipe:
    """What is run for one item, with the settings of one preset, and what the paper prints."""

    name: str
    title: str
    claim: str
    preset: str
    _: KW_ONLY
    settings: Mapping[str, Any]
    published: Mapping[str, Any] = field(default_factory=dict)
    claims: Mapping[str, Claim] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    effort: str = ""  # how much is trained

    def __getitem__(self, key: str) -> Any:
        """A setting; one that is missing is named together with its recipe."""
        if key not in self.settings:
            raise TadropedgeError(f"recipe {self.name!r} has no setting {key!r} for preset {self.preset!r}")
        return self.settings[key]

    def text(self, template: str, /, **numbers: object) -> str:
        """A template with its settings and numbers."""
        return template.format(**{**self.settings, **numbers})

    def said(self, **cases: Iterable[Mapping[str, object]]) -> list[str]:
        """The notes in their order; one that is among ``cases`` is said for each of them, with its numbers.

        >>> notes = {"one": "p is {p}.", "two": "{name} is there."}
        >>> recipe = Recipe("x", "", "", "quick", settings={"p": 0.5}, notes=notes)
        >>> recipe.said(two=[{"name": "Cora"}, {"name": "PubMed"}])
        ['p is 0.5.', 'Cora is there.', 'PubMed is there.']
        """
        return [self.text(note, **case) for name, note in self.notes.items() for case in cases.get(name, [{}])]

    @property
    def fingerprint(self) -> str:
        """A hash of everything that decides the result: also the recipes it ``uses``, its ``competitors``' spaces."""
        used = [load_recipe(name, self.preset).fingerprint for name in self.settings.get("uses", [])]
        spaces = [method_space(method).table() for method in self.settings.get("competitors", {})]
        own = {"name": self.name, "preset": self.preset, "settings": self.settings, "published": self.published}
        return fingerprint(**own, used=used, spaces=spaces)[:16]


def load_recipe(name: str, preset: str) -> Recipe:
    """Read a recipe that is part of the package.

    >>> load_recipe("components", "quick").published["Cora"]
    [78, 2484, 2]
    """
    lookup("preset", preset, PRESETS)
    path = resources.files("tadropedge._old.paper") / "recipes" / f"{name}.toml"
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    settings = {**content.get("settings", {}), **content.get(preset, {})}
    notes = content.get("notes", {})
    own = {name: note for name, note in notes.items() if name not in PRESETS} | notes.get(preset, {})
    claims = {name: Claim(**words) for name, words in content.get("claims", {}).items()}
    parts = {part: content[part] for part in ("title", "claim", "published", "effort") if part in content}
    return Recipe(name=name, preset=preset, settings=settings, notes=own, claims=claims, **parts)
