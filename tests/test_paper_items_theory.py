"""The items of the paper that need no search, at tiny size: facts of their rows, verdicts, pictures."""

import json
import math
from dataclasses import replace

import graphs
import numpy as np
import pytest
import torch
from conftest import data_root, need_data

from tadropedge.data import load_dataset
from tadropedge.diagnostics import ErrorModel, lipschitz, response_bound
from tadropedge.paper.clustered import clustered, contrast, spectrum
from tadropedge.paper.item import IMPOSSIBLE, NOT_REPRODUCED, REPRODUCED, Bench
from tadropedge.paper.items import (
    components,
    datasets,
    examples,
    fig1,
    proposition1,
    theorem1,
    variance,
    weights,
)
from tadropedge.paper.judge import mean_and_error, ranking
from tadropedge.paper.perturbation import Case, compare, distances, largest_component
from tadropedge.paper.recipe import load_recipe
from tadropedge.paper.trained_filters import feature_norm, features, movement, movement_row, trained_taps
from tadropedge.scores.aggregate import aggregate_resistance
from tadropedge.shift import shift_operator

pytestmark = pytest.mark.usefixtures("one_thread")


def bench(tmp_path, name, **settings):
    recipe = load_recipe(name, "quick")
    return Bench(replace(recipe, settings={**recipe.settings, **settings}), tmp_path, root=data_root())


def check(item):
    """Rows that are plain values of equal keys, and pictures that are pictures."""
    json.dumps(item.rows, allow_nan=False)
    assert len({tuple(row) for row in item.rows}) == 1
    assert all(picture.startswith(b"\x89PNG") for picture in item.figures.values())
    assert item.verdicts
    assert item.notes
    return {verdict.claim: verdict for verdict in item.verdicts}


@pytest.mark.parametrize(
    "name", ["datasets", "components", "fig1", "examples", "weights", "variance", "theorem1", "proposition1"]
)
def test_every_recipe_has_both_presets(name):
    quick, paper = load_recipe(name, "quick"), load_recipe(name, "paper")
    assert set(quick.settings) == set(paper.settings)
    assert quick.title
    assert quick.claim


# -- tables ----------------------------------------------------------------------------------------------


def test_dataset_statistics_and_why_they_differ(tmp_path):
    need_data(data_root() / "planetoid")
    item = datasets.run(bench(tmp_path, "datasets"))
    verdicts = check(item)
    assert [row["edges"] for row in item.rows] == [5278, 4552, 44324]
    assert [row["listed"] for row in item.rows] == [row["printed_edges"] for row in item.rows]
    assert [row["self_loops"] for row in item.rows] == [0, 124, 3]
    assert verdicts["Cora has 5,429 edges"].status == IMPOSSIBLE
    assert "151 of them twice" in verdicts["Cora has 5,429 edges"].reason
    assert verdicts["Cora is split 1,207/500/1,000"].status == IMPOSSIBLE
    assert sum(verdict.status == REPRODUCED for verdict in verdicts.values()) == 5


def test_components_of_the_datasets(tmp_path):
    need_data(data_root() / "planetoid")
    item = components.run(bench(tmp_path, "components"))
    verdicts = check(item)
    assert [row["components"] for row in item.rows] == [78, 438, 1]
    assert [row["by_spreading"] for row in item.rows] == [78, 438, 1]
    assert [row["largest"] for row in item.rows] == [2485, 2120, 19717]
    assert verdicts["CiteSeer has 814 disjoint components"].status == IMPOSSIBLE
    assert verdicts["Cora has 78 disjoint components"].status == REPRODUCED


def test_spreading_counts_components_as_scipy_does():
    for graph in graphs.ZOO.values():
        assert components.spread(graph) == graph.components.count


def test_counts_that_differ_are_not_called_alike():
    row = {"components": 78, "largest": 5, "smallest": 1, "isolated": 0, "by_spreading": 78}
    assert "alike" in components.judge(row, [78, 5, 1], "Cora")[0].reason
    told = components.judge({**row, "by_spreading": 77}, [78, 5, 1], "Cora")[0].reason
    assert told == "78 components by SciPy's search, but 77 by spreading labels"


