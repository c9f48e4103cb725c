"""One card per method: the directive ``method-cards``, made of the registries, their docstrings and ``results/``.

````markdown
```{method-cards} score
```
````

A card says the formula, the cost, the source, what the method is good for, how it is written and what was measured.
Formula, cost and source come from the docstring (its first line, and the items ``Cost:``, ``Source:``, ``Good for:``)
or from ``cards.toml``. An entry that lacks one of them is a warning, which fails the build.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from evidence import Measured, files, measured, reference_names
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from tadropedge.method import OPTIONS, PAPER_SCORE, SENSITIVITY, UNIFORM, rules
from tadropedge.publish.tables import markdown
from tadropedge.registry import NETWORKS, SCORES, STRATEGIES

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

TABLE = Path(__file__).with_name("cards.toml")
WRITTEN = {UNIFORM: "dropedge", SENSITIVITY: SENSITIVITY}
FORMS = {
    "original": "Nothing is dropped.",
    "auto": "Score, rule, options and budget are found by the search.",
}
ITEM = re.compile(r"^\* (Source|Cost|Good for): (.*?)(?=^\* |^\s*$|\Z)", re.MULTILINE | re.DOTALL)
ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`")
FORMULA = re.compile(r"[=/·−Σ∩√≥ω]|\bS\b")  # the first line of a docstring is a formula if it has one of these
NEEDED = ("formula", "cost", "source")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is known of one method before anything is measured."""

    kind: str
    name: str
    words: str
    formula: str = ""
    cost: str = ""
    source: str = ""
    good: str = ""

    @property
    def title(self) -> str:
        """How it is written."""
        return WRITTEN.get(self.name, self.name)

    @property
    def missing(self) -> list[str]:
        """What the card needs and has not."""
        return [name for name in NEEDED if not getattr(self, name)]


def from_docstring(text: str) -> dict[str, str]:
    """Words, formula, cost, source and use, as far as a docstring has them; reStructuredText becomes Markdown.

    >>> found = from_docstring(SCORES["degree"].__doc__)
    >>> found["formula"], found["cost"]
    ('1/d_u + 1/d_v for every edge (u, v); d is the weighted degree where the graph has weights.', 'O(M).')
    """
    text = ROLE.sub(r"``\1``", inspect.cleandoc(text)).replace("``", "`")
    first = " ".join(text.partition("\n\n")[0].replace(", float64 `[M]`", "").split())
    names = {"Source": "source", "Cost": "cost", "Good for": "good"}
    items = {names[name]: " ".join(words.split()) for name, words in ITEM.findall(text)}
    return {"words": first, **({"formula": first} if FORMULA.search(first) else {}), **items}


def docstring(kind: str, name: str) -> str:
    """What is written in the source about an entry."""
    from tadropedge.scores.aggregate import aggregate_resistance
    from tadropedge.scores.effective import effective_resistance

    faces = {("score", "aggregate"): aggregate_resistance, ("score", "effective"): effective_resistance}
    registries = {"score": SCORES, "strategy": STRATEGIES, "network": NETWORKS}
    if kind in registries:
        return inspect.getdoc(faces.get((kind, name)) or registries[kind][name]) or ""
    said = OPTIONS[name] if kind == "option" else FORMS[name]
    return said[0].upper() + said[1:].rstrip(".") + "."


def names(kind: str) -> list[str]:
    """Every name that has a card.

    >>> names("strategy")[:2], names("form")
    (['uniform', 'dropsens'], ['original', 'auto'])
    """
    if kind == "strategy":
        return [UNIFORM, SENSITIVITY, *rules()]
    known = {"score": SCORES, "option": OPTIONS, "network": NETWORKS, "form": FORMS}
    return list(known[kind])


def cards(kind: str) -> list[Card]:
    """The cards of one kind: score, strategy, option, form or network."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8")).get(kind, {})
    made = []
    for name in names(kind):
        made.append(Card(kind=kind, name=name, **from_docstring(docstring(kind, name)) | table.get(name, {})))
    return made


def written(card: Card) -> list[str]:
    """The methods that a score or a rule is used in, as they are printed."""
    if card.kind == "score":
        front = "" if card.name == PAPER_SCORE else f"{card.name}-"
        return [f"{turned}{front}{rule}" for rule in rules() for turned in ("", "inverse-")]
    if card.kind == "strategy":
        plain = card.name not in (UNIFORM, SENSITIVITY)
        return [card.name, f"inverse-{card.name}", f"SCORE-{card.name}"] if plain else [card.title]
    if card.kind == "option":
        return [f"dropedge:{card.name}", f"cdf:{card.name}"]
    return [card.name] if card.kind == "form" else [card.name, f"{card.name}+METHOD"]


def as_markdown(card: Card, found: Measured, address: str) -> str:
    """A card as the Markdown of a page."""
    lines = [f"## {card.title}", "", ":::{card}", ":class-card: method-card", "", card.words, ""]
    said = {"Formula": card.formula if card.formula != card.words else "as above"}
    said |= {"Cost": card.cost, "Measured": "; ".join(found.seconds) or "not measured"}
    said |= {"Source": card.source, "Good for": card.good}
    said |= {"Written as": ", ".join(f"`{name}`" for name in written(card))}
    for term, words in said.items():
        if words:
            lines += [term, f": {words}", ""]
    lines += ["Verdict", *_indented(verdict(card, found, address)), "", ":::", ""]
    return "\n".join(lines)


def _indented(lines: list[str]) -> list[str]:
    return [f"{': ' if number == 0 else '  '}{line}" if line else "" for number, line in enumerate(lines)]


def verdict(card: Card, found: Measured, address: str) -> list[str]:
    """What came out, as Markdown; what was not measured is named too."""
    lines = []
    if found.studies:
        rows = [(f"`{one.method.name}`", f"[{one.data}]({address}/{one.folder})", *one.cells) for one in found.studies]
        columns = ("method", "measured on", "test accuracy (%)", *reference_names())
        lines += [*markdown(columns, rows, (0, 1)), ""]
    if found.verdicts:
        lines += [*(f"* {sentence}" for sentence in found.verdicts), ""]
    rest = [name for name in written(card) if name not in found.methods] if card.kind == "score" else []
    if not lines:
        return ["not measured"]
    if card.kind == "option" and not found.studies:
        lines += ["Accuracy: not measured."]
    return lines + ([f"Not measured: {', '.join(f'`{name}`' for name in rest)}."] if rest else [])


class MethodCards(SphinxDirective):
    """Every card of one kind, each under a heading of its own."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Make the cards; one that lacks something is a warning."""
        kind = self.arguments[0]
        for file in [TABLE, *files()]:
            self.env.note_dependency(str(file))
        address = f"{self.config.repository_url}/tree/{self.config.repository_branch}/results"
        texts = []
        for card in cards(kind):
            if card.missing:
                logger.warning("the card of the %s %r lacks its %s", kind, card.name, " and ".join(card.missing))
            texts.append(as_markdown(card, measured().get((kind, card.name), Measured()), address))
        return self.parse_text_to_nodes("\n".join(texts), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("method-cards", MethodCards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
