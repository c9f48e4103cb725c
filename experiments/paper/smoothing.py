"""Section 5.1: over-smoothing of deep networks, and the variance of gradients over subgraphs."""

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import cross_entropy

import tadropedge as tde
from experiments.claims import Claim
from experiments.frame import Row, Run, item
from experiments.paper.printed import DATASETS, PRINTED, SCRIPTS, STRATEGIES
from experiments.paper.theory import Array
from experiments.paper.variance import reduction
from experiments.plots import panels
from tadropedge.lab import Dataset, Experiment, TrainingSettings, Trial, View, train

CLEAR = 2.0
OF_TRAINING = {"learning_rate": 0.01, "weight_decay": 5e-4, "dropout": 0.5}


def claims(rows: pd.DataFrame) -> list[Claim]:
    """Both sentences at the same p, each dataset with the normalisation of DropEdge's scripts; and our question."""
    mine = rows[rows["normalization"] == rows["dataset"].map(SCRIPTS)]
    outputs, gradients = mine[mine["spread"].notna()], mine[mine["spread"].isna()]
    less, lower = (
        part[f"{name}_reduction_same_p"] > CLEAR * part[f"{name}_reduction_same_p_error"]
        for part, name in ((outputs, "spread"), (gradients, "variance"))
    )
    above = outputs["above_whole"] > CLEAR * outputs["above_whole_error"]
    by = ["strategy", "dataset", "layers"]
    return [
        Claim("converges", outputs, less, by=by, shows={"spread_reduction_same_p": "+.1%"}),
        Claim("gradients", gradients, lower, by=by, shows={"variance_reduction_same_p": "+.1%"}),
        Claim("alleviates", outputs, above, by=by, shows={"above_whole": "+.1%"}),
    ]


def figure(rows: pd.DataFrame) -> Figure:
    """By how much the spread of the outputs is below DropEdge's, by depth, in the mean over p."""
    mine = rows[(rows["normalization"] == rows["dataset"].map(SCRIPTS)) & rows["spread"].notna()]
    keys = ["dataset", "strategy", "layers"]
    mean = mine.groupby(keys, as_index=False, sort=False)["spread_reduction_same_p"].mean()
    return panels(mean, x="layers", y="spread_reduction_same_p", columns="dataset", lines=["strategy"], zero=True)


@item(
    "over-smoothing",
    where="Section 5.1",
    protocol="untrained networks and subgraphs with shared coins; gradients also after training without dropping",
    claims=claims,
    figure=figure,
    quick={"dataset": ["cora"], "keep_prob": [0.5], "of": ["outputs 2", "outputs 8", "gradients 2"], "stages": [0],
           "starts": 6, "networks": 1, "pairs": 4},
    paper={"dataset": ["cora", "citeseer"], "keep_prob": [0.3, 0.5, 0.7, 0.9],
           "of": ["outputs 2", "outputs 4", "outputs 8", "outputs 16", "gradients 2", "gradients 3"],
           "stages": [0, 20, 200], "starts": 64, "networks": 3, "pairs": 48},
)  # fmt: skip
def measure(run: Run, dataset: str, keep_prob: float, of: str) -> list[Row]:
    """The strategies beside DropEdge at the same p: spread of outputs, or variance of gradients, at one depth."""
    data, (kind, layers), rows = run.dataset(dataset), of.split(), []
    place = {"normalization": SCRIPTS[dataset], "laplacian": "combinatorial", "layers": int(layers)}
    scores = run.scores(data, "combinatorial")
    probs = {"dropedge": torch.full_like(scores, keep_prob), "whole": torch.ones_like(scores)}
    for rule in STRATEGIES:
        gamma = {} if rule == "cdf" else {"gamma": PRINTED["gamma"][DATASETS[dataset]]}
        probs[rule] = tde.keep_probabilities(scores, keep_prob=keep_prob, rule=rule, **gamma)
    for epochs in run["stages"] if kind == "gradients" else [None]:
        terms = _spreads(run, data, int(layers), probs) if epochs is None else {
            name: _gradients(run, data, int(layers), epochs, prob) for name, prob in probs.items() if name != "whole"
        }  # fmt: skip
        name = "spread" if epochs is None else "variance"
        for rule in STRATEGIES:
            value, error = reduction(terms[rule], terms["dropedge"])
            row = {**place, "strategy": rule, "kept_share": float(probs[rule].mean()), "epochs": epochs}
            row |= {"spread": None, name: float(terms[rule].mean()), f"{name}_reduction_same_p": value}
            row |= {f"{name}_reduction_same_p_error": error}
            if epochs is None:
                less, error = reduction(terms[rule], terms["whole"])
                row |= {"above_whole": -less, "above_whole_error": error}
            rows.append(row)
    return rows


