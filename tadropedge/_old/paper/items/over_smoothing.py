"""Section 5.1: how far edge dropping keeps outputs from over-smoothing, and how much it makes gradients vary.

The paper prints no number on either. Here both are measured: the spread of the outputs of deep GCNs over the nodes of
the largest component, and the variance of the training gradient over subgraphs; each beside DropEdge at the same p and
DropEdge that keeps as many edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeVar

import torch
from torch import Tensor

from tadropedge._old.data.dataset import Dataset
from tadropedge._old.nn.backbones import GCN
from tadropedge._old.nn.layers import Parameters
from tadropedge._old.paper.figures import smoothing as figures
from tadropedge._old.paper.item import Bench, Item, Table, Verdict
from tadropedge._old.paper.items.variance import Quantity, reduction
from tadropedge._old.paper.journal import Journal
from tadropedge._old.paper.judge import CLEAR, HOW, Array, judged, mean_and_error, where_it_holds
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import INLINED, Measured, Number, Row, grouped, title
from tadropedge._old.sampling import sample_edges
from tadropedge._old.scores.aggregate import aggregate_resistance
from tadropedge._old.strategies import keep_probabilities
from tadropedge._old.training.config import Architecture, Trial
from tadropedge._old.training.laboratory import Laboratory, data_fingerprints, make_task
from tadropedge._old.training.task import Task, cross_entropy, mean_at

Terms = Callable[[Tensor], Array]  # from keep probabilities [M] to terms whose mean is what is measured


@dataclass(frozen=True, kw_only=True)
class Deep(Row):
    """A strategy at one p in a GCN of some layers."""

    dataset: str
    normalization: str
    laplacian: str
    layers: int
    strategy: str
    keep_prob: float
    kept_share: float


@dataclass(frozen=True, kw_only=True)
class Outputs(Deep):
    """The spread of untrained outputs over nodes, 0 where they are over-smoothed; ``whole`` without dropping.

    ``above_whole`` is by how much ours is above that, as a share.
    """

    whole: Number
    above_whole: Number
    spread: Annotated[Quantity, INLINED]

    def less(self, how: str) -> Measured:
        """By how much it is less than DropEdge's, as a share."""
        return self.spread.reduction(how)


@dataclass(frozen=True, kw_only=True)
class Gradients(Deep):
    """The variance of the training gradient over subgraphs, in networks that were trained for some ``epochs``."""

    epochs: int
    variance: Annotated[Quantity, INLINED]

    def less(self, how: str) -> Measured:
        """By how much it is less than DropEdge's, as a share."""
        return self.variance.reduction(how)


ROWS = (Outputs, Gradients)
Found = Outputs | Gradients
R = TypeVar("R", bound=Found)


def run(bench: Bench) -> Item:
    """Outputs of every depth, gradients of every depth and stage of training."""
    recipe, journal = bench.recipe, Journal(bench)
    rows: list[Found] = []
    for name in bench.each(recipe.name, recipe["datasets"], title):
        dataset = bench.dataset(name)
        data = data_fingerprints(dataset)
        scores = aggregate_resistance(
            dataset.graph, dataset.num_classes, laplacian=recipe["laplacian"], cache_dir=bench.cache_dir
        )
        for normalization in recipe["normalizations"]:
            here = Place(bench, dataset, scores, normalization)
            part = f"{name}/{normalization}"
            for layers in recipe["depths"]:
                rows += journal.rows(f"{part}/{layers}/outputs", data, Outputs, partial(outputs, here, layers))
            for layers in recipe["gradient_depths"]:
                for epochs in recipe["stages"]:
                    made = partial(gradients, here, layers, epochs)
                    rows += journal.rows(f"{part}/{layers}/gradients-{epochs}", data, Gradients, made)
    pictures = {"over-smoothing": figures.reductions(smooth(rows), noisy(rows))}
    return Item(rows, judge(rows, recipe), pictures, recipe.said(), run=journal.run)


