"""``tadropedge.sparsify``, its certificate and the command."""

import json
from dataclasses import replace

import dense
import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import torch
from graphs import ZOO, clusters, complete, cycle, of, path, star, union, weighted
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage
from typer.testing import CliRunner

import tadropedge as tde
from tadropedge import Graph, certificate, pencil
from tadropedge.certificate import certify
from tadropedge.cli import app
from tadropedge.data import load_dataset
from tadropedge.data.files import read_contents
from tadropedge.errors import ConvergenceError, TadropedgeError
from tadropedge.sparsifier import draw, sparsify

FILES = ["cache", "certificate.json", "data.pt", "edges.csv", "graph.npz"]


def reweighted(graph, weight):
    """The graph with other weights, without edges of weight 0."""
    weight = torch.as_tensor(weight, dtype=torch.float64)
    return Graph(graph.pairs[:, weight > 0], graph.num_nodes, weight[weight > 0])


def eigenvalues(before, after):
    """All eigenvalues of L' x = λ L x on the complement of the kernel of L, ascending."""
    L, other = (dense.laplacian(dense.adjacency(graph)) for graph in (before, after))
    values, vectors = np.linalg.eigh(L)
    half = vectors[:, values > 1e-9] / np.sqrt(values[values > 1e-9])
    return scipy.linalg.eigvalsh(half.T @ other @ half)


# -- the certificate -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 9, 700])
def test_of_a_tree_the_eigenvalues_are_the_ratios_of_weights(n):
    graph = path(n)
    ratio = torch.linspace(0.5, 3.0, n - 1, dtype=torch.float64)
    found = certify(graph, reweighted(graph, ratio))
    assert found.lambda_min.value == pytest.approx(float(ratio.min()), rel=1e-3)
    assert found.lambda_max.value == pytest.approx(float(ratio.max()), rel=1e-3)
    assert found.lambda_min.low <= float(ratio.min()) * (1 + 1e-12)
    assert found.lambda_max.high >= float(ratio.max()) * (1 - 1e-12)


@pytest.mark.parametrize("n", [5, 600])
def test_a_cycle_without_one_edge_keeps_one_nth(n):
    graph = cycle(n)
    weight = torch.full((n,), 1.25)
    weight[3] = 0  # L' = 1.25 (L − b bᵀ), and bᵀ L⁺ b = (n − 1) / n
    found = certify(graph, reweighted(graph, weight))
    assert found.lambda_min.value == pytest.approx(1.25 / n, rel=1e-6)
    assert found.lambda_max.value == pytest.approx(1.25, rel=1e-6)
    assert found.lambda_min.converged
    assert found.lambda_max.converged


def test_a_star_inside_a_complete_graph():
    n = 8  # L = n I − J, and the Laplacian of a star has the eigenvalues 0, 1 and n
    graph = complete(n)
    found = certify(graph, reweighted(graph, (graph.pairs[0] == 0).double()))
    assert (found.lambda_min.value, found.lambda_max.value) == pytest.approx((1 / n, 1.0))
    assert found.degree_ratio["largest"] == 1
    assert found.degree_ratio["least"] == pytest.approx(1 / (n - 1))


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_on_the_zoo_it_is_the_dense_answer(name, share):
    graph = ZOO[name]
    after = draw(graph, share, None, seed=5)
    found, values = certify(graph, after), eigenvalues(graph, after)
    assert found.lambda_min.value == pytest.approx(max(values[0], 0.0), abs=1e-9)
    assert found.lambda_max.value == pytest.approx(values[-1])
    assert (found.lambda_min.value == 0) == (after.components.count > graph.components.count)
    assert found.components_before == nx.number_connected_components(nx.from_numpy_array(dense.adjacency(graph)))
    assert found.components_after == nx.number_connected_components(nx.from_numpy_array(dense.adjacency(after)))
    assert found.isolated_after == int((dense.adjacency(after).sum(1) == 0).sum())
    degrees = dense.adjacency(graph).sum(1)
    ratio = dense.adjacency(after).sum(1)[degrees > 0] / degrees[degrees > 0]
    assert found.degree_ratio == pytest.approx(
        {
            "mean": ratio.mean(), "least": ratio.min(), "largest": ratio.max(),
            "5 %": np.quantile(ratio, 0.05), "50 %": np.median(ratio), "95 %": np.quantile(ratio, 0.95),
        }
    )  # fmt: skip


