"""The items of the paper that need no search, at tiny size: facts of their rows, verdicts, pictures."""

import json
import math
from dataclasses import astuple, replace
from types import SimpleNamespace

import graphs
import numpy as np
import pytest
import torch
from conftest import data_root, need_data

from tadropedge.data import load_dataset
from tadropedge.diagnostics import ErrorModel, lipschitz, response_bound
from tadropedge.paper.changed_signal import Bank, nearest_signal
from tadropedge.paper.clustered import clustered, contrast, spectrum
from tadropedge.paper.document import _rows
from tadropedge.paper.figures import graphs as graph_figures
from tadropedge.paper.figures import theory as theory_figures
from tadropedge.paper.item import IMPOSSIBLE, NOT_REPRODUCED, PARTLY, REPRODUCED, Bench
from tadropedge.paper.items import (
    augmentation,
    components,
    datasets,
    edge_errors,
    eigengap,
    examples,
    fig1,
    proposition1,
    scores,
    theorem1,
    variance,
)
from tadropedge.paper.items.theorem1 import Case, compare, distances, largest_component
from tadropedge.paper.judge import mean_and_error, ranking
from tadropedge.paper.recipe import load_recipe
from tadropedge.paper.rows import Measured
from tadropedge.paper.rows import table as columns
from tadropedge.paper.trained_filters import feature_norm, features, filtered, movement, trained_taps
from tadropedge.provenance import commit
from tadropedge.scores.aggregate import aggregate_resistance
from tadropedge.scores.solve import solve
from tadropedge.shift import shift_operator
from tadropedge.typed import plain

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::tadropedge.errors.RepeatedEigenvalueWarning"),
]


def bench(tmp_path, name, **settings):
    recipe = load_recipe(name, "quick")
    return Bench(replace(recipe, settings={**recipe.settings, **settings}), tmp_path, root=data_root())


def check(item, name):
    """Rows of equal columns that are read back from JSON as they were."""
    stored = json.loads(json.dumps(plain(columns(item.rows)), allow_nan=False))
    assert len({tuple(row) for row in stored}) == 1
    assert _rows(name, stored, name) == tuple(item.rows)
    assert item.verdicts
    assert item.notes
    return {verdict.claim: verdict for verdict in item.verdicts}


def panels(figure):
    """Titles of the panels that have one, and the number of lines in each."""
    return {axis.get_title(): len(axis.get_lines()) for axis in figure.axes if axis.get_title()}


