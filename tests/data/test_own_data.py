"""Your own data: objects, files, tables of nodes; splits of everything; edges added and features hidden."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.datasets import FakeDataset, KarateClub

from tadropedge import Graph, TadropedgeError
from tadropedge.files import write_graph
from tadropedge.lab.data.corrupt import add_random_edges, corrupt, hide_rows, random_pairs
from tadropedge.lab.data.dataset import Dataset
from tadropedge.lab.data.load import load
from tadropedge.lab.data.splits import Given, OfSizes, PerClass, Split, full_split, random_split, shuffled_split
from tadropedge.testing.graphs import cycle, karate, weighted

LABELS = torch.tensor([kind for kind, count in enumerate((500, 300, 150, 50)) for _ in range(count)])
KARATE = load("karate")


def parts(split):
    return [part.tolist() for _, part in split.parts()]


def ring(nodes=60, **more):
    """A ring of two classes in turns."""
    return Data(torch.eye(nodes), cycle(nodes).pairs, y=torch.arange(nodes) % 2, **more)


def masks(nodes=60, splits=None):
    """Own masks: of one split, or of several, [N, K]."""
    number = torch.arange(nodes)
    third = [number % 10 < 4, (number % 10 >= 4) & (number % 10 < 6), number % 10 >= 6]
    if splits is not None:
        third = [torch.stack([each.roll(shift * 2) for shift in range(splits)], dim=1) for each in third]
    return dict(zip(("train_mask", "val_mask", "test_mask"), third, strict=True))


# -- splits --------------------------------------------------------------------------------------------


def test_recorded_splits_are_what_they_were():
    labels = torch.tensor([(7 * node) % 11 % 4 for node in range(600)])
    for split, content in (
        (shuffled_split(labels, (200, 100, 300), seed=3), "a72b1727b53c53cd"),
        (random_split(labels, 20, 100, 200, seed=3), "875b20acd6a53c09"),
    ):
        drawn = b"".join(part.numpy().tobytes() for _, part in split.parts())
        assert hashlib.sha256(drawn).hexdigest()[:16] == content


def test_splits_of_a_number_never_change():
    assert PerClass(2, 3, 4, seed=5).split(LABELS, 7).train.tolist() == [112, 459, 527, 626, 921, 930, 959, 996]
    assert OfSizes(6, 3, 4, seed=5).split(LABELS, 7).test.tolist() == [61, 280, 393, 540]


@pytest.mark.parametrize("way", [PerClass(20), PerClass(5, 60, 120), OfSizes(100, 60, 120)], ids=str)
def test_split_number_seven_is_the_same_whatever_was_drawn_before(way):
    first = parts(way.split(LABELS, 7))
    others = {tuple(parts(way.split(LABELS, number))[0]) for number in range(20)}
    assert len(others) == 20
    assert parts(way.split(LABELS, 7)) == first
    assert parts(replace(way, seed=1).split(LABELS, 7)) != first
    for number in range(5):
        split = way.split(LABELS, number)
        assert len({node for part in parts(split) for node in part}) == sum(split.sizes)
        assert all(part == sorted(part) for part in parts(split))


def test_per_class():
    split = PerClass(20).split(LABELS, 0)
    assert torch.bincount(LABELS[split.train]).tolist() == [20] * 4
    assert split.sizes == (80, 306, 614)  # a third of 920 validates
    assert PerClass(20).split(LABELS.repeat(3), 0).sizes == (80, 500, 2420)


def test_classes_are_drawn_uniformly():
    seen = np.zeros(1000)
    for number in range(400):
        seen[OfSizes(100, 60, 120).split(LABELS, number).train] += 1
    assert seen[:500].mean() == pytest.approx(40, abs=1)
    assert seen.max() < 40 + 6 * 40**0.5


def test_nodes_without_a_label_are_in_no_split():
    labels = LABELS.clone()
    labels[::2] = -1
    for way in (PerClass(5), OfSizes(50, 60, 70), full_split(labels)):
        for part in parts(way.split(labels, 1)):
            assert all(node % 2 for node in part)
    assert full_split(labels).split(labels, 0).sizes == (300, 100, 100)


def test_own_splits_begin_again_with_the_first():
    data = load(ring(**masks(splits=3)), split="own")
    assert data.num_splits == 3
    assert data.split(0).train.tolist() == [node for node in range(60) if node % 10 < 4]
    assert data.split(1).train.tolist() != data.split(0).train.tolist()
    assert parts(data.split(4)) == parts(data.split(1))
    one = load(ring(**masks()), split="public")
    assert (one.num_splits, one.split(9).sizes) == (1, (24, 12, 24))
    assert load(ring(**masks()), per_class=3).split(0).sizes == (6, 18, 36)  # masks are an offer
    assert load(ring(**masks())).num_splits is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"split": "fulll"}, "did you mean 'full'"),
        ({"split": (1, 2)}, "three sizes"),
        ({"split": (1, 10, 10)}, "hold one of each"),
        ({"split": (30, 30, 30)}, "needs 90"),
        ({"split": 7}, "three sizes"),
        ({"split": "own"}, "no split of its own"),
        ({"per_class": 0}, "at least 1"),
        ({"per_class": 31}, "class 0 has 30"),
        ({"per_class": 30}, "62 are needed"),
        ({"per_class": 2, "split": "full"}, "random splits"),
        ({"seed": 0.5}, "seed"),
        ({"column": "nowhere"}, "'nowhere'"),
        ({"colour": "red"}, "unknown option"),
        ({"add_edges": -1}, "add_edges"),
        ({"add_edges": 1e5}, "no room"),
        ({"hide_features": 1.5}, "hide_features"),
    ],
)
def test_what_cannot_be_is_said_at_the_door(options, words):
    with pytest.raises(TadropedgeError, match=words) as caught:
        load(ring(), **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda train, val, test: (train[:0], val, test), "not empty"),
        (lambda train, val, test: (train, train, test), "in split.train and in split.val"),
        (lambda train, val, test: (train + 60, val, test), "run from 0 to 59"),
        (lambda train, val, test: (train[train % 2 == 0], val, test), "class 1 has no"),
        (lambda train, val, test: (torch.cat((train, train)), val, test), "more than once"),
        (lambda train, val, test: (train.float(), val, test), "int64"),
    ],
)
def test_own_splits_are_checked(change, words):
    data = load(ring(**masks()), split="own")
    split = Split(*change(*(part for _, part in data.split(0).parts())))
    with pytest.raises(TadropedgeError, match=words):
        replace(data, splits=Given((split,)))


# -- objects -------------------------------------------------------------------------------------------


def test_a_data_a_dataset_of_one_graph_and_a_batch_of_one():
    wanted = load(ring()).fingerprint()
    assert load(Batch.from_data_list([ring()])).fingerprint() == wanted
    assert load(load(ring())).fingerprint() == wanted
    club = load(KarateClub(), per_class=2)
    assert (club.name, club.graph.num_edges) == ("karateclub", 78)
    assert load(ring(edge_weight=torch.full((60,), 2.0))).graph.weight.tolist() == [2.0] * 60


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (FakeDataset(3), "got 3 graphs"),
        (Batch.from_data_list([ring(), ring()]), "a Batch of 2 graphs"),
        (HeteroData(), "HeteroData"),
        ([ring()], "got list"),
        (None, "NoneType"),
        (Data(torch.eye(3), cycle(3).pairs), "no labels"),
        (Data(edge_index=cycle(3).pairs), "only a graph"),
        (Data(torch.eye(3), y=torch.arange(3)), "edge_index"),
        (Data(torch.eye(3), cycle(3).pairs, y=torch.eye(3)), "one class"),
        (Data(torch.eye(3) / 0, cycle(3).pairs, y=torch.arange(3)), "finite"),
        (Data(torch.eye(2), cycle(3).pairs, y=torch.arange(2)), "node id 2"),
        (Data(torch.eye(3), cycle(3).pairs, y=torch.zeros(3).long()), "two classes"),
        (Data(torch.eye(3), cycle(3).pairs, y=torch.tensor([0, 1, 9])), "got 9"),
    ],
)
def test_what_is_no_graph_of_labelled_nodes(data, words):
    with pytest.raises(TadropedgeError, match=words) as caught:
        load(data)
    assert "\n" not in str(caught.value)


def test_an_attribute_of_edges_is_a_column_of_scores():
    both = torch.cat((cycle(60).pairs, cycle(60).pairs.flip(0)), dim=1)
    data = ring(trust=torch.arange(60.0).repeat(2), edge_attr=torch.ones(120, 3))
    data.edge_index = both
    found = load(data, column="trust")
    assert found.column.tolist() == list(range(60))
    assert found.fingerprint() != load(data).fingerprint()
    with pytest.raises(TadropedgeError, match="there are trust"):
        load(data, column="trusts")
    with pytest.raises(TadropedgeError, match="column of scores"):
        load(data, column="trust", add_edges=0.5)


def test_sparse_features_stay_sparse_and_rows_can_be_normalised():
    data = ring(200)
    data.x = torch.eye(200) * 3
    found = load(data, normalize=True)
    assert found.features.layout is torch.sparse_csr
    assert torch.equal(found.features.to_dense(), torch.eye(200))
    data.x = data.x.to_sparse_csr()
    assert load(data, normalize=True).fingerprint() == found.fingerprint()


# -- files ---------------------------------------------------------------------------------------------

EDGES = "source,target,km\nann,bob,2\nbob,eve,3\neve,joe,4\njoe,ann,5\nkim,ann,6\n"
NODES = "name,age,height,team\nann,7,1.2,red\nbob,8,1.3,blue\neve,9,1.4,red\njoe,5,1.5,blue\nkim,4,1.6,NA\nmax,3,1.7,\n"


def write(tmp_path, edges=EDGES, nodes=NODES):
    (tmp_path / "friends.csv").write_text(edges)
    (tmp_path / "people.csv").write_text(nodes)
    return tmp_path / "friends.csv", tmp_path / "people.csv"


def test_a_table_of_nodes_beside_an_edge_list(tmp_path):
    edges, nodes = write(tmp_path)
    data = load(edges, nodes=nodes, columns={"weight": "km"}, per_class=1)
    assert data.name == "friends"
    assert data.node_names == ("ann", "bob", "eve", "joe", "kim", "max")
    assert data.class_names == ("blue", "red")
    assert data.labels.tolist() == [1, 0, 1, 0, -1, -1]
    assert data.features.tolist()[1] == pytest.approx([8, 1.3])
    assert data.graph.pairs.T.tolist() == [[0, 1], [0, 3], [0, 4], [1, 2], [2, 3]]
    assert data.graph.weight.tolist() == [2, 5, 6, 3, 4]
    assert data.read == (
        "5 edges from columns 'source' and 'target', weights from 'km'; header read; "
        "2 features and 2 classes of 6 nodes from people.csv"
    )
    column = load(edges, nodes=nodes, column="km", columns={"source": 1, "target": 2}, per_class=1)
    assert column.column.tolist() == [2, 5, 6, 3, 4]
    assert column.graph.weight is None


TABLES = {  # all of them the same nodes
    "id first, label last": "name,f,g,team\n3,.5,1,a\n1,2,3,b\n2,4,5,a\n",
    "no header": "3,.5,1,a\n1,2,3,b\n2,4,5,a\n",
    "label second": "id;label;f;g\n3;a;0,5;1\n1;b;2;3\n2;a;4;5\n",
    "numbers of pandas": ",id,f,g,y\n0,3,0.5,1,a\n1,1,2,3,b\n2,2,4,5,a\n",
    "index of pandas": ",f,g,class\n3,0.5,1,a\n1,2,3,b\n2,4,5,a\n",
    "white space": "# people\n3 0.5 1 a\n1 2 3 b\n2 4 5 a\n",
    "numeric names": "id,0,1,label\n3,0.5,1,a\n1,2,3,b\n2,4,5,a\n",
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_nodes(kind, tmp_path):
    edges, nodes = write(tmp_path, "1 2\n2 3\n", TABLES[kind])
    data = read(edges, nodes)
    assert data.node_names == (3, 1, 2)
    assert data.features.tolist() == [[0.5, 1], [2, 3], [4, 5]]
    assert data.class_names == ("a", "b")
    assert data.graph.pairs.T.tolist() == [[0, 2], [1, 2]]


def read(edges, nodes, **options):
    """The dataset of three nodes, which are too few to split."""
    from tadropedge.lab.data.contents import load_file

    return load_file(edges, nodes=nodes, **options)


BAD_TABLES = {
    "words named like numbers": ("id,0,1,label\nann,0.1,0.3,cat\nbob,1,2,dog\n", "header=True or header=False"),
    "no known word": ("ann,0.1,0.3,cat\nbob,1,2\n", ":2: expected 4 columns, got 3"),
    "twice": ("1,0,a\n2,0,b\n01,0,a\n", ":3: the node '01' was given before"),
    "empty": ("1,0,a\n,0,b\n", ":2: empty"),
    "a word": ("1,0,a\n2,x,b\n", ":2: 'x'"),
    "an underscore": ("1,0,a\n2,1_0,b\n", ":2: '1_0'"),
    "nothing": ("id,f,label\n", "no nodes"),
    "two columns": ("1,a\n2,b\n", "at least 3 columns"),
    "no labels": ("1,0,\n2,0,-1\n", "no node has a label"),
    "features last": ("1,0,0.5\n2,0,0.25\n", "'0.25' is a number"),
    "two labels": ("id,y,label,f\n1,0,a,2\n2,0,b,3\n", "several"),
    "unknown node": ("1,0,a\n2,0,b\n", "node 3, which people.csv does not list"),
    "too large": ("1,1e300,a\n2,0,b\n3,0,b\n", "finite"),
}


@pytest.mark.parametrize("kind", BAD_TABLES)
def test_bad_tables_of_nodes(kind, tmp_path):
    edges, nodes = write(tmp_path, "1 2\n2 3\n", BAD_TABLES[kind][0])
    with pytest.raises(TadropedgeError, match=BAD_TABLES[kind][1]) as caught:
        read(edges, nodes)
    assert "\n" not in str(caught.value)


def test_numbers_are_the_names_of_nodes_that_have_none(tmp_path):
    sp.save_npz(tmp_path / "g.npz", cycle(4).adjacency())
    (tmp_path / "n.csv").write_text("2,0,a\n3,1,b\n0,2,a\n1,3,b\n")
    data = read(tmp_path / "g.npz", tmp_path / "n.csv")
    assert data.graph.pairs.T.tolist() == [[0, 1], [0, 3], [1, 2], [2, 3]]
    assert data.features[:, 0].tolist() == [0, 1, 2, 3]
    (tmp_path / "n.csv").write_text("2,0,a\n3,1,b\n0,2,a\n")
    with pytest.raises(TadropedgeError, match="node 1 "):
        read(tmp_path / "g.npz", tmp_path / "n.csv")


@pytest.mark.parametrize("suffix", [".npz", ".pt"])
def test_a_file_that_holds_everything(suffix, tmp_path):
    nodes = {"x": torch.eye(34), "y": KARATE.labels, **{part[:-5]: mask for part, mask in masks(34).items()}}
    file = write_graph(tmp_path / f"club{suffix}", weighted(karate()), {"score": torch.arange(78.0)}, nodes)
    data = load(file, column="score", split="own")
    assert data.name == "club"
    assert torch.equal(data.labels, KARATE.labels)
    assert data.column.tolist() == list(range(78))
    assert data.split(0).sizes == (16, 6, 12)
    with pytest.raises(TadropedgeError, match="leave out nodes"):
        load(file, nodes=file)
    with pytest.raises(TadropedgeError, match="only a graph"):
        load(write_graph(tmp_path / f"bare{suffix}", karate()))


def test_files_are_found_in_the_folder_of_all_data(tmp_path, monkeypatch):
    write_graph(tmp_path / "here.npz", karate(), nodes={"x": torch.eye(34), "y": KARATE.labels})
    monkeypatch.setenv("TADROPEDGE_DATA", str(tmp_path))
    assert load("here.npz", per_class=2).graph.num_edges == 78


# -- corrupted -----------------------------------------------------------------------------------------


def test_the_pairs_and_nodes_that_a_seed_draws_never_change():
    assert random_pairs(KARATE.graph, 6, 0).tolist() == [[9, 21, 17, 0, 10, 1], [28, 27, 22, 9, 13, 29]]
    hidden = (hide_rows(torch.ones(34, 1), 0.5, 3)[:, 0] == 0).nonzero()[:, 0]
    assert hidden.tolist() == [1, 4, 5, 6, 7, 8, 9, 15, 17, 19, 20, 22, 26, 28, 30, 31, 33]


def test_edges_are_added_where_there_were_none():
    made = corrupt(KARATE, add_edges=0.5, seed=4)
    before, after = ({*map(tuple, data.graph.pairs.T.tolist())} for data in (KARATE, made))
    assert before < after
    assert len(after) == 78 + 39
    assert parts(made.split(3)) == parts(KARATE.split(3))
    assert made.fingerprint() == corrupt(KARATE, add_edges=0.5, seed=4).fingerprint()
    assert made.fingerprint() != corrupt(KARATE, add_edges=0.5, seed=5).fingerprint()
    assert corrupt(KARATE).fingerprint() == KARATE.fingerprint()


def test_added_edges_have_the_mean_weight_and_names_stay():
    named = replace(Graph.from_edge_index([[0, 1, 2], [1, 2, 3]], 6, [1.0, 2.0, 6.0]), node_ids=tuple("abcdef"))
    made = add_random_edges(named, 2 / 3)
    assert made.node_ids == named.node_ids
    assert sorted(made.weight.tolist()) == [1, 2, 3, 3, 6]


@pytest.mark.parametrize("sparse", [False, True])
def test_hidden_rows_are_zeros_and_nested(sparse):
    features = torch.arange(1.0, 121).reshape(40, 3)
    hidden = set()
    for share in (0.2, 0.5, 0.999):
        made = hide_rows(features.to_sparse_csr() if sparse else features, share, 1)
        assert (made.layout is torch.sparse_csr) is sparse
        dense = made.to_dense()
        rows = {node for node in range(40) if not dense[node].any()}
        assert hidden < rows
        assert len(rows) == min(round(share * 40), 39)
        assert all(torch.equal(dense[node], features[node]) for node in range(40) if node not in rows)
        hidden = rows
    assert torch.equal(hide_rows(features, 1.0).to_dense(), torch.eye(40))


def test_a_dataset_is_checked_when_it_is_made():
    graph, labels = cycle(4), torch.tensor([0, 1, 0, 1])
    for features, given, words in (
        (torch.eye(3), labels, r"\[4, F\]"),
        (torch.eye(4).double(), labels, "float32"),
        (torch.eye(4), labels.float(), "int64"),
        (torch.eye(4), labels[:3], "one per node"),
        (torch.eye(4), labels - 2, "got -2"),
        (torch.ones(4, 0), labels, "features"),
    ):
        with pytest.raises(TadropedgeError, match=words):
            Dataset("d", graph, features, given)
    with pytest.raises(TadropedgeError, match="2 class_names"):
        Dataset("d", graph, torch.eye(4), labels, class_names=("a",))