LARGE = {
    "conjugate gradients": lambda: weighted(clusters([600, 600], 0.05, 0.001, seed=1)),
    "a factorisation": lambda: weighted(of(nx.grid_2d_graph(24, 30))),
    "parts": lambda: union(
        clusters([600], 0.05, 0.0, seed=2), path(40), complete(5), Graph.from_edge_index([[0], [1]])
    ),
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("share", [0.3, 0.95])
def test_large_components_lie_in_their_range(name, share, monkeypatch):
    if name == "conjugate gradients":
        monkeypatch.setattr("tadropedge.electrical.NARROW", 0)
    graph = LARGE[name]()
    scores = tde.edge_scores(graph, "effective") * (1 if graph.weight is None else graph.weight)
    after = draw(graph, share, scores, seed=3)
    found, values = certify(graph, after), eigenvalues(graph, after)
    least, most = found.lambda_min, found.lambda_max
    assert abs(most.value - values[-1]) <= most.error + 1e-9
    assert most.low <= values[-1] * (1 + 1e-9)
    assert most.high >= values[-1] * (1 - 1e-9)
    assert most.converged
    if found.components_after > found.components_before:
        assert (least.value, least.low, least.high) == (0, 0, 0)
    else:
        assert abs(least.value - values[0]) <= least.error + 1e-9
        assert least.low <= values[0] * (1 + 1e-9)
        assert least.high >= values[0] * (1 - 1e-9)


def test_a_connected_result_was_among_them():
    graph = LARGE["conjugate gradients"]()
    after = draw(graph, 0.95, None, seed=3)
    found = certify(graph, after)
    assert found.components_after == 1
    assert 0.3 < found.lambda_min.value < 1


def test_what_did_not_converge_is_a_range(monkeypatch):
    def fails(*_):
        raise ConvergenceError("no")

    monkeypatch.setattr(pencil, "laplacian_solver", fails)
    graph = LARGE["conjugate gradients"]()
    after = draw(graph, 0.95, None, seed=3)
    found, values = certify(graph, after), eigenvalues(graph, after)
    for one, truth in ((found.lambda_min, values[0]), (found.lambda_max, values[-1])):
        assert np.isnan(one.value)
        assert not one.converged
        assert one.low <= truth * (1 + 1e-9)
        assert one.high >= truth * (1 - 1e-9)
    assert found.lambda_max.high == pytest.approx(1 / 0.95)  # no edge weighs more


def test_a_part_without_a_value_hides_the_error_of_the_others():
    known = pencil.Extreme(value=2.0, error=0.1, low=1.9, high=2.1)
    both = pencil.largest([known, pencil.UNKNOWN])
    assert (both.value, both.error, both.low, both.high) == (2.0, np.inf, 1.9, np.inf)
    both = pencil.smallest([known, pencil.UNKNOWN])
    assert (both.value, both.error, both.low, both.high) == (2.0, np.inf, 0.0, 2.1)


def test_weights_too_far_apart_are_not_solved():
    graph = LARGE["conjugate gradients"]()
    weight = torch.ones(graph.num_edges, dtype=torch.float64)
    weight[0] = 1e-9
    found = certify(replace(graph, weight=weight), graph)
    assert np.isnan(found.lambda_max.value)
    assert found.lambda_max.high == pytest.approx(float((graph.weight / weight).max()))


@pytest.mark.parametrize(
    "after",
    [Graph.from_edge_index([[0], [2]], 9), Graph.from_edge_index([[0], [1]], 10), Graph.from_edge_index([[7], [9]])],
)
def test_other_edges_or_nodes_are_refused(after):
    with pytest.raises(TadropedgeError, match="must be some of those of"):
        certify(ZOO["path"], after)


# -- the sparsifier --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "score"), [("karate", "effective"), ("weighted", "effective"), ("weighted", "uniform")]
)
def test_the_laplacian_is_unbiased(name, score):
    graph, draws = ZOO[name], 600
    total = torch.zeros(graph.num_edges, dtype=torch.float64)
    first = sparsify(graph, 0.5, score, certificate=False)
    importance = None if score == "uniform" else tde.edge_scores(graph, score)
    if importance is not None and graph.weight is not None:
        importance = importance * graph.weight
    for seed in range(draws):
        found = draw(graph, 0.5, importance, seed)
        total[found.keep] += 1.0 if found.weight is None else found.weight
    weight = torch.ones(graph.num_edges, dtype=torch.float64) if graph.weight is None else graph.weight
    deviation = weight * ((1 - first.prob) / first.prob / draws).sqrt()
    assert bool(((total / draws - weight).abs() <= 5 * deviation + 1e-12).all())
    assert float(first.prob.mean()) == pytest.approx(0.5)