@pytest.mark.parametrize(
    "name",
    [
        *("datasets", "components", "fig1", "examples", "weights", "variance", "theorem1", "proposition1"),
        *("augmentation", "edge-errors", "eigengap"),
    ],
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
    verdicts = check(item, "datasets")
    assert [row.edges for row in item.rows] == [5278, 4552, 44324]
    assert [row.listed for row in item.rows] == [row.printed.edges for row in item.rows]
    assert [row.self_loops for row in item.rows] == [0, 124, 3]
    assert verdicts["Cora has 5,429 edges"].status == IMPOSSIBLE
    assert "151 of them twice" in verdicts["Cora has 5,429 edges"].reason
    assert verdicts["Cora is split 1,207/500/1,000"].status == IMPOSSIBLE
    assert sum(verdict.status == REPRODUCED for verdict in verdicts.values()) == 5


def test_components_of_the_datasets(tmp_path):
    need_data(data_root() / "planetoid")
    item = components.run(bench(tmp_path, "components"))
    verdicts = check(item, "components")
    assert [row.components for row in item.rows] == [78, 438, 1]
    assert [row.by_spreading for row in item.rows] == [78, 438, 1]
    assert [row.largest for row in item.rows] == [2485, 2120, 19717]
    assert verdicts["CiteSeer has 814 disjoint components"].status == IMPOSSIBLE
    assert verdicts["Cora has 78 disjoint components"].status == REPRODUCED


def test_spreading_counts_components_as_scipy_does():
    for graph in graphs.ZOO.values():
        assert components.spread(graph) == graph.components.count


def test_counts_that_differ_are_not_called_alike():
    row = components.Counts(
        dataset="cora", components=78, largest=5, smallest=1, isolated=0, pairs_of_nodes=0, by_spreading=78,
        printed_components=78, printed_largest=5, printed_smallest=1,
    )  # fmt: skip
    recipe = load_recipe("components", "quick")
    assert "alike" in components.judge(row, recipe)[0].reason
    told = components.judge(replace(row, by_spreading=77), recipe)[0].reason
    assert told == "counted by SciPy's search, but 77 by spreading labels"


# -- clustered graphs and scores -------------------------------------------------------------------------


def test_figure_one_shows_what_it_says(tmp_path):
    item = fig1.run(bench(tmp_path, "fig1", graphs=2))
    verdicts = check(item, "fig1")
    assert len(item.rows) == 2
    assert item.rows[0].gap_after == 2
    assert item.rows[0].auc == 1
    assert {verdict.status for verdict in verdicts.values()} == {REPRODUCED}
    assert fig1.run(bench(tmp_path, "fig1", graphs=1)).figures == item.figures  # the same bytes


def test_the_picture_of_figure_one_holds_graph_eigenvalues_and_modes():
    made = clustered({"clusters": 3, "nodes": 10, "inside": 0.6, "between": 0.02}, seed=1)
    found = spectrum(made)
    figure, title = graph_figures.modes.__wrapped__(made, found, 6)
    assert title == f"3 clusters, 30 nodes, {made.graph.num_edges} edges"
    first, eigenvalues, *modes = [axis for axis in figure.axes if axis.get_title()]
    assert [axis.get_title() for axis in modes] == ["mode u_0", "mode u_1", "mode u_2"]
    edges, *nodes = first.collections
    assert len(edges.get_segments()) == made.graph.num_edges
    assert [len(shape.get_offsets()) for shape in nodes] == [10, 10, 10]  # a shape for each cluster
    assert sum(width > 1 for width in edges.get_linewidths()) == int(made.between.sum())
    np.testing.assert_array_equal(eigenvalues.get_lines()[0].get_ydata(), found.values[:6])
    drawn = [shape.get_array() for shape in modes[1].collections[1:]]
    np.testing.assert_array_equal(np.concatenate(drawn), found.modes[:, 1])
    figure, _ = graph_figures.scores.__wrapped__([(made, found)] * 2)
    wanted = f"3 clusters, {int(made.between.sum())} edges between"
    assert [axis.get_title() for axis in figure.axes[:2]] == [wanted] * 2


def test_example_graphs_and_the_block_model_of_source_localisation(tmp_path):
    item = examples.run(bench(tmp_path, "examples", graphs=2))
    statuses = [verdict.status for verdict in item.verdicts]
    check(item, "examples")
    assert statuses == [REPRODUCED, REPRODUCED, REPRODUCED, NOT_REPRODUCED, IMPOSSIBLE]
    assert [verdict.own for verdict in item.verdicts] == [False, False, False, True, False]


def test_contrast_of_two_cliques_has_closed_forms():
    made = clustered({"clusters": 2, "nodes": 6, "inside": 1.0, "between": 0.03}, seed=0)
    found = contrast(0, made, spectrum(made), shown=4)
    assert found.between == int(made.between.sum()) == made.graph.num_edges - 30
    assert found.auc == found.top == 1
    assert 0.9 < found.uniform <= 1
    assert found.gap_after == 1


def test_ranking_is_the_share_of_pairs_in_order():
    scores, positive = np.array([3.0, 1.0, 2.0, 2.0, 5.0]), np.array([True, False, True, False, False])
    pairs = [(a > b) + (a == b) / 2 for a in scores[positive] for b in scores[~positive]]
    assert ranking(scores, positive) == np.mean(pairs)


def test_weights_of_cora_against_gamma(tmp_path):
    need_data(data_root() / "planetoid")
    item = scores.run(bench(tmp_path, "weights", datasets=["cora"]))
    assert list(check(item, "weights")) == [
        "Cora: the weights of a small number of edges rise rapidly around γ = 0.01",
        "Most edges have small weights and a small number have large ones",
    ]
    combinatorial, normalized = item.rows
    assert combinatorial.entries == 2 * 5278
    assert combinatorial.above_gamma == 158
    assert combinatorial.maximum == pytest.approx(2)
    assert combinatorial.median == pytest.approx(2.5e-7, rel=0.02)
    assert normalized.share_above_gamma > combinatorial.share_above_gamma


def test_the_picture_of_the_scores_marks_gamma():
    curves = {"Cora": {"combinatorial": np.linspace(0, 1, 20), "normalized": np.linspace(0, 2, 20)}}
    figure, _ = graph_figures.distributions.__wrapped__(curves, {"Cora": 0.25})
    assert panels(figure) == {"Cora: the largest tenth": 3, "Cora: all, logarithmic": 3}
    for axis in figure.axes:
        first, _, gamma = axis.get_lines()
        np.testing.assert_array_equal(first.get_ydata()[1:], curves["Cora"]["combinatorial"][1:])
        assert first.get_ydata()[0] == graph_figures.FLOOR
        assert gamma.get_ydata()[0] == 0.25
    said = [text.get_text() for text in figure.axes[1].texts]
    assert said[1] == "drawn at 1e-16, but smaller:\n5.0% (combinatorial)\n5.0% (normalized)"  # the zeros
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "combinatorial Laplacian", "normalized Laplacian",
    ]  # fmt: skip


