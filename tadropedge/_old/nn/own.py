"""Your own ``nn.Module`` as a network: trained, tuned, saved and judged like the backbones.

A factory makes the module, ``factory(num_features, num_classes)``, and is also told ``hidden``, ``layers`` and
``dropout`` where its signature names them. The module is called as ``forward(x, edge_index, edge_weight)``, or as
``forward(x, edge_index)`` where it takes no weights: ``x [N, F]`` is dense, ``edge_index [2, A]`` holds both directions
of the edges that exist in this step, sorted by source and target, and ``edge_weight [A]`` the weights of a weighted
graph, else None. What it returns are logits ``[N, C]``.

We do not see its layers. So trials are trained one after the other, and one subgraph serves all layers of a step.
The start and all random numbers (dropout) are pure functions of the trial's seed and the step, as everywhere here, and
what your program draws from torch, NumPy or ``random`` is not touched.
"""

from __future__ import annotations

import inspect
import random
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from tadropedge._old.checks import ask, check_text
from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.fingerprint import fingerprint
from tadropedge._old.nn.backbones import DEFAULT_SPACE
from tadropedge._old.nn.layers import Features, Parameters
from tadropedge._old.nn.network import Network, Problem, Shapes, Sizes, TrainingStep, Value
from tadropedge._old.registry import NAME, NETWORKS, RESERVED, SCORES, STRATEGIES
from tadropedge._old.sparse import KeptProducts

KNOWN = ("hidden", "layers", "dropout")  # what a factory may also be told
MAKES = "factory(num_features, num_classes) -> nn.Module, with hidden, layers and dropout as further names if it likes"
FORWARD = "forward(x [N, F], edge_index [2, A], edge_weight=None) -> logits [N, C]"
STREAM = 200  # of the words that random numbers inside a module start from
EXACT = 2**24  # whole numbers up to this are exact in float32