def test_probabilities_are_proportional_to_leverage():
    graph = ZOO["weighted"]
    found = sparsify(graph, 0.3, certificate=False)
    leverage = dense.effective_resistance(graph) * graph.weight.numpy()
    free = found.prob < 1
    scale = found.prob[free].numpy() / leverage[free.numpy()]
    assert scale == pytest.approx(scale[0])
    assert (found.prob[~free].numpy() == 1).all()
    assert found.weight.numpy() == pytest.approx((graph.weight / found.prob)[found.keep].numpy())


def test_one_seed_one_graph(device):
    graph = ZOO["karate"]
    ours, again = sparsify(graph, 0.5, seed=7), sparsify(graph.to(device), 0.5, seed=7)
    assert torch.equal(ours.keep, again.keep.cpu())
    assert torch.equal(ours.keep, tde.sample_edges(ours.prob, seed=7))
    assert again.device.type == device.type
    assert again.to("cpu").fingerprint == ours.fingerprint
    assert sparsify(graph, 0.5, seed=8).fingerprint != ours.fingerprint
    assert again.certificate.lambda_max.value == pytest.approx(ours.certificate.lambda_max.value)


def test_it_is_a_graph_in_every_way():
    graph = Graph.from_networkx(nx.karate_club_graph(), weight=None)
    found = sparsify(graph, 0.7, seed=1)
    assert isinstance(found, Graph)
    assert found.node_ids == graph.node_ids
    assert tde.edge_scores(found, "effective").shape == (found.num_edges,)
    assert tde.shift_operator(found).to_dense().shape == (34, 34)
    assert found.components.count == found.certificate.components_after
    arcs = found.to_arcs(found.weight)
    assert torch.equal(arcs, torch.where(found.keep, 1 / found.prob, 0.0)[graph.arc_pair])
    assert found.to("cpu").certificate is found.certificate
    again = sparsify(found, 0.5)
    assert again.num_edges < found.num_edges


def test_every_ratio_up_to_one():
    graph = ZOO["cliques"]
    whole = sparsify(graph, 1.0)
    assert whole.fingerprint == graph.fingerprint
    assert (whole.certificate.lambda_min.value, whole.certificate.lambda_max.value) == pytest.approx((1, 1))
    none = sparsify(graph, 1e-12)
    assert none.num_edges == 0
    assert (none.certificate.lambda_min.value, none.certificate.lambda_max.value) == (0, 0)
    assert none.certificate.components_after == none.certificate.isolated_after == 10


def test_trees_keep_their_bridges_only_by_chance():
    found = sparsify(star(7), 0.5, seed=0)  # all leverages are 1: no edge can be told from another
    assert found.prob.tolist() == [0.5] * 7
    assert set(found.weight.tolist()) == {2.0}