# -- variance --------------------------------------------------------------------------------------------


def test_variance_at_the_same_p_and_at_the_same_budget(tmp_path):
    need_data(data_root() / "planetoid")
    settings = {"datasets": ["citeseer"], "keep_probs": [0.3, 0.9], "samples": 4, "hidden": 8, "starts": 2}
    recipe = bench(tmp_path, "variance", **settings)
    item = variance.run(recipe)
    verdicts = check(item, "variance")
    assert set(item.figures) == {"levels", "variance", "deviation"}
    assert len(item.rows) == 2 * 2 * 2  # normalisations, p, Laplacians
    mine = [row for row in item.rows if (row.normalization, row.laplacian) == ("gcn-residual", "combinatorial")]
    low, high = mine
    assert item.rows[1].laplacian == "normalized"
    assert item.rows[0].variance.dropedge_same_p == item.rows[1].variance.dropedge_same_p  # it knows no weights
    # A CDF has mean 1/2 + 1/(2 M), more where weights tie.
    assert low.kept_share == pytest.approx(0.3 + 0.7 * (high.kept_share - 0.9) / 0.1)
    assert low.kept_share >= 0.65
    assert low.variance.reduction_same_p.value == pytest.approx(
        1 - low.variance.value.value / low.variance.dropedge_same_p.value
    )
    assert high.deviation.value.value < low.deviation.value.value
    assert [verdict.own for verdict in verdicts.values()] == 4 * [False] + 2 * 6 * [True]
    assert all("gcn-residual on CiteSeer" in claim for claim in list(verdicts)[:3])
    assert variance.run(recipe).rows == item.rows
    scripts = {"citeseer": "gcn-residual"}
    figure, _ = theory_figures.variances.__wrapped__(item.rows, scripts)
    assert [(axis.get_title(), axis.title.get_fontweight()) for axis in figure.axes] == [
        ("CiteSeer, first-order", "normal"), ("CiteSeer, gcn-residual", "bold"),
    ]  # fmt: skip
    dropedge, first, _ = (line.get_ydata() for line in figure.axes[1].get_lines() if len(line.get_xdata()) == 2)
    assert list(dropedge) == [row.variance.dropedge_same_p.value for row in mine]
    assert list(first) == [row.variance.value.value for row in mine]
    figure, _ = theory_figures.reductions.__wrapped__(item.rows, "variance", "words", scripts)
    less = figure.axes[1].containers[1][0].get_ydata()
    assert list(less) == [100 * row.variance.reduction_same_budget.value for row in mine]
    assert figure.axes[1].get_yscale() == "symlog"  # nothing is cut off


