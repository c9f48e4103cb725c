"""Section 5.1: the spread of outputs, the variance of gradients, their verdicts and their picture."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from tadropedge.data import load_dataset
from tadropedge.paper.figures import smoothing as figures
from tadropedge.paper.item import Bench
from tadropedge.paper.items import over_smoothing
from tadropedge.paper.items.over_smoothing import Gradients, Outputs, Place, judge, noisy, smooth, spread
from tadropedge.paper.items.variance import Quantity
from tadropedge.paper.recipe import load_recipe
from tadropedge.paper.rows import Measured
from tadropedge.paper.rows import table as columns
from tadropedge.sampling import sample_edges
from tadropedge.scores.aggregate import aggregate_resistance
from tadropedge.typed import plain

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::tadropedge.errors.RepeatedEigenvalueWarning"),
]
TINY = {
    "datasets": ["karate"],
    "normalizations": ["gcn", "first-order"],
    "keep_probs": [0.3, 0.7],
    "hidden": 8,
    "depths": [2, 4],
    "gradient_depths": [2],
    "stages": [0, 3],
    "starts": 5,
    "networks": 2,
    "pairs": 4,
}


def bench(folder, **settings):
    recipe = load_recipe("over-smoothing", "quick")
    return Bench(replace(recipe, settings={**recipe.settings, **TINY, **settings}), folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("over-smoothing")
    return folder, over_smoothing.run(bench(folder))


def place(folder, **settings):
    dataset = load_dataset("karate")
    scores = aggregate_resistance(dataset.graph, dataset.num_classes)
    return Place(bench(folder, **settings), dataset, scores, "gcn")


def dense(graph, keep):
    """D^-1/2 (A + I) D^-1/2 of the kept edges."""
    low, high = graph.pairs[:, keep]
    A = torch.eye(graph.num_nodes)
    A[low, high] = A[high, low] = 1
    scale = A.sum(dim=1) ** -0.5
    return scale[:, None] * A * scale


def logits(dataset, weights, keep):
    """Two layers, by dense products."""
    S, X = dense(dataset.graph, keep), dataset.features.to_dense()
    hidden = (S @ X @ weights["input.weight"] + weights["input.bias"]).relu()
    return S @ hidden @ weights["output.weight"] + weights["output.bias"]


def test_the_spread_is_the_mean_cosine_distance_of_all_pairs():
    h = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(0))
    for one, found in zip(h, spread(h), strict=True):
        pairs = [1 - torch.cosine_similarity(a, b, dim=0) for a in one for b in one]
        assert float(found) == pytest.approx(float(torch.stack(pairs).mean()), abs=1e-6)
    column = torch.arange(1.0, 7.0)[:, None] * torch.ones(4)  # one vector up to factors: the limiting subspace
    assert float(spread(column[None])) == pytest.approx(0, abs=1e-12)


def test_a_row_on_outputs_is_what_dense_products_give(tmp_path):
    here = place(tmp_path, starts=3, keep_probs=[0.4], strategies=["cdf"])
    (row,) = over_smoothing.outputs(here, 2)
    start = here.networks(2, 3)[1].initial([0, 1, 2], here.dataset.device)
    terms, whole = [], []
    for seed in range(3):
        weights = {key: value[seed] * (not key.endswith("bias")) for key, value in start.items()}
        everything = torch.ones(here.dataset.graph.num_edges, dtype=torch.bool)
        keep = sample_edges(torch.full_like(here.scores, 0.4), seed=seed)
        terms.append(float(spread(logits(here.dataset, weights, keep)[None])))
        whole.append(float(spread(logits(here.dataset, weights, everything)[None])))
    assert row.spread.dropedge_same_p.value == pytest.approx(np.mean(terms), rel=1e-4)
    assert row.whole.value == pytest.approx(np.mean(whole), rel=1e-4)
    assert row.above_whole.value == pytest.approx(row.spread.value.value / np.mean(whole) - 1, rel=1e-4)


def test_a_row_on_gradients_is_half_the_squared_distance_of_two(tmp_path):
    here = place(tmp_path, networks=1, pairs=2, keep_probs=[0.4], strategies=["cdf"])
    (row,) = over_smoothing.gradients(here, 2, 0)
    (state,) = over_smoothing.trained(here, 2, 0)
    found = []
    for seed in range(4):
        weights = {key: value.clone().requires_grad_(True) for key, value in state.items()}
        keep = sample_edges(torch.full_like(here.scores, 0.4), seed=seed)
        train, labels = here.dataset.split.train, here.dataset.labels
        loss = torch.nn.functional.cross_entropy(logits(here.dataset, weights, keep)[train], labels[train])
        found.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(weights.values()))]))
    expected = np.mean([0.5 * float((found[i] - found[i + 1]).square().sum()) for i in (0, 2)])
    assert row.variance.dropedge_same_p.value == pytest.approx(expected, rel=1e-3)


def test_gradients_are_measured_in_trained_networks_too(tmp_path):
    here = place(tmp_path)
    start, later = (over_smoothing.trained(here, 2, epochs) for epochs in (0, 3))
    assert [set(state) for state in later] == [set(state) for state in start]
    assert not any(torch.equal(a["input.weight"], b["input.weight"]) for a, b in zip(start, later, strict=True))


def test_every_setting_has_a_row_and_nothing_is_measured_twice(made, monkeypatch):
    folder, item = made
    assert len(smooth(item.rows)) == 2 * 2 * 2 * 3  # normalisations, depths, p, strategies
    assert len(noisy(item.rows)) == 2 * 1 * 2 * 2 * 3  # normalisations, depths, stages, p, strategies
    for row in item.rows:
        assert row.kept_share > row.keep_prob
    stored = json.loads(json.dumps(plain(columns(item.rows)), allow_nan=False))
    kinds = [type(row) for row in item.rows]
    assert [kind.of(row, "row") for kind, row in zip(kinds, stored, strict=True)] == list(item.rows)
    monkeypatch.setattr(over_smoothing, "outputs", pytest.fail)
    monkeypatch.setattr(over_smoothing, "gradients", pytest.fail)
    assert over_smoothing.run(bench(folder)).rows == item.rows


def test_tables_hold_words_alone(made):
    outputs, gradients = over_smoothing.tables(made[1].rows)
    assert (len(outputs.rows), len(gradients.rows)) == (3 * 2, 3 * 2)  # strategies, depths or stages
    for table in (outputs, gradients):
        assert all(len(line) == len(table.columns) for line in table.rows)
        assert all("nan" not in cell for line in table.rows for cell in line)


def quantity(same_p, same_budget, error=0.01):
    one = Measured(1.0, 0.0)
    return Quantity(
        value=one,
        dropedge_same_p=one,
        reduction_same_p=Measured(same_p, error),
        dropedge_same_budget=one,
        reduction_same_budget=Measured(same_budget, error),
    )


def setting(strategy, p):
    return {
        **{"dataset": "cora", "normalization": "gcn", "laplacian": "combinatorial", "layers": 2},
        **{"strategy": strategy, "keep_prob": p, "kept_share": p},
    }


def rows(cdf, cutoff):
    """Ten settings of each strategy: reductions of both quantities at the same p; none at the same budget."""
    found = []
    for strategy, reductions in (("cdf", cdf), ("cutoff", cutoff)):
        for number, less in enumerate(reductions):
            where, both = setting(strategy, number / 10), quantity(less, 0.0)
            found.append(Outputs(**where, whole=Measured(1.0, 0.0), above_whole=Measured(0.5, 0.1), spread=both))
            found.append(Gradients(**where, epochs=0, variance=both))
    return found


def test_a_claim_holds_where_it_is_clear_in_nine_of_ten_settings():
    recipe = load_recipe("over-smoothing", "paper")
    found = judge(rows([0.2] * 9 + [0.01], [0.2] * 8 + [0.01] * 2), recipe)
    words = [(verdict.word, verdict.own) for verdict in found]
    assert words == [("partly: cdf on Cora", False)] * 2 + [("no", True)] * 2 + [("yes", True)]
    assert "cdf on Cora 9 of 10; cutoff on Cora 8 of 10" in found[0].reason
    assert "cdf on Cora 18.1 % on average (from 1.0 ± 2.0 to 20.0 ± 2.0)" in found[0].measured
    assert [verdict.printed is None for verdict in found] == [False, False, True, True, True]
    everywhere = judge(rows([0.2] * 10, [0.2] * 10), recipe)
    assert [verdict.status for verdict in everywhere[:2]] == ["reproduced"] * 2


def test_the_picture_shows_outputs_against_depth_and_gradients_against_p(made):
    item = made[1]
    figure, _ = figures.reductions.__wrapped__(smooth(item.rows), noisy(item.rows))
    above, below = figure.axes
    assert [label.get_text() for label in above.get_xticklabels()] == ["2", "4"]
    assert [label.get_text() for label in below.get_xticklabels()] == ["0.3", "0.7"]
    assert [len(axis.get_lines()) for axis in figure.axes] == [2 * 3 + 1] * 2  # both kinds of DropEdge; zero
    shallow = [row.less("same_p").value for row in smooth(item.rows) if (row.strategy, row.layers) == ("cutoff", 2)]
    assert above.get_lines()[0].get_ydata()[0] == pytest.approx(100 * np.mean(shallow))
    assert item.figures["over-smoothing"].startswith(b"\x89PNG")