class OwnNetwork(Network):
    """What all own modules share; :func:`own_network` makes a class for each factory.

    ``told`` is how a user wrote the factory, ``takes`` the names of ``KNOWN`` in its signature, and ``code`` the
    fingerprint of its code and of the classes it uses, by which a study notices that the model has changed.
    """

    opaque = True
    recordable = False
    told: ClassVar[str] = ""
    factory: ClassVar[Callable[..., Any]]
    takes: ClassVar[Mapping[str, object]] = {}  # with their defaults
    code: ClassVar[str] = ""
    weighs = True  # until the first module is seen

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.modules = self._made([0] * len(problem.settings))
        self._features: tuple[Tensor, Tensor] | None = None  # as they were given, and dense

    # -- what it consists of ------------------------------------------------------------------------------

    @classmethod
    def module(cls, sizes: Sizes, dropout: float = 0.5, seed: int = 0) -> nn.Module:
        """What the factory makes, checked: a pure function of the sizes, the dropout and the seed."""
        known = {"hidden": sizes.hidden, "layers": sizes.layers, "dropout": dropout}
        told = {name: known[name] for name in cls.takes}
        with random_numbers(seed, torch.device("cpu")):
            made = ask(cls.told, MAKES, cls.factory, sizes.num_features, sizes.num_classes, **told)
            if not isinstance(made, nn.Module):
                raise TadropedgeError(f"{cls.told} must return an nn.Module with {FORWARD}, got {show(made)}")
            if any(nn.parameter.is_lazy(part) for part in (*made.parameters(), *made.buffers())):
                cls._materialise(made, sizes)
        _check_module(made, cls.told)
        return made

    @classmethod
    def _materialise(cls, module: nn.Module, sizes: Sizes) -> None:
        """Lazy layers get their shapes from a pass over two nodes."""
        arcs = torch.tensor([[0, 1], [1, 0]])
        with torch.no_grad():
            ask(f"the module of {cls.told}", FORWARD, module.eval(), torch.zeros(2, sizes.num_features), arcs)

    @classmethod
    def shapes(cls, sizes: Sizes, settings: Mapping[str, Value]) -> Shapes:
        """The module's own parameters, but for those it has frozen."""
        return {name: tuple(part.shape) for name, part in trained(cls.module(sizes)).items()}

    @classmethod
    def buffers(cls, sizes: Sizes, settings: Mapping[str, Value]) -> dict[str, tuple[tuple[int, ...], float]]:
        """The rest of its ``state_dict``: buffers and frozen parameters. Their true start is the module's own."""
        return {name: (tuple(part.shape), 0.0) for name, part in untrained(cls.module(sizes)).items()}

    @classmethod
    def footprint(cls, sizes: Sizes, settings: Mapping[str, Value], signals: int, entries: int) -> int:
        """The least: dense features, logits, and the arcs. What the module itself needs is not known."""
        return signals * (sizes.num_features + 4 * sizes.num_classes) + 6 * entries

    @property
    def draws(self) -> int:
        """One subgraph for all layers."""
        return 1

    def initial(self, seeds: Sequence[int], device: torch.device) -> Parameters:
        """The parameters that the factory makes where torch, NumPy and ``random`` start from the trial's seed."""
        self.modules = self._made(seeds)
        return _stacked([trained(module) for module in self.modules], device)

    def running(self, trials: int, device: torch.device) -> Parameters:
        """Buffers and frozen parameters as the factory made them; whole numbers are kept as float32."""
        return _stacked([untrained(module) for module in self.modules[:trials]], device)

    def _made(self, seeds: Sequence[int]) -> list[nn.Module]:
        rates = self.problem.dropout or [0.5] * len(seeds)
        device = self.problem.graph.device
        made = [self.module(self.problem.sizes, rate, seed) for rate, seed in zip(rates, seeds, strict=False)]
        type(self).weighs = takes_weights(made[0])
        return [module.to(device) for module in made]

    # -- what it does -------------------------------------------------------------------------------------

    def training(self, state: Parameters, step: TrainingStep) -> tuple[Tensor, Tensor]:
        """In training mode, on the kept arcs; parameters that a pass does not use have a gradient of 0."""
        words = step.draws.words(1, STREAM)[:, 0].tolist()
        x, keep, factors = self._dense(step.x), step.keep(0), step.factors
        passes = []
        for place, module in enumerate(self.modules):
            arcs = self._arcs(None if keep is None else keep[place], None if factors is None else factors[0][place])
            mine = {name: value[place] for name, value in state.items()}
            passes.append(self._logits(module.train(), mine, (x, *arcs), words[place] % 2**63))
        unused = torch.stack([state[name][:0].sum() for name in trained(self.modules[0])]).sum()
        return torch.stack(passes), unused

    def evaluation(self, state: Parameters, x: Features, epoch: Tensor) -> Tensor:
        """In evaluation mode, on all arcs; buffers stay as they are."""
        features, arcs, fixed = self._dense(x), self._arcs(None, None), untrained(self.modules[0])
        passes = []
        for place, module in enumerate(self.modules):
            mine = {key: value[place].clone() if key in fixed else value[place] for key, value in state.items()}
            passes.append(self._logits(module.eval(), mine, (features, *arcs), seed=0))
        return torch.stack(passes)

    def _logits(
        self, module: nn.Module, state: Parameters, given: tuple[Tensor, Tensor, Tensor | None], seed: int
    ) -> Tensor:
        """The logits ``[N, C]`` of a module with this ``state``, whose buffers change in place."""
        kinds = {name: part.dtype for name, part in untrained(module).items() if part.dtype != torch.float32}
        parts = {name: value.to(kinds[name]) if name in kinds else value for name, value in state.items()}
        x, arcs, weight = given
        named = {"edge_weight": weight} if takes_weights(module) else {}
        with random_numbers(seed, x.device):
            call = partial(torch.func.functional_call, module, parts, (x, arcs), named)
            logits = ask(f"the module of {self.told}", FORWARD, call)
        with torch.no_grad():
            for name in untrained(module):  # what a module has put in the place of a buffer, too
                if parts[name] is not state[name]:
                    state[name].copy_(parts[name])
        self._check_logits(logits, x.shape[0])
        values: Tensor = logits.float()
        return values

    def _check_logits(self, logits: object, nodes: int) -> None:
        wanted = [nodes, self.problem.sizes.num_classes]
        if not isinstance(logits, Tensor) or list(logits.shape) != wanted or not logits.is_floating_point():
            got = f"{logits.dtype} of shape {list(logits.shape)}" if isinstance(logits, Tensor) else show(logits)
            raise TadropedgeError(
                f"the module of {self.told} must return logits [N, C] = {wanted}, one row for each node and one column "
                f"for each class, got {got}"
            )

    def _dense(self, x: Features) -> Tensor:
        """The features ``[N, F]``, dense; sparse ones are copied once, 4 N F bytes."""
        matrix = x.matrix if isinstance(x, KeptProducts) else x
        if not isinstance(matrix, Tensor):
            raise TadropedgeError(f"{self.told} needs features [N, F], got {type(x).__name__}")
        if self._features is None or self._features[0] is not matrix:
            self._features = matrix, matrix.to_dense() if matrix.layout is not torch.strided else matrix
        return self._features[1]

    def _arcs(self, keep: Tensor | None, factors: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Both directions of the kept edges ``[2, A]``, and their weights ``[A]``, if there are any."""
        arcs, pair = self._both
        weight = self.problem.graph.weight
        if factors is not None:  # whole-graph weights over keep probabilities
            weight = factors if weight is None else weight * factors
        if keep is not None:
            inside = keep[pair] > 0
            arcs, pair = arcs[:, inside], pair[inside]
        return arcs, None if weight is None else weight[pair].float()

    @cached_property
    def _both(self) -> tuple[Tensor, Tensor]:
        """All arcs ``[2, 2M]``, sorted by source and target, and the edge of each ``[2M]``."""
        pairs, nodes = self.problem.graph.pairs, self.problem.graph.num_nodes
        arcs = torch.cat((pairs, pairs.flip(0)), dim=1)
        order = (arcs[0] * nodes + arcs[1]).argsort()
        return arcs[:, order], torch.arange(pairs.shape[1], device=pairs.device).repeat(2)[order]

    def rehearse(self, x: Features, unbiased: bool) -> None:
        """Refuse a module that cannot be trained on this graph: a pass over half of the edges, and one over all."""
        graph, told = self.problem.graph, self.told
        state = self.initial([0], graph.device)
        for parameter in state.values():
            parameter.requires_grad_(True)
        state |= self.running(1, graph.device)
        half = torch.arange(graph.num_edges, device=graph.device) % 2 == 0
        given = (self._dense(x), *self._arcs(half, None))
        logits = self._logits(self.modules[0].train(), {name: part[0] for name, part in state.items()}, given, seed=0)
        if not logits.requires_grad:
            raise TadropedgeError(f"the module of {told} returns logits that do not depend on its parameters")
        found = torch.autograd.grad(logits.sum(), [state[name] for name in trained(self.modules[0])], allow_unused=True)
        slopes = [slope for slope in found if slope is not None]
        whole = self.evaluation(state, x, torch.tensor(0))
        for name, values in (("logits", [logits, whole]), ("gradients", slopes)):
            if not all(bool(torch.isfinite(value).all()) for value in values):
                raise TadropedgeError(f"the module of {told} must give finite {name}, got NaN or infinity at its start")
        if graph.weight is not None and not self.weighs:
            warnings.warn(
                f"the module of {told} takes no edge_weight: the weights of the graph are ignored", stacklevel=2
            )
        if unbiased and (layers := _normalising(self.modules[0])):
            warnings.warn(
                f"with unbiased, the weights of kept edges are right on average, but {', '.join(layers)} in the module "
                f"of {told} normalise by the degrees that they see (normalize=True), so the matrix they use is not",
                stacklevel=2,
            )


# -- a class for every factory ------------------------------------------------------------------------------------


def own_network(factory: Callable[..., Any], told: str | None = None) -> str:
    """Make a network of a factory, add it to ``NETWORKS`` for this process, and return its name there.

    The name is the factory's in lower case with hyphens, and ``own-`` before it where it is taken. A factory of the
    same name takes the place of the one before. ``told`` is what messages call it.

    >>> class TwoHops(nn.Module):
    ...     def __init__(self, num_features, num_classes, dropout=0.5):
    ...         super().__init__()
    ...         self.linear = nn.Linear(num_features, num_classes)
    ...     def forward(self, x, edge_index):
    ...         return self.linear(x)
    >>> name = own_network(TwoHops)
    >>> name, list(NETWORKS[name].takes), NETWORKS.pop(name).__name__
    ('twohops', ['dropout'], 'TwoHops')
    """
    called = _called(factory)
    told = f"the model {called if told is None else check_text('told', told)!r}"
    if isinstance(factory, nn.Module):
        kind = type(factory).__name__
        raise TadropedgeError(f"{told} must be a function {MAKES}, got a module: pass what makes it, such as {kind}")
    if not callable(factory):
        raise TadropedgeError(f"{told} must be a function {MAKES}, got {show(factory)}")
    takes = _taken(factory, told)
    space = {name: entry for name, entry in DEFAULT_SPACE.items() if name != "normalization"}
    if "dropout" not in takes:
        del space["dropout"]
    members = {
        "__doc__": f"The module that {told} makes.",
        "__module__": __name__,
        "factory": staticmethod(factory),
        "told": told,
        "takes": takes,
        "noisy": "dropout" in takes,
        "space": space,
        "code": fingerprint(model=factory),
    }
    name = _fitting(called)
    NETWORKS[name] = type(called, (OwnNetwork,), members)
    return name


def _called(factory: Any) -> str:
    while isinstance(factory, partial):
        factory = factory.func
    return str(getattr(factory, "__name__", type(factory).__name__))


def _fitting(called: str) -> str:
    """A name for the grammar of methods.

    >>> _fitting("MyGCN_v2"), _fitting("GCN"), _fitting("<lambda>"), _fitting("cdf_inverse")
    ('mygcn-v2', 'own-gcn', 'own-lambda', 'own-cdf-inverse-model')
    """
    name = re.sub(r"[^a-z0-9]+", "-", called.lower()).strip("-") or "model"
    name = f"{name}-model" if name.split("-")[-1] == "inverse" else name
    ours = name in NETWORKS and not issubclass(NETWORKS[name], OwnNetwork)
    taken = ours or name in SCORES or name in STRATEGIES or name.split("-")[0] in (*RESERVED, *SCORES, *STRATEGIES)
    return f"own-{name}" if taken or not NAME.fullmatch(name) or "<" in called else name


def _taken(factory: Callable[..., Any], told: str) -> dict[str, object]:
    """The names of ``KNOWN`` that a factory takes, with its own defaults."""
    try:
        signature = inspect.signature(factory)
        known = {name: signature.parameters[name].default for name in KNOWN if name in signature.parameters}
        signature.bind(0, 0, **known)
    except (TypeError, ValueError) as error:
        raise TadropedgeError(f"{told} must be a function {MAKES}; it cannot be called so: {error}") from error
    return {name: None if value is inspect.Parameter.empty else value for name, value in known.items()}


def default_sizes(network: type[Network], num_features: int, num_classes: int) -> tuple[int, int]:
    """Layers and width of an own model where nobody names them: its own defaults, else 2 and 128.

    The layers of a factory that takes no number of them are counted: message passing layers with parameters.
    """
    takes: Mapping[str, object] = getattr(network, "takes", {})
    layers, hidden = (takes.get(name) for name in ("layers", "hidden"))
    width = hidden if isinstance(hidden, int) and hidden > 0 else 128
    if isinstance(layers, int) and layers > 0:
        return layers, width
    if "layers" in takes or not issubclass(network, OwnNetwork):
        return 2, width
    sizes = Sizes(num_nodes=0, num_features=num_features, num_classes=num_classes, layers=2, hidden=width)
    layered = [part for part in network.module(sizes).modules() if hasattr(part, "propagate")]
    return max(1, sum(next(part.parameters(), None) is not None for part in layered)), width


# -- modules ------------------------------------------------------------------------------------------------------


def trained(module: nn.Module) -> dict[str, Tensor]:
    """The parameters that learn, by the module's own names; one that is used twice is named once."""
    return {name: part.detach() for name, part in module.named_parameters() if part.requires_grad}


def untrained(module: nn.Module) -> dict[str, Tensor]:
    """What else is in its ``state_dict``: buffers, and parameters that it has frozen."""
    learning = {id(part) for part in module.parameters() if part.requires_grad}
    kept = module.state_dict(keep_vars=True).items()
    return {name: part.detach() for name, part in kept if isinstance(part, Tensor) and id(part) not in learning}


def takes_weights(module: nn.Module) -> bool:
    """Whether the forward pass takes ``edge_weight``.

    >>> class Plain(nn.Module):
    ...     def forward(self, x, edge_index): ...
    >>> class Weighted(nn.Module):
    ...     def forward(self, x, edge_index, edge_weight=None): ...
    >>> takes_weights(Plain()), takes_weights(Weighted())
    (False, True)
    """
    named = "edge_weight" in inspect.signature(module.forward).parameters
    return named and getattr(module, "supports_edge_weight", True) is not False  # as PyG's GAT says it does not


def _normalising(module: nn.Module) -> list[str]:
    """The layers that divide the weights of edges by degrees, such as ``GCNConv``, by name."""
    layers = ((name, layer) for name, layer in module.named_modules() if getattr(layer, "normalize", False) is True)
    seen = ((name, layer) for name, layer in layers if hasattr(layer, "propagate") and takes_weights(layer))
    return [name or type(layer).__name__ for name, layer in seen]


def _check_module(module: nn.Module, told: str) -> None:
    """Refuse what cannot be trained on subgraphs that change, or saved."""
    learning = trained(module)
    if not learning:
        raise TadropedgeError(f"the module of {told} has no parameters to train")
    for name, part in learning.items():
        if part.dtype != torch.float32:
            raise TadropedgeError(f"the parameter {name!r} of {told} must be float32, got {part.dtype}")
    for name, part in untrained(module).items():
        if part.is_complex() or not torch.equal(part.float().to(part.dtype), part):
            raise TadropedgeError(
                f"the buffer {name!r} of {told} is kept as float32, which cannot hold its values of {part.dtype}; "
                "register it with persistent=False"
            )
    for name, layer in module.named_modules():
        if getattr(layer, "cached", False) is True:
            called = name or type(layer).__name__
            raise TadropedgeError(
                f"the layer {called!r} of {told} has cached=True: it would remember the edges of the first step, and "
                "each step has others; make it with cached=False"
            )


def _stacked(states: Sequence[Mapping[str, Tensor]], device: torch.device) -> Parameters:
    """Values ``[T, ...]`` of T modules, float32, in memory of their own."""
    held = {name: torch.stack([state[name].float() for state in states]) for name in states[0]}
    return {name: value.contiguous().to(device) for name, value in held.items()}


@contextmanager
def random_numbers(seed: int, device: torch.device) -> Iterator[None]:
    """Within the block, torch, NumPy and ``random`` draw from ``seed``; after it they go on as before.

    >>> with random_numbers(3, torch.device("cpu")):
    ...     first = torch.rand(2)
    >>> with random_numbers(3, torch.device("cpu")):
    ...     print(torch.equal(torch.rand(2), first))
    True
    """
    cuda = [device.index or 0] if device.type == "cuda" else []
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 (a module may draw from the old generator)
    try:
        with torch.random.fork_rng(devices=cuda):
            torch.default_generator.manual_seed(seed)
            for place in cuda:
                torch.cuda.default_generators[place].manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed % 2**32)  # noqa: NPY002
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