def test_where_a_trend_holds_is_a_range_of_p():
    values = [1.0, 5.0, 4.0, 3.0, 3.5]
    rows = [SimpleNamespace(keep_prob=p / 10, x=Measured(x, 0.01)) for p, x in enumerate(values)]
    found = variance.longest(rows, lambda run: variance.falls(run, lambda row: row.x), least=3)
    assert [row.keep_prob for row in found] == [0.1, 0.2, 0.3]
    assert variance.where({"Cora": rows}, {"Cora": found}) == "Cora at p = 0.1 to 0.3"
    assert variance.where({"Cora": rows}, {"Cora": rows[::2]}) == "Cora at p = 0 and 0.2 and 0.4"
    assert variance.where({"Cora": rows}, {"Cora": rows}) is True
    assert variance.where({"Cora": rows}, {"Cora": []}) is False


def test_what_differs_between_laplacians_is_told_for_each():
    rows = [SimpleNamespace(laplacian=kind, dataset="cora", keep_prob=0.5) for kind in ("combinatorial", "normalized")]
    both = variance.with_each_laplacian(rows, lambda groups: (True, "fine"))
    assert both == (True, "combinatorial Laplacian: fine; normalized Laplacian: fine")
    holds, _ = variance.with_each_laplacian(rows, lambda groups: (groups["Cora"][0].laplacian == "normalized", ""))
    assert holds == "normalized Laplacian"


def test_a_reduction_and_its_error_come_from_pairs():
    mine, other = np.array([1.0, 3.0, 2.0]), np.array([2.0, 6.0, 4.0])
    assert astuple(variance.reduction(mine, other)) == pytest.approx((0.5, 0.0))
    assert variance.reduction(other, other) == Measured(0, 0)


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
    rows = [SimpleNamespace(dataset="cora", keep_prob=0.2 * p, x=Measured(x, error)) for p, x in enumerate(values)]
    assert variance.falls(variance.by_dataset(rows[::-1])["Cora"], lambda row: row.x) == holds


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
    verdicts = check(item, "theorem1")
    subgraphs = [row for row in item.rows if row.part == "subgraphs"]
    networks = [row for row in item.rows if row.part == "network"]
    assert (len(subgraphs), len(networks)) == (9, 12)
    by_kind = {kind: [row.unexplained for row in subgraphs if row.normalization == kind] for kind in kinds}
    assert max(by_kind["gcn-residual"]) == 0
    assert min(by_kind["spectral"]) > 0.01  # karate's adjacency has eigenvalues that add up to zero
    assert all(row.moved.least_ratio > 1 for row in networks)
    errors, _ = theory_figures.errors.__wrapped__(subgraphs)
    assert set(panels(errors)) == {"beside DropEdge at the same p", "beside DropEdge at the same budget"}
    assert [len(axis.containers) for axis in errors.axes] == [3, 3]  # one for each strategy
    assert len(errors.axes[0].get_yticklabels()) == 3  # three settings
    bounds, _ = theory_figures.bounds.__wrapped__(networks)
    assert panels(bounds) == {"spectral": 6 + 1 + 3, "gcn-residual": 6 + 1}  # points, the diagonal, the legend's marks
    exists = verdicts["For a subgraph S' there is a symmetric E with S − S' = E S + S E"]
    assert (exists.status, exists.where) == (PARTLY, "gcn-residual")
    assert [verdict.own for verdict in verdicts.values()] == [False, False, True, False, False, False, False]
    assert verdicts["The output changes by at most C ‖E‖ ‖X‖ to first order"].status == REPRODUCED
    assert verdicts["The filters are integral Lipschitz with |h| ≤ 1 for all λ in ℝ"].status == IMPOSSIBLE


