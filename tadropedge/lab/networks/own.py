"""Your own ``nn.Module`` as a network, trained alone: its layers are not seen, so it is no batch of models.

A factory makes the module, ``factory(num_features, num_classes)``. Where its signature names ``dropout``, it is told
that, which is searched; it is told ``hidden`` and ``layers``, if they were said, or if it has no defaults for them. The
module is called as ``forward(x, edge_index, edge_weight)``, or as ``forward(x, edge_index)`` where it takes no weights:
``x [N, F]`` is dense, ``edge_index [2, A]`` holds both directions of the edges that exist in this step, sorted by
source and target, and ``edge_weight [A]`` what they weigh, ``None`` where all weigh 1. What it returns are logits
``[N, C]``.

Its start and its dropout, as far as torch draws them, are pure functions of the trial's seed and the step; what else
your program draws from torch is not touched.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from tadropedge._support.checks import ask
from tadropedge.errors import TadropedgeError, show
from tadropedge.graph import Graph
from tadropedge.lab.networks.layers import Inputs
from tadropedge.lab.networks.network import RATES, Network, Setting, Sizes, Start, Value
from tadropedge.lab.networks.noise import Noise
from tadropedge.lab.networks.view import View

KNOWN = ("hidden", "layers", "dropout")  # what a factory may also be told
MAKES = "factory(num_features, num_classes) -> nn.Module, with hidden, layers and dropout as further names if it likes"
FORWARD = "forward(x [N, F], edge_index [2, A], edge_weight=None) -> logits [N, C]"
STREAM = 200  # of the words that random numbers inside a module start from


class OwnNetwork(Network):
    """What own modules share; :func:`own_network` makes a subclass for each factory. There is one trial."""

    factory: ClassVar[Callable[..., Any]]
    called: ClassVar[str]
    takes: ClassVar[tuple[str, ...]] = ()
    recordable = False
    supports: ClassVar[tuple[str, ...]] = ("dropping",)  # unless the module takes weights
    space = {name: entry for name, entry in RATES.items() if name != "dropout"}

    def __init__(self, sizes: Sizes, settings: Sequence[Mapping[str, Value]], start: Start) -> None:
        super().__init__(sizes, settings, start)
        known = {"hidden": sizes.hidden, "layers": sizes.layers, **settings[0]}
        told = {name: known[name] for name in self.takes}
        with random_numbers(start.seeds[0], torch.device("cpu")):
            made = ask(self.called, MAKES, self.factory, sizes.num_features, sizes.num_classes, **told)
            if not isinstance(made, nn.Module):
                raise TadropedgeError(f"{self.called} must return an nn.Module with {FORWARD}, got {show(made)}")
            if any(nn.parameter.is_lazy(part) for part in (*made.parameters(), *made.buffers())):
                two = torch.zeros(2, sizes.num_features), torch.tensor([[0, 1], [1, 0]])
                with torch.no_grad():  # lazy layers get their shapes from a pass over two nodes
                    ask(f"the module of {self.called}", FORWARD, made.eval(), *two)
        self.module = made

    def forward(self, x: Any, view: View) -> Tensor:
        """Logits ``[1, N, C]``, in training mode where the view is one of training."""
        dense = x.dense if isinstance(x, Inputs) else x
        arcs, weight = arcs_of(view)
        named = {"edge_weight": weight} if "weights" in self.supports else {}
        seed = 0 if view.noise is None else int(view.noise.words(1, STREAM))
        with random_numbers(seed, dense.device):
            module = self.module.train(view.training)
            logits = ask(f"the module of {self.called}", FORWARD, module, dense, arcs, **named)
        wanted = [len(dense), self.sizes.num_classes]
        if not isinstance(logits, Tensor) or list(logits.shape) != wanted or not logits.is_floating_point():
            got = f"{logits.dtype} of shape {list(logits.shape)}" if isinstance(logits, Tensor) else show(logits)
            raise TadropedgeError(
                f"the module of {self.called} must return logits [N, C] = {wanted}, one row for each node and one "
                f"column for each class, got {got}"
            )
        return logits.float()[None]

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        """Those that learn: not what the module has frozen."""
        return (part for part in super().parameters(recurse) if part.requires_grad)

    def take(self, places: Sequence[int]) -> None:
        """There is one trial, which stays."""

    def stacked(self) -> dict[str, Tensor]:
        """The module's ``state_dict``, each with an axis of one trial."""
        return {name: value[None] for name, value in self.module.state_dict().items()}

    def load_trial(self, state: Mapping[str, Tensor]) -> None:
        """Take the ``state_dict`` of a module."""
        self.module.load_state_dict(dict(state))