def test_any_score_rule_and_setting():
    graph = ZOO["karate"]
    mine = sparsify(graph, 0.6, lambda graph, power: (graph.pairs.sum(0) + 1.0) ** power, power=2)
    scores = (graph.pairs.sum(0) + 1.0) ** 2
    assert torch.equal(mine.prob, tde.keep_probabilities(scores, keep_ratio=0.6, strategy="proportional"))
    by_rank = sparsify(graph, 0.8, strategy="cdf", certificate=False)
    assert by_rank.certificate is None
    resistance = tde.effective_resistance(graph)
    assert torch.equal(by_rank.prob, tde.keep_probabilities(resistance, keep_ratio=0.8, strategy="cdf"))
    modal = sparsify(graph, 0.8, "aggregate", strategy="cdf", q=4)
    assert torch.equal(modal.keep, tde.sample_edges(modal.prob))


def test_parts_of_a_certificate_are_kept_on_disk(tmp_path, monkeypatch):
    graph = ZOO["parts"]
    first = sparsify(graph, 0.8, cache_dir=tmp_path)

    def never(*_):
        raise AssertionError("something was solved again")

    monkeypatch.setattr(certificate, "extremes", never)
    assert sparsify(graph, 0.8, cache_dir=tmp_path).certificate == first.certificate


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"keep_ratio": 0}, "keep_ratio must be a positive number, got 0"),
        ({"keep_ratio": 1.5}, "keep_ratio must be at most 1, got 1.5"),
        ({"keep_ratio": float("nan")}, "keep_ratio must be a positive number"),
        ({"score": "efective"}, "unknown score 'efective'"),
        ({"score": "uniform", "q": 3}, "the score 'uniform' has no setting 'q'"),
        ({"q": 3}, "the score 'effective' has no setting 'q'"),
        ({"connected": True}, "the score 'effective' has no setting 'connected'"),
        ({"strategy": "cdff"}, "unknown strategy 'cdff'"),
        ({"strategy": "cdf"}, "keep_ratio=0.1 cannot be reached with cdf"),
        ({"score": lambda graph: graph.pairs[0]}, "16 of 78 edges have a keep probability of 0"),
        ({"score": lambda graph: graph.pairs[0] - 1.0}, "must be finite and at least 0"),
        ({"certificate": "yes"}, "certificate must be True or False"),
        ({"seed": 1.5}, "seed must be a whole number"),
    ],
)
def test_bad_input_is_one_line(given, words):
    with pytest.raises(TadropedgeError, match=words) as caught:
        sparsify(ZOO["karate"], **given)
    assert "\n" not in str(caught.value)


# -- the command -----------------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(app, ["sparsify", *map(str, arguments)], catch_exceptions=True)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_everything_is_written_and_comes_back(tmp_path):
    result = run("karate", "--keep-ratio", 0.6, "--seed", 3, "--out", tmp_path)
    assert result.exit_code == 0, result.exception
    assert names(tmp_path) == FILES
    data = load_dataset("karate", seed=3)
    ours = sparsify(data.graph, 0.6, seed=3)
    assert Graph.from_file(tmp_path / "graph.npz").fingerprint == ours.fingerprint
    kept = Graph.from_file(tmp_path / "edges.csv")
    assert kept.weight.tolist() == ours.weight.tolist()
    assert torch.tensor(kept.node_ids)[kept.pairs].tolist() == ours.pairs.tolist()
    for file in ("graph.npz", "data.pt"):
        again = load_dataset(tmp_path / file)
        assert torch.equal(again.graph.pairs, ours.pairs)
        assert torch.allclose(again.graph.weight, ours.weight, rtol=1e-7)
        assert torch.equal(again.features.to_dense(), data.features.to_dense())
        assert torch.equal(again.labels, data.labels)
        parts = zip(again.split.parts(), data.split.parts(), strict=True)
        assert all(torch.equal(ours, theirs) for (_, ours), (_, theirs) in parts)
    found = json.loads((tmp_path / "certificate.json").read_text())
    assert found["certificate"]["lambda_max"]["value"] == pytest.approx(ours.certificate.lambda_max.value)
    assert found["edges"] == ours.num_edges
    assert found["settings"] == {"score": "effective", "keep_ratio": 0.6, "seed": 3}
    assert {"command", "commit", "machine", "versions", "seconds"} <= set(found["run"])
    words = " ".join(result.stdout.split())
    assert f"kept {ours.num_edges} edges" in words
    assert "components 1 before" in words