def test_uniform_scores_leave_nothing_to_compare():
    """A strategy that is DropEdge by another name has the same subgraphs, so all ratios are one."""
    graph = graphs.ZOO["karate"]
    case = Case("karate", graph, aggregate_resistance(graph, 4))
    (row,) = compare(lambda: [case], ["uniform"], "gcn-residual", 0.6, range(5))
    ratios = (row.relative_ratio_same_p, row.relative_ratio_same_budget, row.absolute_ratio_same_p)
    assert {ratio.value for ratio in ratios} == {1.0}
    assert row.kept_share == pytest.approx(0.6)


def test_distances_do_not_depend_on_the_batch(monkeypatch):
    graph = graphs.ZOO["karate"]
    case = Case("karate", graph, aggregate_resistance(graph, 4))
    model = ErrorModel(shift_operator(graph, normalization="gcn", dtype=torch.float64))
    prob = case.probabilities("cdf", 0.5)
    together = distances(model, case, prob, "gcn", range(4))
    monkeypatch.setattr("tadropedge.paper.items.theorem1.AT_ONCE", 1)
    alone = distances(model, case, prob, "gcn", range(4))
    np.testing.assert_allclose(together, alone, rtol=1e-9, atol=1e-12)


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


def test_movement_fits_the_filters_to_the_theorem(tmp_path):
    dataset = load_dataset("source-localization", nodes=20, communities=4, sizes=(20, 20, 20))
    settings = {"hidden": 4, "order": 3, "normalizations": ["gcn-residual"]}
    ((kind, taps, accuracy),) = trained_taps(bench(tmp_path, "theorem1", epochs=2), dataset, 1, settings)
    assert kind == "gcn-residual"
    assert 0 <= accuracy <= 1
    assert taps[0].shape == (4, 1, 4)
    signals = dataset.features[:3].double()
    prob = torch.full((dataset.graph.num_edges,), 0.8)
    found = movement(taps, dataset, signals, prob, "gcn-residual", range(5))
    assert bool((found.change <= found.trivial).all())
    assert bool((found.most <= found.bound).all())
    alone = [movement(taps, dataset, signal[None], prob, "gcn-residual", range(5)).change for signal in signals]
    torch.testing.assert_close(found.most, torch.stack(alone).amax(dim=0))
    assert found.summary.least_ratio == pytest.approx(float((found.bound / found.most).min()))
    low, high = found.constants.lowest, found.constants.highest
    scaled = taps[0] / found.constants.largest_response
    assert float(response_bound(scaled, low, high).max()) == pytest.approx(1)
    assert pytest.approx(float(lipschitz(scaled, low, high).max())) == found.constants.C_L
    none = movement(taps, dataset, signals, torch.ones(dataset.graph.num_edges), "gcn-residual", range(2))
    assert float(none.change.max()) == float(none.error.max()) == 0


# -- Proposition 1 ---------------------------------------------------------------------------------------


def test_proposition_one_holds_and_dropping_between_matters_where_clusters_are_clear(tmp_path):
    item = proposition1.run(bench(tmp_path, "proposition1", graphs=3, draws=3, shares=[0.2, 0.6]))
    verdicts = check(item, "proposition1")
    assert {row.commit for row in item.rows} == {commit()}
    assert len(item.rows) == 4 * 2 * 3
    assert sum(row.violations for row in item.rows) == 0
    for row in item.rows:
        assert row.distance.value <= row.largest_distance + 1e-9
        assert row.bound is None or row.bound >= row.alpha > 0
    assert verdicts["Dropping edges inside clusters moves the first q modes by at most α + α'"].status == REPRODUCED
    assert (
        verdicts["The bound validates that edges between clusters matter more than edges inside"].status == IMPOSSIBLE
    )
    *_, less, _, elsewhere = item.verdicts
    assert (less.status, less.own, elsewhere.status, elsewhere.own) == (REPRODUCED, False, NOT_REPRODUCED, True)