@dataclass(frozen=True, eq=False)
class Place:
    """One dataset with its scores ``[M]`` and one normalisation: networks of any depth, each start a seed."""

    bench: Bench
    dataset: Dataset
    scores: Tensor
    normalization: str

    def networks(self, layers: int, count: int) -> tuple[Task, GCN]:
        """The task, and ``count`` networks as one."""
        task = make_task(self.dataset)
        architecture = Architecture("gcn", layers, self.bench.recipe["hidden"])
        network = task.network(architecture, [Trial.of(normalization=self.normalization)] * count)
        assert isinstance(network, GCN)
        return task, network

    def seeds(self, count: int) -> range:
        """Of starts, trainings and coins."""
        return range(self.bench.seed, self.bench.seed + count)

    def compared(self, terms: Terms, layers: int) -> Iterator[tuple[dict[str, Any], tuple[Array, Array, Array]]]:
        """The fields of a row for every strategy and p, and the terms of the strategy and of both kinds of DropEdge."""
        recipe, gamma = self.bench.recipe, "auto" if self.dataset.gamma is None else self.dataset.gamma
        for p in recipe["keep_probs"]:
            dropedge = terms(torch.full_like(self.scores, p))
            for strategy in recipe["strategies"]:
                prob = keep_probabilities(self.scores, keep_prob=p, strategy=strategy, gamma=gamma)
                kept = float(prob.mean())
                setting = {
                    "dataset": self.dataset.name,
                    "normalization": self.normalization,
                    "laplacian": recipe["laplacian"],
                    "layers": layers,
                    "strategy": strategy,
                    "keep_prob": float(p),
                    "kept_share": kept,
                }
                yield setting, (terms(prob), dropedge, terms(torch.full_like(prob, kept)))


def outputs(here: Place, layers: int) -> list[Outputs]:
    """The spread of the outputs of untrained networks, each on a subgraph of its own; a term is a start."""
    starts, component = here.seeds(here.bench.recipe["starts"]), here.dataset.graph.components
    task, network = here.networks(layers, len(starts))
    parameters = network.initial(starts, here.dataset.device)
    # The analyses of over-smoothing know no biases; at the start, ours would drown the signal after a few layers.
    parameters = {key: 0 * value if key.endswith("bias") else value for key, value in parameters.items()}
    features, largest = task.inputs(), component.labels == component.sizes.argmax()

    def terms(prob: Tensor) -> Array:
        keep = sample_edges(prob, seed=starts)
        with torch.no_grad():
            found = network.logits(parameters, features, [network.operators.of(keep)])
        return spread(found[:, largest]).cpu().numpy()

    whole = terms(torch.ones_like(here.scores))
    return [
        Outputs(
            **setting,
            whole=mean_and_error(whole),
            above_whole=Measured(-(less := reduction(found[0], whole)).value, less.error),
            spread=Quantity.of(*found),
        )
        for setting, found in here.compared(terms, layers)
    ]


def spread(h: Tensor) -> Tensor:
    """The mean of 1 − cos(h_i, h_j) over all pairs of nodes of ``h [T, N, F]``, which is 1 − ‖mean of h_i / ‖h_i‖‖².

    In the subspace to which deep outputs converge, one vector in each component up to factors, it is 0.

    >>> spread(torch.tensor([[[1.0, 0.0], [2.0, 0.0]], [[1.0, 0.0], [0.0, 3.0]]])).tolist()
    [0.0, 0.5]
    """
    length = torch.linalg.vector_norm(h.double(), dim=-1, keepdim=True)
    unit = h.double() / torch.where(length > 0, length, 1.0)
    return 1 - unit.mean(dim=1).square().sum(dim=-1)


def gradients(here: Place, layers: int, epochs: int) -> list[Gradients]:
    """The variance of the gradient without dropout, in networks after so many epochs; a term is two subgraphs."""
    samples = 2 * here.bench.recipe["pairs"]
    task, network = here.networks(layers, samples)
    features, labels = task.inputs(), here.dataset.labels
    mask = torch.zeros(len(labels), device=labels.device).index_fill(0, here.dataset.split.train, 1.0)
    # One copy of a network for each subgraph, so that each has a gradient of its own.
    copies = [
        {key: value.repeat(samples, *[1] * value.dim()).requires_grad_(True) for key, value in state.items()}
        for state in trained(here, layers, epochs)
    ]

    def of_one(parameters: Parameters, keep: Tensor) -> Tensor:
        found = network.logits(parameters, features, [network.operators.of(keep)])
        loss = mean_at(cross_entropy(found, labels), mask.expand(samples, -1))
        slopes = torch.autograd.grad(loss.sum(), list(parameters.values()))
        # g and g' of two subgraphs: ½ E‖g − g'‖² is the variance, summed over all parameters.
        return torch.stack([0.5 * (g[::2] - g[1::2]).flatten(1).square().sum(dim=1) for g in slopes]).sum(dim=0)

    def terms(prob: Tensor) -> Array:
        keep = sample_edges(prob, seed=here.seeds(samples))
        return torch.stack([of_one(parameters, keep) for parameters in copies]).double().mean(dim=0).cpu().numpy()

    return [
        Gradients(**one, epochs=epochs, variance=Quantity.of(*found)) for one, found in here.compared(terms, layers)
    ]