def spread(h: Tensor) -> Tensor:
    """The mean of 1 − cos(h_i, h_j) over all pairs of nodes of ``h [T, N, F]``, which is 1 − ‖mean of h_i / ‖h_i‖‖².

    In the subspace to which deep outputs converge it is 0.

    >>> spread(torch.tensor([[[1.0, 0.0], [2.0, 0.0]], [[1.0, 0.0], [0.0, 3.0]]])).tolist()
    [0.0, 0.5]
    """
    length = torch.linalg.vector_norm(h.double(), dim=-1, keepdim=True)
    unit = h.double() / torch.where(length > 0, length, 1.0)
    return 1 - unit.mean(dim=1).square().sum(dim=-1)


def _experiment(data: Dataset, layers: int, epochs: int = 1) -> Experiment:
    training = TrainingSettings(epochs=epochs, keep="loss")
    return Experiment(data=data, layers=layers, hidden=128, training=training)


def _spreads(run: Run, data: Dataset, layers: int, probs: dict[str, Tensor]) -> dict[str, Array]:
    """The spread of the outputs of untrained networks, each on a subgraph of its own; a term is a start."""
    seeds = list(range(run.seed, run.seed + run["starts"]))
    experiment = _experiment(data, layers)
    settings = {"normalization": SCRIPTS[data.name]}
    network = experiment.make_network([Trial(seed=seed, settings=settings) for seed in seeds])
    graph, components = data.graph, data.graph.components
    largest, found = components.labels == components.sizes.argmax(), {}
    with torch.no_grad():
        # The analyses of over-smoothing know no biases; at the start, ours would drown the signal after a few layers.
        for name, parameter in network.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
        for name, prob in probs.items():
            keep = tde.sample_edges(prob, seed=seeds, graph=graph)
            found[name] = spread(network(experiment.inputs, View(graph, keep))[:, largest]).cpu().numpy()
    return found


def _gradients(run: Run, data: Dataset, layers: int, epochs: int, prob: Tensor) -> Array:
    """½ ‖g − g'‖² of the gradients on two subgraphs, whose mean is their variance; a term is a pair of subgraphs."""
    settings, samples = {"normalization": SCRIPTS[data.name]}, 2 * run["pairs"]
    keep = tde.sample_edges(prob, seed=list(range(run.seed, run.seed + samples)), graph=data.graph)
    nodes, terms = data.split(0).train, []
    for seed in range(run.seed, run.seed + run["networks"]):
        trial = Trial(seed=seed, settings=settings, **OF_TRAINING)
        experiment = _experiment(data, layers, max(1, epochs))
        network = experiment.make_network([trial] * samples)  # a copy for each subgraph, with a gradient of its own
        if epochs:
            (outcome,) = train(experiment, [trial], keep_state=True)
            state = {name: torch.as_tensor(value) for name, value in (outcome.state or {}).items()}
            network.load_state_dict({name: value.expand(samples, *value.shape) for name, value in state.items()})
        logits = network(experiment.inputs, View(data.graph, keep))[:, nodes]
        labels = data.labels[nodes].expand(samples, -1)
        loss = cross_entropy(logits.movedim(-1, 1), labels, reduction="none").mean(dim=1).sum()
        slopes = torch.autograd.grad(loss, list(network.parameters()))
        pairs = [0.5 * (g[::2] - g[1::2]).flatten(1).double().square().sum(dim=1) for g in slopes]
        terms.append(torch.stack(pairs).sum(dim=0))
    return np.asarray(torch.stack(terms).mean(dim=0).cpu())