def test_an_infinite_bound_checks_nothing():
    made = clustered({"clusters": 2, "nodes": 6, "inside": 1.0, "between": 0.03}, seed=0)
    nothing = torch.zeros(3, made.graph.num_edges, dtype=torch.bool)  # twelve components, two clusters
    whole = proposition1.alpha_realizable(made.graph, made.clusters)
    record = proposition1.measured(whole, made, nothing, 1.0, "inside", 30)
    assert (record.infinite, record.finite, record.tightness, record.bound) == (1, 0, None, math.inf)
    (row,) = proposition1.summary("two cliques", [[record]])
    assert (row.subgraphs, row.checked, row.tightness) == (3, 0, None)
    verdict = proposition1._holds([row], load_recipe("proposition1", "quick"))
    assert verdict.status == NOT_REPRODUCED
    assert verdict.measured == "violated in 0 of 0 subgraphs with a finite bound"
    assert verdict.reason == "the bound is infinite, and says nothing, for 3 more"
    figure, _ = theory_figures.distances.__wrapped__([row])
    assert list(panels(figure)) == ["two cliques"]
    assert len(figure.axes) == 2  # the second panel is empty
    bounds = [line for line in figure.axes[0].get_lines() if line.get_linestyle() == ":"]
    assert [len(line.get_xdata()) for line in bounds] == [0, 0, 0]
    (infinite,) = figure.axes[0].texts
    assert (infinite.get_text(), infinite.get_position()[0]) == ("∞", 1.0)
    largest = figure.axes[0].get_lines()[-1]
    assert largest.get_label() == "√q, the largest distance"
    assert largest.get_ydata()[0] == math.sqrt(2)


def test_masks_drop_exactly_as_many_candidates():
    made = clustered({"clusters": 3, "nodes": 8, "inside": 0.8, "between": 0.05}, seed=2)
    keep = proposition1.masks(made, made.between, 2, draws=5, random=np.random.default_rng(0))
    assert (~keep).sum(dim=1).tolist() == [2] * 5
    assert not bool((~keep & ~made.between).any())


# -- Eq. 7 and 10 ----------------------------------------------------------------------------------------


def random_case(shapes, order, seed=0):
    """S of karate, S' of three subgraphs, signals, and a layer for each (out, in), all with normal numbers."""
    graph, generator = graphs.ZOO["karate"], torch.Generator().manual_seed(seed)
    keep = torch.rand(3, graph.num_edges, generator=generator) < 0.8
    keep = torch.cat((torch.ones_like(keep[:1]), keep))
    whole, *others = shift_operator(graph, keep, normalization="gcn-residual", dtype=torch.float64).to_dense()
    taps = [torch.randn(*shape, order + 1, generator=generator, dtype=torch.float64) for shape in shapes]
    x = torch.randn(2, graph.num_nodes, shapes[0][1], generator=generator, dtype=torch.float64)
    return whole, torch.stack(others), taps, x


@pytest.mark.parametrize("shape", [(1, 1), (4, 1), (2, 3), (3, 2)])
def test_the_best_signal_of_a_bank_is_that_of_dense_least_squares(shape):
    """vec(Σ S^k X B_k) = (Σ B_kᵀ ⊗ S^k) vec(X), solved by NumPy."""
    whole, others, (layer,), x = random_case([shape], order=2)
    target = filtered(layer, x, others[0])[0]
    big = sum(np.kron(layer[:, :, k], torch.linalg.matrix_power(whole, k)) for k in range(3))
    solution, *_ = np.linalg.lstsq(big, target.T.flatten().numpy(), rcond=1e-12)
    wanted = solution.reshape(shape[1], -1).T
    bank = Bank(layer, torch.linalg.eigh(whole))
    torch.testing.assert_close(bank.signal(target), torch.from_numpy(wanted), rtol=1e-6, atol=1e-8)
    left = (filtered(layer, bank.signal(target), whole) - target).norm() / target.norm()
    assert (float(left) < 1e-10) == (shape[0] <= shape[1])  # exact where there are no more features out than in


