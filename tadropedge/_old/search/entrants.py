"""What enters a comparison: methods, and the three references that each of them is judged against.

``none``, not dropping: the same network with all edges. ``dropedge``: the same network with uniform dropping.
``budget``: the same with the kept share of the method, its budget. All are tuned for themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field

from tadropedge._old.errors import TadropedgeError
from tadropedge._old.method import Method
from tadropedge._old.registry import NETWORKS
from tadropedge._old.search import automatic
from tadropedge._old.search.space import Choice, Space, Spaces, Uniform, space_for, trial
from tadropedge._old.training.config import Trial

BUDGET = ("keep_prob", "keep_ratio")  # settings that a fixed share replaces
BACKBONE = ("original", "dropedge")  # of the comparison's own network: not dropping, and uniform dropping


@dataclass(frozen=True)
class Entrant:
    """A method that is tuned, or, with a ``keep_ratio``, a method at this expected share of kept edges.

    With the option ``nested`` the mean over layers is this share: the rates of the first and the last layer lie around
    it, and not below ``least``. A trial of ``auto`` that does not ``reach`` it is one of a method beside it that does.

    >>> Entrant("dropedge", 0.8125).name, Entrant("dropedge", 0.8125).place, Entrant("cdf").place
    ('dropedge at 81.25 %', 'budget/dropedge-0.8125', 'search/cdf')
    """

    method: str
    keep_ratio: float | None = None
    _: KW_ONLY
    least: float = 0.0
    reaches: Callable[[Trial], bool] | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        """As results call it."""
        return self.method if self.keep_ratio is None else f"{self.method} at {100 * self.keep_ratio:.6g} %"

    @property
    def place(self) -> str:
        """What follows the name of a comparison in the names of its studies."""
        name = automatic.place(self.method)
        return f"search/{name}" if self.keep_ratio is None else f"budget/{name}-{self.keep_ratio:g}"

    @property
    def settings(self) -> dict[str, object]:
        """What decides an outcome beside the method and its space."""
        return {} if self.keep_ratio is None else {"keep_ratio": self.keep_ratio}

    def space(self, spaces: Spaces) -> Space:
        """What is tuned: the space of the method; with a fixed share there is no budget to tune."""
        space = space_for(spaces, self.method)
        if self.keep_ratio is None:
            return space
        left = {name: one for name, one in space.parameters.items() if name not in BUDGET}
        if "keep_last" in left:
            low, high = max(self.least, 2 * self.keep_ratio - 1), min(1.0, 2 * self.keep_ratio - self.least)
            left["keep_last"] = Uniform(_short(low), _short(high))
        return Space(left)

    def trial(self, space: Space, seed: int, i: int, split: int) -> Trial:
        """Trial ``i`` on a ``split``; see :func:`tadropedge._old.search.space.trial`."""
        made = trial(space, seed, i, self.method, split)
        if self.keep_ratio is None:
            return made
        if not Method.of(self.method).auto:
            return self._kept(made)
        every = (self._kept(_of_method(made, name)) for name in easier(made.method))
        possible = (one for one in every if _holds(space, one) and (self.reaches is None or self.reaches(one)))
        found = next(possible, None)
        if found is None:
            raise TadropedgeError(
                f"the search space of {self.method} has nothing beside {made.method} that can keep {self.keep_ratio:g} "
                "of the edges: name the score uniform, or the rule proportional"
            )
        return found

    def _kept(self, made: Trial) -> Trial:
        """A trial with the budget: where rates change with the layer, that of the first makes up for the last."""
        assert self.keep_ratio is not None
        if "nested" not in Method.of(made.method).options:
            return made.but(keep_ratio=self.keep_ratio)
        last = self.keep_ratio if made.keep_last is None else made.keep_last
        return made.but(keep_ratio=_short(2 * self.keep_ratio - last), keep_last=last)


def easier(method: str) -> list[str]:
    """A method, then those beside it that can keep fewer edges: without its options, then with rules that keep any.

    >>> easier("degree-cdf:connected")
    ['degree-cdf:connected', 'degree-cdf', 'degree-proportional:connected', 'degree-proportional']
    >>> easier("graphsage+dropsens"), easier("original")
    (['graphsage+dropsens', 'graphsage+dropedge'], ['dropedge'])
    """
    one = Method.of(method)
    front = "" if one.network is None else f"{one.network}+"
    if one.strategy is None:
        return [f"{front}dropedge"]
    plain, _, options = one.dropping.partition(":")
    inverse = "inverse-" if one.inverse else ""
    free = "dropedge" if one.score is None else f"{one.score}-{inverse}{automatic.ANY_BUDGET}"
    names = [f"{front}{name}{end}" for name in (plain, free) for end in ((f":{options}", "") if options else ("",))]
    return list(dict.fromkeys(Method.of(name).name for name in names))


def _of_method(made: Trial, name: str) -> Trial:
    """The trial with another method, without the settings that this has no use for."""
    idle = set(automatic.TUNED) - automatic.used(Method.of(name))
    told = {key: value for key, value in made.flat().items() if key not in idle}
    return Trial.of(name, seed=made.seed, split=made.split, **told)


def _holds(space: Space, made: Trial) -> bool:
    """Whether the choices of ``auto`` in a space hold the method of a trial."""
    told = automatic.told(made)
    lists = {name: one.values for name, one in space.parameters.items() if isinstance(one, Choice)}
    return all(told[name] in lists[name] for name in automatic.NAMES if name in told and name in lists)


def _short(share: float) -> float:
    """Twelve digits, so that 2 · 0.35 − 0.6 is 0.1."""
    return float(f"{share:.12g}")


def references(method: str, keep_ratio: float | None = None) -> dict[str, str]:
    """The tuned references that a method is judged against: ``none`` and, if it is adaptive, ``dropedge``.

    A network that sees no edges or chooses them itself is judged against the backbone with all edges. Where all that
    drop keep the same ``keep_ratio``, DropEdge has it, too: it is the reference of kind ``budget``.

    >>> references("cdf"), references("dropedge"), references("ptdnet")
    ({'none': 'original', 'dropedge': 'dropedge'}, {'none': 'original'}, {'none': 'original'})
    >>> references("graphsage+cdf"), references("graphsage")
    ({'none': 'graphsage', 'dropedge': 'graphsage+dropedge'}, {})
    >>> references("cdf", keep_ratio=0.7)
    {'none': 'original', 'budget': 'dropedge'}
    """
    one = Method.of(method)
    undropped, uniform = _baselines(one)
    judged = {"none": undropped} if one.name != undropped else {}
    kind = "dropedge" if keep_ratio is None else "budget"
    return judged | ({kind: uniform} if one.adaptive and uniform else {})


def with_references(methods: Iterable[str]) -> list[str]:
    """The baselines of their networks, whether they are named or not, then the other methods.

    >>> with_references(["cdf"]), with_references(["ptdnet", "graphsage+cdf"])
    (['original', 'dropedge', 'cdf'], ['original', 'graphsage', 'graphsage+dropedge', 'ptdnet', 'graphsage+cdf'])
    """
    named = [Method.of(method) for method in methods]
    needed = [name for method in named for name in _baselines(method) if name]
    return list(dict.fromkeys([*needed, *(method.name for method in named)]))


def budgets(kept_share: Mapping[str, float], step: float | None = None) -> dict[str, Entrant]:
    """DropEdge at the kept share of each adaptive method, by method.

    With a ``step`` shares are rounded to its multiples, 0 excluded: methods of nearly equal shares have one reference.

    >>> budgets({"cdf": 0.8})["cdf"].name
    'dropedge at 80 %'
    >>> {method: one.keep_ratio for method, one in budgets({"cdf": 0.812, "cutoff": 0.79}, step=0.05).items()}
    {'cdf': 0.8, 'cutoff': 0.8}
    """
    return {method: Entrant(Method.of(method).reference, _rounded(share, step)) for method, share in kept_share.items()}


def _rounded(share: float, step: float | None) -> float:
    return share if step is None else _short(min(1.0, max(1, round(share / step)) * step))


def _baselines(method: Method) -> tuple[str, str | None]:
    """Not dropping on the network of a method, and DropEdge on it if edges can be dropped there."""
    if method.network is None:
        return BACKBONE
    if not NETWORKS[method.network].drops:
        return BACKBONE[0], None
    return method.network, method.reference