def trained(here: Place, layers: int, epochs: int) -> list[Parameters]:
    """Networks after so many epochs without dropping: their starts, or those of lowest validation loss until then."""
    recipe, device = here.bench.recipe, here.dataset.device
    seeds = here.seeds(recipe["networks"])
    if not epochs:
        start = here.networks(layers, len(seeds))[1].initial(seeds, device)
        return [{key: value[place] for key, value in start.items()} for place in range(len(seeds))]
    laboratory = Laboratory(here.dataset, Architecture("gcn", layers, recipe["hidden"]), epochs)
    trials = [Trial.of(**recipe["trial"], normalization=here.normalization, seed=seed) for seed in seeds]
    states = [outcome.state for outcome in laboratory.train(trials, keep_state=True)]
    return [
        {key: torch.from_numpy(value).to(device) for key, value in state.items()}
        for state in states
        if state is not None
    ]


def smooth(rows: Sequence[Found]) -> list[Outputs]:
    """The rows on outputs."""
    return [row for row in rows if isinstance(row, Outputs)]


def noisy(rows: Sequence[Found]) -> list[Gradients]:
    """The rows on gradients."""
    return [row for row in rows if isinstance(row, Gradients)]


def judge(rows: Sequence[Found], recipe: Recipe) -> list[Verdict]:
    """Both sentences at the same p, which is the paper's comparison, then our questions."""
    both: dict[str, Sequence[Found]] = {"converges": smooth(rows), "gradients": noisy(rows)}
    verdicts = [_less(recipe, claim, cases(mine, lambda row: row.less("same_p"))) for claim, mine in both.items()]
    for claim, mine in both.items():
        found = cases(mine, lambda row: row.less("same_budget"))
        verdicts.append(_less(recipe, f"{claim}_same_budget", found))
    alleviates = cases(smooth(rows), lambda row: row.above_whole)
    return [*verdicts, _less(recipe, "alleviates", alleviates)]


def cases(rows: Sequence[R], of: Callable[[R], Measured]) -> dict[str, list[Measured]]:
    """What was found in all settings of a strategy on a dataset."""
    groups = grouped(rows, lambda row: f"{row.strategy} on {title(row.dataset)}")
    return {case: [of(row) for row in mine] for case, mine in groups.items()}


def _less(recipe: Recipe, claim: str, found: Mapping[str, Sequence[Measured]]) -> Verdict:
    """A claim holds in a case if it is clear in almost all of its settings."""
    holds = {case: clear(mine) >= recipe["almost_all"] * len(mine) for case, mine in found.items()}
    said = "; ".join(f"{case} {clear(mine)} of {len(mine)}" for case, mine in found.items())
    spans = "; ".join(f"{case} {span(mine)}" for case, mine in found.items())
    return judged(recipe, claim, where_it_holds(holds), said=said, spans=spans, clear=CLEAR)


def clear(found: Sequence[Measured]) -> int:
    """How many lie clearly above zero.

    >>> clear([Measured(0.3, 0.1), Measured(0.3, 0.2), Measured(-0.3, 0.1)])
    1
    """
    return sum(one.above(CLEAR) for one in found)


def span(found: Sequence[Measured]) -> str:
    """The mean of some shares and the interval of its smallest and largest, each with its 95 % interval.

    >>> span([Measured(0.1, 0.01), Measured(0.3, 0.02)])
    '20.0 % on average (from 10.0 ± 2.0 to 30.0 ± 4.0)'
    """
    low, high = (pick(found, key=lambda one: one.value) for pick in (min, max))
    mean = sum(one.value for one in found) / len(found)
    ends = (f"{_shown(one.value)} ± {100 * CLEAR * one.error:.1f}" for one in (low, high))
    return f"{_shown(mean)} % on average (from {' to '.join(ends)})"


def _shown(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:.1f}".replace("-", "−")


def tables(rows: Sequence[Found]) -> list[Table]:
    """A line for each strategy, depth and stage of training, over all p and normalisations."""
    heads, ways = ["dataset", "strategy", "layers"], [f"less than DropEdge {words}" for words in HOW.values()]
    outputs = grouped(smooth(rows), lambda row: (title(row.dataset), row.strategy, f"{row.layers}"))
    slopes = grouped(noisy(rows), lambda row: (title(row.dataset), row.strategy, f"{row.layers}", f"{row.epochs}"))
    spreads = [[*key, *spans(mine)] for key, mine in outputs.items()]
    variances = [[*key, *spans(mine)] for key, mine in slopes.items()]
    return [
        Table("spread of untrained outputs over nodes, over all p and normalisations", [*heads, *ways], spreads),
        Table("variance of the training gradient, over all p and normalisations", [*heads, "epochs", *ways], variances),
    ]


def spans(rows: Sequence[Found]) -> list[str]:
    """How much less than DropEdge's, for both kinds of DropEdge."""
    return [span([row.less(how) for row in rows]) for how in HOW]