def test_a_narrow_network_has_an_exact_signal_and_a_wide_one_has_none():
    for shapes, exact in (([(12, 24), (2, 12)], True), ([(32, 1)], False)):
        whole, others, taps, x = random_case(shapes, order=1)
        for layer in taps:
            layer[:, :, 0] = 0 if exact else layer[:, :, 0]
        case = augmentation.Tried(network="", kind="random", taps=taps, others=taps)
        found = augmentation.fitted(case, {"nonlinear": True}, x, (whole, others), torch.linalg.eigh(whole))
        assert (found["most_unexplained"] < 1e-8) == exact
        assert found["most_unexplained"] < 1  # X itself would leave all of it
        assert found["drift"] is None


def test_nothing_dropped_changes_no_signal():
    whole, _, taps, x = random_case([(1, 1)], order=3)
    case = augmentation.Tried(network="", kind="random", taps=taps, others=taps)
    found = augmentation.fitted(case, {}, x, (whole, whole[None]), torch.linalg.eigh(whole))
    assert found["distance"] < 1e-9
    assert found["change"] == 0


def test_descent_never_ends_farther_off_than_it_starts():
    whole, others, taps, x = random_case([(5, 1)], order=2)
    target, start = features(taps, x, others[:1])[0], x
    found = nearest_signal(lambda one: features(taps, one[None], whole[None])[0, 0], target, start)
    before, after = (features(taps, signal, whole[None])[0] - target for signal in (start, found))
    assert bool((after.norm(dim=(1, 2)) < before.norm(dim=(1, 2))).all())


def test_augmentation_measured(tmp_path):
    networks = ["one filter", "filter bank 1→32"]
    families = [{"dataset": "source-localization", "graphs": 2, "networks": networks}]
    item = augmentation.run(bench(tmp_path, "augmentation", families=families, epochs=2, draws=2))
    verdicts = list(check(item, "augmentation").values())
    assert [row.network for row in item.rows[:3]] == ["one filter", "filter bank 1→32", "filter bank 1→32"]
    assert (verdicts[0].status, verdicts[0].where) == (PARTLY, "one filter, random taps: all")
    assert [verdict.own for verdict in verdicts] == [False, False, False, True]
    (table,) = augmentation.tables(item.rows)
    assert len(table.rows) == 3 * 3  # networks with their taps, normalisations
    figure, _ = theory_figures.changed_signals.__wrapped__(item.rows)
    assert [len(line.get_xdata()) for line in figure.axes[0].get_lines()] == [6, 6, 6]


# -- Section 4.2 and Eq. 11 ------------------------------------------------------------------------------


def test_equation_eleven_as_printed_is_always_zero_and_as_meant_is_the_change():
    graph = graphs.ZOO["karate"]
    keep = torch.ones(graph.num_edges, dtype=torch.bool)
    keep[5] = False
    whole, other = (
        shift_operator(graph, mask, normalization="spectral", dtype=torch.float64).to_dense() for mask in (None, keep)
    )
    whole, other = (whole > 0).double(), (other > 0).double()
    found = ErrorModel(whole).of(other)
    printed, meant = (f(found.matrix, whole) for f in (edge_errors.as_printed, edge_errors.as_meant))
    low, high = graph.pairs[:, 5]
    neighbours = whole[low] > 0
    by_hand = found.matrix[low, neighbours].sum() + found.matrix[whole[high] > 0, high].sum()
    torch.testing.assert_close(printed[low, high], by_hand)
    assert float(printed.abs().max()) < 1e-9
    assert float((meant - (whole - other)).norm()) == pytest.approx(float(found.residual), abs=1e-9)