# -- clustered graphs and weights ------------------------------------------------------------------------


def test_figure_one_shows_what_it_says(tmp_path):
    item = fig1.run(bench(tmp_path, "fig1", graphs=2))
    verdicts = check(item)
    assert len(item.rows) == 2
    assert item.rows[0]["gap_after"] == 2
    assert item.rows[0]["auc"] == 1
    assert {verdict.status for verdict in verdicts.values()} == {REPRODUCED}
    assert fig1.run(bench(tmp_path, "fig1", graphs=1)).figures == item.figures  # the same bytes


def test_example_graphs_and_the_block_model_of_source_localisation(tmp_path):
    item = examples.run(bench(tmp_path, "examples", graphs=2))
    statuses = [verdict.status for verdict in item.verdicts]
    check(item)
    assert statuses == [REPRODUCED, REPRODUCED, REPRODUCED, NOT_REPRODUCED, IMPOSSIBLE]


def test_contrast_of_two_cliques_has_closed_forms():
    made = clustered({"clusters": 2, "nodes": 6, "inside": 1.0, "between": 0.03}, seed=0)
    found = contrast(made, spectrum(made), shown=4)
    assert found["between"] == int(made.between.sum()) == made.graph.num_edges - 30
    assert found["auc"] == found["top"] == 1
    assert 0.9 < found["uniform"] <= 1
    assert found["gap_after"] == 1


def test_ranking_is_the_share_of_pairs_in_order():
    scores, positive = np.array([3.0, 1.0, 2.0, 2.0, 5.0]), np.array([True, False, True, False, False])
    pairs = [(a > b) + (a == b) / 2 for a in scores[positive] for b in scores[~positive]]
    assert ranking(scores, positive) == np.mean(pairs)


def test_weights_of_cora_against_gamma(tmp_path):
    need_data(data_root() / "planetoid")
    item = weights.run(bench(tmp_path, "weights", datasets=["cora"]))
    check(item)
    combinatorial, normalized = item.rows
    assert combinatorial["entries"] == 2 * 5278
    assert combinatorial["above_gamma"] == 158
    assert combinatorial["maximum"] == pytest.approx(2)
    assert combinatorial["quantile_0.5"] == pytest.approx(2.5e-7, rel=0.02)
    assert normalized["share_above_gamma"] > combinatorial["share_above_gamma"]


# -- variance --------------------------------------------------------------------------------------------


def test_variance_at_the_same_p_and_at_the_same_budget(tmp_path):
    need_data(data_root() / "planetoid")
    settings = {"datasets": ["citeseer"], "keep_probs": [0.3, 0.9], "samples": 4, "hidden": 8, "starts": 2}
    recipe = bench(tmp_path, "variance", **settings)
    item = variance.run(recipe)
    verdicts = check(item)
    assert set(item.figures) == {"variance", "deviation"}
    low, high = item.rows
    # A CDF has mean 1/2 + 1/(2 M), more where weights tie.
    assert low["kept_share"] == pytest.approx(0.3 + 0.7 * (high["kept_share"] - 0.9) / 0.1)
    assert low["kept_share"] >= 0.65
    assert low["variance_reduction_same_p"] == pytest.approx(1 - low["variance"] / low["variance_dropedge_same_p"])
    assert high["deviation"] < low["deviation"]
    assert len(verdicts) == 8
    assert variance.run(recipe).rows == item.rows


def test_a_reduction_and_its_error_come_from_pairs():
    mine, other = np.array([1.0, 3.0, 2.0]), np.array([2.0, 6.0, 4.0])
    assert variance.reduction(mine, other) == pytest.approx((0.5, 0.0))
    assert variance.reduction(other, other) == (0, 0)


