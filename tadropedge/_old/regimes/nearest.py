"""The cell of the map that is nearest to a user's data, and what was found there, in one sentence.

The distance of two cases is the root of a sum of squares: the difference in homophily over 0.2; the factors in mean
degree, labels per class, classes and layers, each doubling counting 1; the factor in nodes, where doubling counts ½; 1
for another network. Whether edges are noisy or features missing is not known of a user's data: such cells are not used.
Cells with a given budget are used only where the user has one, which then counts as the other factors do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tadropedge._old.comparison.card import DataCard
from tadropedge._old.publish.wording import gap
from tadropedge._old.regimes.results import BASE, RegimeMap
from tadropedge._old.regimes.shipped import ShippedCell, ShippedMap, shipped, shrunk
from tadropedge._old.regimes.summary import GAIN, LOSS, UNJUDGED, condition_words

HOMOPHILY = 0.2  # a difference of this size counts 1
LEAST = 2.0**-10  # of what a logarithm is taken of
FAR = 3.0  # beyond this distance, the sentence says that the case is not a near one
UNKNOWN = ("noise", "features")  # kinds of conditions that no card tells of


@dataclass(frozen=True, kw_only=True)
class Nearest:
    """The nearest ``cell``, its ``distance``, and the sentence in ``words``."""

    cell: ShippedCell
    distance: float
    words: str


def nearest(
    card: DataCard,
    *,
    backbone: str,
    layers: int,
    labels_per_class: float | None = None,
    keep_ratio: float | None = None,
    found: RegimeMap | ShippedMap | None = None,
) -> Nearest | None:
    """The nearest judged cell of ``found``, by default of the map that is shipped.

    ``None`` where there is no map, or where the data has no homophily to go by: tasks on whole graphs, of which the
    map has none. ``labels_per_class`` is by default that of the card's split.
    """
    made = shipped() if found is None else found
    if made is None or card.homophily is None:
        return None
    known = made if isinstance(made, ShippedMap) else shrunk(made)
    labels = card.split[0] / max(card.classes, 1) if labels_per_class is None else labels_per_class
    asked = _Asked(card=card, backbone=backbone, layers=layers, labels=labels, keep_ratio=keep_ratio)
    usable = [cell for cell in known.cells if asked.may_use(cell)]
    if not usable:
        return None
    cell = min(usable, key=asked.distance)
    far = asked.distance(cell)
    return Nearest(cell=cell, distance=far, words=sentence(cell, far))


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A user's case."""

    card: DataCard
    backbone: str
    layers: int
    labels: float
    keep_ratio: float | None

    def may_use(self, cell: ShippedCell) -> bool:
        """Whether a cell was judged and differs in nothing that is not known of the case."""
        given = cell.kind != "budget" or self.keep_ratio is not None
        return cell.state != UNJUDGED and cell.kind not in UNKNOWN and cell.homophily is not None and given

    def distance(self, cell: ShippedCell) -> float:
        """How far a cell is from the case."""
        return math.sqrt(sum(part * part for part in self._parts(cell)))

    def _parts(self, cell: ShippedCell) -> Iterator[float]:
        card = self.card
        yield ((card.homophily or 0.0) - (cell.homophily or 0.0)) / HOMOPHILY
        yield _doublings(card.mean_degree, cell.mean_degree)
        yield _doublings(card.nodes, cell.nodes) / 2
        yield _doublings(self.labels, cell.labels)
        yield _doublings(card.classes, cell.classes)
        yield _doublings(self.layers, cell.layers)
        yield float(self.backbone != cell.backbone)
        if self.keep_ratio is not None:  # a cell without a budget is one of the whole graph
            kept = cell.value if cell.kind == "budget" and isinstance(cell.value, float | int) else 1.0
            yield _doublings(self.keep_ratio, kept)


def _doublings(one: float, other: float) -> float:
    """How often one number must be doubled to become the other.

    >>> _doublings(3.0, 12.0), _doublings(0, 0)
    (2.0, 0.0)
    """
    return abs(math.log2(max(one, LEAST) / max(other, LEAST)))


def sentence(cell: ShippedCell, distance: float = 0.0) -> str:
    """What was found in a cell, and no more than that."""
    front = "nearest case of the map" if distance <= FAR else "nearest case of the map, though not a near one,"
    return f"The {front} is {_where(cell)}: {_found(cell)}."


def _where(cell: ShippedCell) -> str:
    labels = f"{cell.labels:.0f} label{'' if round(cell.labels) == 1 else 's'} per class"
    told = "" if cell.kind in (BASE, "labels", "depth", "network") else f", {condition_words(cell.kind, cell.value)}"
    depth = f", {cell.backbone} with {cell.layers} layer{'' if cell.layers == 1 else 's'}{told}"
    homophily = "" if cell.homophily is None else f"homophily {cell.homophily:.2f}, "
    return f"{cell.dataset} with {labels}{depth} ({homophily}mean degree {cell.mean_degree:.1f})"


def _found(cell: ShippedCell) -> str:
    told = gap(cell.gain, cell.low, cell.high, signed=True)
    number = f"+{told}" if (cell.gain or 0.0) > 0 else told
    if cell.state == GAIN:
        beside = {
            "better": " and is surely better than DropEdge",
            "worse": " but is surely worse than DropEdge",
            "undecided": " and cannot be told apart from DropEdge",
            None: "",
        }[cell.dropedge]
        return f"there {cell.method} gained {number} over not dropping{beside}"
    if cell.state == LOSS:
        return f"there every method was surely worse than not dropping, least {cell.method} ({number})"
    width = "" if cell.half_width is None else f" (a difference is known to ± {100 * cell.half_width:.2f} points)"
    return f"there no method was surely better than not dropping{width}"