def test_a_saved_data_holds_tensors_alone(tmp_path):
    assert run("karate", "--keep-ratio", 0.6, "--score", "uniform", "--out", tmp_path).exit_code == 0
    before = torch.serialization.get_safe_globals()
    with torch.serialization.safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]):
        data = torch.load(tmp_path / "data.pt", weights_only=True)
    torch.serialization.add_safe_globals(before)  # those of PyG, which end with the context, too
    assert data.edge_index.shape[1] == data.edge_weight.shape[0]
    assert data.edge_weight.dtype == torch.float32
    assert data.is_undirected()
    assert data.num_nodes == 34
    assert Graph.from_data(data).weight.tolist() == pytest.approx([1 / 0.6] * (data.num_edges // 2))


@pytest.fixture
def named_file(tmp_path):
    file = tmp_path / "names.tsv"
    graph = ZOO["weighted"]
    lines = zip(*graph.pairs.tolist(), graph.weight.tolist(), strict=True)
    file.write_text("".join(f"node {i}\tnode {j}\t{w!r}\n" for i, j, w in lines))
    return file


def test_names_and_weights_come_back(named_file, tmp_path):
    assert run(named_file, "--keep-ratio", 0.9, "--out", tmp_path / "out").exit_code == 0
    graph = Graph.from_file(named_file)
    ours, again = sparsify(graph, 0.9), Graph.from_file(tmp_path / "out" / "edges.csv")
    assert again.fingerprint == ours.fingerprint
    assert again.node_ids == ours.node_ids == graph.node_ids
    with np.load(tmp_path / "out" / "graph.npz", allow_pickle=False) as arrays:
        assert tuple(arrays["node_ids"].tolist()) == graph.node_ids
    assert run(named_file, "--keep-ratio", 0.9, "--unweighted", "--out", tmp_path / "plain").exit_code == 0
    plain = sparsify(replace(graph, weight=None), 0.9)
    assert Graph.from_file(tmp_path / "plain" / "edges.csv").fingerprint == plain.fingerprint


def test_a_file_with_features_stays_a_dataset(tmp_path):
    arrays = {"edge_index": ZOO["karate"].pairs, "x": np.eye(34), "y": np.arange(34) % 2}
    parts = {"train": np.array([[0, 1], [2, 3]]), "val": np.arange(4, 8), "test": np.arange(8, 20)}
    for name, given in {"plain": arrays, "split": arrays | parts}.items():
        np.savez(tmp_path / f"{name}.npz", **given)
        out = tmp_path / name
        result = run(tmp_path / f"{name}.npz", "--keep-ratio", 0.5, "--no-certificate", "--json", "--out", out)
        assert result.exit_code == 0, result.exception
        assert json.loads(result.stdout)["certificate"] is None
        before = read_contents(tmp_path / f"{name}.npz")
        for file in ("graph.npz", "data.pt"):
            after = read_contents(out / file)
            assert torch.equal(after.features, before.features)
            assert torch.equal(after.labels, before.labels)
            assert len(after.splits) == len(before.splits) == (2 if name == "split" else 0)
            for ours, theirs in zip(after.splits, before.splits, strict=True):
                assert [part.tolist() for _, part in ours.parts()] == [part.tolist() for _, part in theirs.parts()]


def test_a_stop_in_the_middle_changes_no_byte(tmp_path, monkeypatch):
    file = tmp_path / "edges.txt"
    file.write_text("".join(f"{i} {j}\n" for i, j in ZOO["parts"].pairs.T.tolist()))
    arguments = (file, "--keep-ratio", 0.7, "--out")
    assert run(*arguments, tmp_path / "whole").exit_code == 0
    original, solved = certificate.extremes, []

    def stopped_at_the_second(*given):
        if solved:
            raise KeyboardInterrupt
        solved.append(given)
        return original(*given)

    monkeypatch.setattr(certificate, "extremes", stopped_at_the_second)
    result = run(*arguments, tmp_path / "stopped")
    assert result.exit_code == 130
    assert "Resume with: tadropedge" in result.stderr
    assert names(tmp_path / "stopped") == ["cache"]
    monkeypatch.setattr(certificate, "extremes", original)
    assert run(*arguments, tmp_path / "stopped").exit_code == 0
    for name in ("edges.csv", "graph.npz", "data.pt"):
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    ours, theirs = (json.loads((tmp_path / one / "certificate.json").read_text()) for one in ("stopped", "whole"))
    assert ours["certificate"] == theirs["certificate"]


def test_a_graph_of_signals_is_written_without_them(tmp_path):
    result = run("source-localization", "--keep-ratio", 0.5, "--no-certificate", "--out", tmp_path)
    assert result.exit_code == 0, result.exception
    with np.load(tmp_path / "graph.npz") as arrays:
        assert sorted(arrays) == ["edge_index", "edge_weight", "num_nodes"]


@pytest.mark.parametrize("file", ["edges.csv", "graph.npz", "data.pt"])
def test_a_column_of_the_file_is_a_score(file, tmp_path):
    """p = min(1, c · column), and a kept edge has the weight 1 / p."""
    arcs, trust = [[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]], [1.0, 2.0, 3.0, 4.0, 5.0]
    graph, x, y = Graph.from_edge_index(arcs), torch.eye(4), torch.arange(4) % 2
    if file == "edges.csv":
        lines = [f"{low},{high},{value:g}" for low, high, value in zip(*arcs, trust, strict=True)]
        (tmp_path / file).write_text("\n".join(["source,target,trust", *lines]))
    elif file == "graph.npz":
        np.savez(tmp_path / file, edge_index=np.array(arcs), num_nodes=4, trust=np.array(trust))
    else:
        torch.save(Data(edge_index=torch.tensor(arcs), x=x, y=y, trust=torch.tensor(trust)), tmp_path / file)
    out = tmp_path / "out"
    result = run(tmp_path / file, "--score-column", "trust", "--keep-ratio", 0.6, "--seed", 4, "--out", out)
    assert result.exit_code == 0, result.exception
    kept = Graph.from_file(out / "graph.npz")
    column = dict(zip([tuple(sorted(pair)) for pair in zip(*arcs, strict=True)], trust, strict=True))
    keep = tde.sample_edges(torch.tensor([0.2 * column[tuple(pair)] for pair in graph.pairs.T.tolist()]), seed=4)
    assert torch.equal(kept.pairs, graph.pairs[:, keep])
    assert kept.weight.tolist() == pytest.approx([5 / column[tuple(pair)] for pair in kept.pairs.T.tolist()])
    told = json.loads((out / "certificate.json").read_text())["settings"]
    assert (told["score"], told["score_column"]) == ("column", "trust")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("karate", "--score", "nope"), "unknown score 'nope'; choose from uniform"),
        (("karate", "--keep-ratio", "0"), "--keep-ratio must be a positive number"),
        (("karate", "--keep-ratio", "1e-12"), "no edge of 'karate' was kept"),
        (("karate", "--score", "uniform", "--q", "3"), "has no setting --q"),
        (("karate", "--relative-error", "2"), "--relative-error must"),
        (("karate", "--score", "column"), "the score 'column' needs --score-column NAME"),
        (("karate", "--score-column", "trust"), "karate is a dataset without any, got 'trust'"),
        (("edges.csv", "--score", "aggregate"), "no such file"),
    ],
)
def test_bad_options_are_one_line(arguments, words, tmp_path):
    result = run(*arguments, "--out", tmp_path / "out")
    assert isinstance(result.exception, TadropedgeError)
    assert words in str(result.exception)
    assert not (tmp_path / "out" / "certificate.json").exists()