@pytest.mark.parametrize(
    ("values", "error", "holds"),
    [
        ([3.0, 2.0, 1.0], 0.1, True),
        ([3.0, 3.1, 1.0], 0.1, True),  # up, but by less than two standard errors
        ([3.0, 3.5, 1.0], 0.1, False),
        ([3.0, 2.0, 1.0], 1.0, False),  # the ends cannot be told apart
        ([1.0, 2.0, 3.0], 0.1, False),
        ([3.0], 0.1, False),
    ],
)
def test_what_falls_with_p_falls_by_more_than_its_errors(values, error, holds):
    rows = [
        {"dataset": "cora", "keep_prob": 0.2 * place, "x": value, "x_error": error}
        for place, value in enumerate(values)
    ]
    assert variance.falls(rows[::-1], "x") == holds


# -- Theorem 1 -------------------------------------------------------------------------------------------


def test_theorem_one_measured(tmp_path):
    kinds = ["spectral", "gcn-residual"]
    item = theorem1.run(
        bench(
            tmp_path,
            "theorem1",
            families=[
                {"dataset": "karate", "graphs": 1, "normalizations": kinds},
                {"dataset": "source-localization", "graphs": 2, "normalizations": ["gcn-residual"], "draws": 4},
            ],
            draws=6,
            epochs=2,
            sizes=[20, 20, 20],
            network={"layers": [1, 2], "hidden": 3, "order": 2, "signals": 4, "normalizations": kinds},
        )
    )
    verdicts = check(item)
    subgraphs = [row for row in item.rows if row["part"] == "subgraphs"]
    networks = [row for row in item.rows if row["part"] == "network"]
    assert (len(subgraphs), len(networks)) == (9, 12)
    by_kind = {kind: [row["unexplained"] for row in subgraphs if row["normalization"] == kind] for kind in kinds}
    assert max(by_kind["gcn-residual"]) == 0
    assert min(by_kind["spectral"]) > 0.01  # karate's adjacency has eigenvalues that add up to zero
    assert all(row["least_ratio"] > 1 for row in networks)
    exists = verdicts["For a subgraph S' there is a symmetric E with S − S' = E S + S E"]
    assert exists.status == IMPOSSIBLE
    assert verdicts["The output changes by at most C ‖E‖ ‖X‖ to first order"].status == REPRODUCED
    assert verdicts["The filters are integral Lipschitz with |h| ≤ 1 for all λ in ℝ"].status == IMPOSSIBLE


def test_uniform_scores_leave_nothing_to_compare():
    """A strategy that is DropEdge by another name has the same subgraphs, so all ratios are one."""
    graph = graphs.ZOO["karate"]
    case = Case("karate", graph, aggregate_resistance(graph, 4))
    (row,) = compare([case], ["uniform"], "gcn-residual", 0.6, range(5))
    assert row["relative_ratio_same_p"] == row["relative_ratio_same_budget"] == row["absolute_ratio_same_p"] == 1
    assert row["kept_share"] == pytest.approx(0.6)


def test_distances_do_not_depend_on_the_batch(monkeypatch):
    graph = graphs.ZOO["karate"]
    case = Case("karate", graph, aggregate_resistance(graph, 4))
    model = ErrorModel(shift_operator(graph, normalization="gcn", dtype=torch.float64))
    prob = case.probabilities("cdf", 0.5)
    together = distances(model, case, prob, "gcn", range(4))
    monkeypatch.setattr("tadropedge.paper.perturbation.AT_ONCE", 1)
    alone = distances(model, case, prob, "gcn", range(4))
    np.testing.assert_allclose(together.relative, alone.relative, rtol=1e-9)
    np.testing.assert_allclose(together.absolute, alone.absolute, rtol=1e-9)


def test_the_largest_component_is_a_graph_of_its_own():
    graph = graphs.union(graphs.path(3), graphs.two_cliques(4), graphs.path(2))
    part = largest_component(graph)
    assert torch.equal(part.pairs, graphs.two_cliques(4).pairs)
    assert part.num_nodes == 8


def test_features_are_those_of_plain_matrix_powers():
    S = shift_operator(graphs.path(6), dtype=torch.float64).to_dense()
    generator = torch.Generator().manual_seed(0)
    taps = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((3, 2, 4), (2, 3, 4))]
    x = torch.randn(5, 6, 2, generator=generator, dtype=torch.float64)
    h = x
    for layer in taps:
        h = sum(torch.linalg.matrix_power(S, k) @ h @ layer[:, :, k].T for k in range(4)).relu()
    torch.testing.assert_close(features(taps, x, S[None])[0], h)
    torch.testing.assert_close(feature_norm(x)[0], x[0, :, 0].norm() + x[0, :, 1].norm())