def own_network(
    factory: Callable[..., Any], sizes: Sizes, x: Inputs, graph: Graph, said: Sequence[str] = ()
) -> type[OwnNetwork]:
    """The network of a factory, which is refused here if what it makes cannot be trained on this graph.

    It is found out by one pass forwards and backwards over all nodes, with half of the edges. ``said`` are those of
    ``hidden`` and ``layers`` that replace a factory's own defaults.

    >>> class Linear(nn.Module):
    ...     def __init__(self, num_features, num_classes, dropout=0.5):
    ...         super().__init__()
    ...         self.linear, self.drop = nn.Linear(num_features, num_classes), nn.Dropout(dropout)
    ...     def forward(self, x, edge_index):
    ...         return self.linear(self.drop(x))
    >>> path = Graph.from_edge_index([[0, 1], [1, 2]])
    >>> network = own_network(Linear, Sizes(num_features=3, num_classes=2), Inputs(torch.eye(3)), path)
    >>> network.takes, network.supports
    (('dropout',), ('dropping',))
    """
    name = _name(factory)
    called = f"the model {name!r}"
    if isinstance(factory, nn.Module) or not callable(factory):
        example = f"lambda num_features, num_classes: {name}(...)"
        got = (
            f"a module: pass a function that makes it, such as {example}"
            if isinstance(factory, nn.Module)
            else show(factory)
        )
        raise TadropedgeError(f"{called} must be a function {MAKES}, got {got}", argument="model")
    try:
        signature = inspect.signature(factory)
        named = signature.parameters
        takes = tuple(
            known for known in KNOWN
            if known in named and (known in ("dropout", *said) or named[known].default is named[known].empty)
        )  # fmt: skip
        signature.bind(0, 0, **dict.fromkeys(takes, 0))
    except (TypeError, ValueError) as error:
        problem = f"{called} must be a function {MAKES}; it cannot be called so: {error}"
        raise TadropedgeError(problem, argument="model") from error
    members: dict[str, Any] = {"factory": staticmethod(factory), "called": called, "takes": takes}
    if "dropout" in takes:
        members |= {"settings": {"dropout": Setting(0.5, most=1.0)}, "space": RATES}
    kind: type[OwnNetwork] = type(name, (OwnNetwork,), {"__doc__": f"What {called} makes.", **members})
    network = kind(sizes, [kind.completed(called, {})], Start([0])).to(graph.device)
    _check_module(network.module, called)
    if takes_weights(network.module):
        kind.supports = ("dropping", "weights")
    elif graph.weight is not None:
        warnings.warn(
            f"the module of {called} takes no edge_weight: the weights of the graph are ignored", stacklevel=2
        )
    _check_pass(network, x, graph)
    return kind


def takes_weights(module: nn.Module) -> bool:
    """Whether the forward pass takes ``edge_weight``; PyG's GAT says that it does and does not."""
    named = "edge_weight" in inspect.signature(module.forward).parameters
    return named and getattr(module, "supports_edge_weight", True) is not False


def arcs_of(view: View) -> tuple[Tensor, Tensor | None]:
    """Both directions of the edges that exist ``[2, A]``, and what they weigh ``[A]``; for a view of one trial.

    >>> path = Graph.from_edge_index([[0, 1], [1, 2]])
    >>> arcs_of(View(path, torch.tensor([False, True]), torch.tensor([2.0, 4.0])))
    (tensor([[1, 2],
            [2, 1]]), tensor([4., 4.]))
    """
    entries, weight = view.entries(), view.graph.weight
    arcs, pair = torch.stack((entries.row, entries.col))[:, entries.edge], entries.pair_source[entries.edge]
    if view.factor is not None:
        factor = view.factor.reshape(-1)
        weight = factor if weight is None else weight * factor
    if view.kept is not None:
        kept = view.kept.reshape(-1)[pair]
        arcs, pair = arcs[:, kept], pair[kept]
    return arcs, None if weight is None else weight[pair].float()


@contextmanager
def random_numbers(seed: int, device: torch.device) -> Iterator[None]:
    """Within the block, torch draws from ``seed`` on the CPU and the device; after it, it goes on as before."""
    cuda = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        for generator in (torch.default_generator, *(torch.cuda.default_generators[place] for place in cuda)):
            generator.manual_seed(seed % 2**63)
        yield


def _name(factory: Any) -> str:
    while isinstance(factory, partial):
        factory = factory.func
    return str(getattr(factory, "__name__", type(factory).__name__))


def _check_module(module: nn.Module, called: str) -> None:
    """Refuse what cannot be trained on subgraphs that change."""
    learning = {name: part for name, part in module.named_parameters() if part.requires_grad}
    if not learning:
        raise TadropedgeError(f"the module of {called} has no parameters to train")
    for name, part in learning.items():
        if part.dtype != torch.float32:
            raise TadropedgeError(f"the parameter {name!r} of {called} must be float32, got {part.dtype}")
    for name, layer in module.named_modules():
        if getattr(layer, "cached", False) is True:
            raise TadropedgeError(
                f"the layer {name or type(layer).__name__!r} of {called} has cached=True: it would remember the edges "
                "of the first step, and each step has others; make it with cached=False"
            )


def _check_pass(network: OwnNetwork, x: Inputs, graph: Graph) -> None:
    """Refuse logits that learn nothing or are not finite."""
    one, called = torch.zeros(1, dtype=torch.int64, device=graph.device), network.called
    half = torch.arange(graph.num_edges, device=graph.device) % 2 == 0
    logits = network(x, View(graph, half, noise=Noise(one.float(), one, one[0])))
    if not logits.requires_grad:
        raise TadropedgeError(f"the module of {called} returns logits that do not depend on its parameters")
    slopes = torch.autograd.grad(logits.sum(), list(network.parameters()), allow_unused=True)
    for name, values in (("logits", [logits]), ("gradients", [slope for slope in slopes if slope is not None])):
        if not all(bool(torch.isfinite(value).all()) for value in values):
            raise TadropedgeError(f"the module of {called} must give finite {name}, got NaN or infinity at its start")
