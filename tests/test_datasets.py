"""Every dataset that has a name, by the contract of datasets."""

from contracts.datasets import DatasetContract

from tadropedge.data import DATASETS


class Citation(DatasetContract):
    folder = "planetoid"
    options = {"split": "random", "per_class": 5}
    random = {"train", "val", "test"}
    bad = {
        "unknown split 'ful'; choose from full, public, random": {"split": "ful"},
        "per_class must be a whole number of at least 1, got 0": {"per_class": 0},
    }


class TestCora(Citation):
    name = "cora"


class TestCiteSeer(Citation):
    name = "citeseer"


class TestPubMed(Citation):
    name = "pubmed"


class TestPublishedSplit(DatasetContract):
    name = "cora"
    folder = "planetoid"
    options = {"split": "public"}


class TestKarate(DatasetContract):
    name = "karate"
    random = {"train", "val", "test"}
    covers = True
    bad = {"unknown option of karate 'split'; choose from seed": {"split": "public"}}


class TestClusters(DatasetContract):
    name = "clusters"
    random = {"pairs", "features", "train"}
    covers = True
    bad = {
        "clusters must be a whole number of at least 2, got 1": {"clusters": 1},
        "nodes=6 per cluster are too few for per_class=5: take three more at least": {"nodes": 6},
        r"inside must lie in \[0, 1\], got -0.1": {"inside": -0.1},
        "features must be a whole number": {"features": 0},
    }


class TestNoisyClusters(DatasetContract):
    name = "noisy-clusters"
    random = {"pairs", "features", "train"}
    covers = True
    bad = {
        "classes must be a whole number of at least 2, got 1": {"classes": 1},
        "clusters=2 of nodes=5 are too few for per_class=10: take 3 nodes more at least": {
            "nodes": 5,
            "clusters": 2,
        },
        "clusters must be a whole number of at least 1, got 0": {"clusters": 0},
        "features must be a whole number of at least 1, got 0": {"features": 0},
        r"inside must lie in \[0, 1\], got 1.5": {"inside": 1.5},
        "noise must be at least 0.*, got -1|noise must lie in .*, got -1": {"noise": -1.0},
        "noise=300: 320 nodes have no room for .* more edges": {"noise": 300.0},
    }


class Planar(DatasetContract):
    covers = True
    bad = {
        "classes must be a whole number of at least 2, got 1": {"classes": 1},
        "regions must be a whole number of at least 6, got 5": {"regions": 5},
        "regions=9999 are more than there are nodes": {"regions": 9999},
        "features must be a whole number of at least 1, got 0": {"features": 0},
        "class [0-5] of .* has .* nodes, too few for per_class=500: take at least three more": {"per_class": 500},
    }


class TestGrid(Planar):
    name = "grid"
    random = {"features", "labels", "train"}
    bad = {**Planar.bad, "side must be a whole number of at least 2, got 1": {"side": 1}}


class TestRoads(Planar):
    name = "roads"
    random = {"pairs", "features", "labels", "train"}
    bad = {**Planar.bad, "nodes must be a whole number of at least 10, got 9": {"nodes": 9}}


class TestSourceLocalization(DatasetContract):
    name = "source-localization"
    level = "graph"
    random = {"pairs", "features", "labels"}
    covers = True
    bad = {
        r"unknown noise 'calibratd'; choose from calibrated, stated \(did you mean": {"noise": "calibratd"},
        "noise must lie in .*, got None": {"noise": None},
        "noise must lie in .*, got 0.0": {"noise": 0.0},
        "noise must lie in .*, got nan": {"noise": float("nan")},
        "nodes=51 cannot be divided into 5 equal communities": {"nodes": 51},
        "communities must be a whole number of at least 2, got 1": {"communities": 1},
        "times must be a whole number of at least 1": {"times": 0},
        "the size of split.val must be a whole number of at least 1, got 0": {"sizes": (100, 0, 5)},
        "class [0-4] has no training sample": {"sizes": (1, 5, 5)},
        "unknown normalization 'row'; choose from spectral, degree": {"normalization": "row"},
        r"inside must lie in \[0, 1\], got 1.5": {"inside": 1.5},
    }


def test_every_dataset_has_its_contract():
    found = [DatasetContract, *DatasetContract.__subclasses__(), *Citation.__subclasses__(), *Planar.__subclasses__()]
    assert {contract.name for contract in found if hasattr(contract, "name")} == set(DATASETS)