def test_movement_fits_the_filters_to_the_theorem():
    dataset = load_dataset("source-localization", nodes=20, communities=4, sizes=(20, 20, 20))
    ((taps, accuracy),) = trained_taps(dataset, 1, 4, 3, ["gcn-residual"], epochs=2, seed=0)
    assert 0 <= accuracy <= 1
    assert taps[0].shape == (4, 1, 4)
    signals = dataset.features[:3].double()
    prob = torch.full((dataset.graph.num_edges,), 0.8)
    found = movement(taps, dataset, signals, prob, "gcn-residual", range(5))
    assert bool((found.change <= found.trivial).all())
    assert bool((found.most <= found.bound).all())
    alone = [movement(taps, dataset, signal[None], prob, "gcn-residual", range(5)).change for signal in signals]
    torch.testing.assert_close(found.most, torch.stack(alone).amax(dim=0))
    assert movement_row(found)["least_ratio"] == pytest.approx(float((found.bound / found.most).min()))
    low, high = found.constants["lowest"], found.constants["highest"]
    scaled = taps[0] / found.constants["largest_response"]
    assert float(response_bound(scaled, low, high).max()) == pytest.approx(1)
    assert found.constants["C_L"] == pytest.approx(float(lipschitz(scaled, low, high).max()))
    none = movement(taps, dataset, signals, torch.ones(dataset.graph.num_edges), "gcn-residual", range(2))
    assert float(none.change.max()) == float(none.error.max()) == 0


# -- Proposition 1 ---------------------------------------------------------------------------------------


def test_proposition_one_holds_and_dropping_between_matters_where_clusters_are_clear(tmp_path):
    item = proposition1.run(bench(tmp_path, "proposition1", graphs=3, draws=3, shares=[0.2, 0.6]))
    verdicts = check(item)
    assert len(item.rows) == 4 * 2 * 3
    assert sum(row["violations"] for row in item.rows) == 0
    for row in item.rows:
        assert row["distance"] <= row["largest_distance"] + 1e-9
        assert row["bound"] is None or row["bound"] >= row["alpha"] > 0
    assert verdicts["Dropping edges inside clusters moves the first q modes by at most α + α'"].status == REPRODUCED
    assert (
        verdicts["The bound validates that edges between clusters matter more than edges inside"].status == IMPOSSIBLE
    )


def test_an_infinite_bound_checks_nothing():
    made = clustered({"clusters": 2, "nodes": 6, "inside": 1.0, "between": 0.03}, seed=0)
    nothing = torch.zeros(3, made.graph.num_edges, dtype=torch.bool)  # twelve components, two clusters
    whole = proposition1.alpha_realizable(made.graph, made.clusters)
    record = {"share": 1.0, "dropped": "inside", "count": 30, **proposition1._measured(whole, made, nothing)}
    assert (record["infinite"], record["finite"], record["tightness"]) == (1, 0, None)
    (row,) = proposition1.summary("two cliques", [[record]])
    assert (row["subgraphs"], row["checked"], row["tightness"]) == (3, 0, None)
    verdict = proposition1._holds([row])
    assert verdict.status == NOT_REPRODUCED
    assert verdict.reason == "violated in 0 of 0 subgraphs with a finite bound; it is infinite for 3 more"


def test_masks_drop_exactly_as_many_candidates():
    made = clustered({"clusters": 3, "nodes": 8, "inside": 0.8, "between": 0.05}, seed=2)
    keep = proposition1.masks(made, made.between, 2, draws=5, random=np.random.default_rng(0))
    assert (~keep).sum(dim=1).tolist() == [2] * 5
    assert not bool((~keep & ~made.between).any())


def test_means_have_standard_errors():
    assert mean_and_error([2.0, 4.0, 6.0]) == pytest.approx((4.0, 2 / math.sqrt(3)))
    assert math.isnan(mean_and_error([1.0])[1])