def test_a_single_edge_has_the_error_of_the_dense_equation():
    """‖E‖ by NumPy's least squares of the Kronecker form (I ⊗ S + S ⊗ I) vec(E) = vec(S − S')."""
    graph = graphs.path(5)
    case = edge_errors.Weighted(graph, torch.arange(4.0))
    found = edge_errors.dropped(case, "gcn-residual", torch.arange(4))
    norms = []
    for edge in range(4):
        keep = torch.ones(2, 4, dtype=torch.bool)
        keep[1, edge] = False
        S, less = shift_operator(graph, keep, normalization="gcn-residual", dtype=torch.float64).to_dense().numpy()
        solution, *_ = np.linalg.lstsq(np.kron(np.eye(5), S) + np.kron(S, np.eye(5)), (S - less).flatten(), rcond=None)
        norms.append(np.linalg.norm(solution.reshape(5, 5), 2))
    assert found["with_error"] == 4
    assert found["error_norm"] == pytest.approx(float(torch.tensor(norms).median()))
    assert found["between"] is found["printed"] is None


def test_edge_errors_measured(tmp_path):
    families = [{"name": "two", "clusters": 2, "nodes": 8, "inside": 0.7, "between": 0.05}]
    item = edge_errors.run(bench(tmp_path, "edge-errors", families=families))
    verdicts = list(check(item, "edge-errors").values())
    assert [row.normalization for row in item.rows[:3]] == ["gcn-residual", "gcn", "adjacency"]
    assert item.rows[0].with_error == item.rows[0].dropped == item.rows[0].edges
    assert item.rows[0].with_degree < -0.5
    assert [verdict.status for verdict in verdicts[:2]] == [IMPOSSIBLE, REPRODUCED]
    assert [verdict.own for verdict in verdicts] == [False, False, False, False, True]
    figure, _ = theory_figures.edge_errors.__wrapped__(item.rows)
    assert len(figure.axes) == 2


def test_a_neighbourhood_is_connected_and_has_the_nearest_nodes():
    part = edge_errors.neighbourhood(graphs.ZOO["karate"], 0, 12)
    assert (part.num_nodes, part.components.count) == (12, 1)
    assert edge_errors.neighbourhood(graphs.path(9), 4, 3).pairs.tolist() == graphs.path(3).pairs.tolist()


# -- Remark 1 --------------------------------------------------------------------------------------------


def test_two_cliques_have_their_eigengap_after_the_second_mode():
    dataset = load_dataset("karate")
    by_classes, by_gap = (solve(graphs.two_cliques(6), "aggregate", {how: 3}) for how in ("q", "desired_clusters"))
    assert by_gap.chosen == 2
    assert by_classes.chosen > 3  # the third eigenvalue is repeated
    row = eigengap.compared(dataset, "combinatorial", by_gap, by_gap, 0.1, 0.7)
    assert (row.rank_correlation, row.overlap, row.cutoff, row.division, row.cdf) == (pytest.approx(1), 1, 0, 0, 0)
    other = eigengap.compared(dataset, "combinatorial", by_classes, by_gap, 0.1, 0.7)
    assert other.changed == 1
    assert other.cdf > 0


def test_eigengap_measured(tmp_path):
    item = eigengap.run(bench(tmp_path, "eigengap", datasets=["karate"]))
    check(item, "eigengap")
    assert [row.laplacian for row in item.rows] == ["combinatorial", "normalized"]
    assert all(verdict.own for verdict in item.verdicts)
    assert any("q = number of classes" in note for note in item.notes)
    figure, _ = theory_figures.choices_of_q.__wrapped__(item.rows, 0.7)
    assert list(panels(figure)) == ["agreement", "keep probabilities at p = 0.7"]


def test_means_have_standard_errors():
    assert astuple(mean_and_error([2.0, 4.0, 6.0])) == pytest.approx((4.0, 2 / math.sqrt(3)))
    assert math.isnan(mean_and_error([1.0]).error)
