"""Section 6 and the supplement: the statistics of the citation sets, and their disjoint components."""

import pandas as pd

from experiments.claims import Claim
from experiments.frame import Row, Run, item
from experiments.paper.printed import DATASETS, PRINTED

GRID = {"dataset": list(DATASETS)}


def dataset_claims(rows: pd.DataFrame) -> list[Claim]:
    """The size, the edges and the split of each dataset."""
    claims = []
    for _, one in rows.groupby("dataset", sort=False):
        name = DATASETS[one["dataset"].iloc[0]]
        printed = PRINTED["datasets"][name]
        sizes = ["nodes", "classes", "features"]
        told = ", ".join(f"{printed[size]:,} {size}" for size in sizes)
        same = (one[sizes] == [printed[size] for size in sizes]).all(axis=1)
        split = "/".join(f"{part:,}" for part in printed["split"])
        one = one.assign(split=["/".join(f"{part:,}" for part in row) for row in one["split"]])
        shows = dict.fromkeys(sizes, ",")
        claims += [
            Claim("sizes", one, same, of=name, printed=told, shows=shows),
            Claim("edges", one, one.edges == printed["edges"], of=name, printed=f"{printed['edges']:,}",
                  shows={"edges": ","}, impossible=True),
            Claim("split", one, one.split == split, of=name, printed=split, shows={"split": ""}, impossible=True),
        ]  # fmt: skip
    return claims


@item("datasets", where="Section 6.1", protocol="counted in the files", quick={}, paper=GRID, claims=dataset_claims)
def count(run: Run, dataset: str) -> list[Row]:
    """Count nodes, edges, classes, features, the split and the nodes without a label."""
    data = run.dataset(dataset)
    return [
        {
            "nodes": data.graph.num_nodes,
            "edges": data.graph.num_edges,
            "classes": data.num_classes,
            "features": data.num_features,
            "split": list(data.split(0).sizes),
            "unlabelled": int((data.labels < 0).sum()),
        }
    ]


def component_claims(rows: pd.DataFrame) -> list[Claim]:
    """The number of components of each dataset, and the sizes of the smallest and the largest."""
    claims = []
    for _, one in rows.groupby("dataset", sort=False):
        name = DATASETS[one["dataset"].iloc[0]]
        count, largest, smallest = PRINTED["components"][name]
        same = (one["smallest"] == smallest) & (one["largest"] == largest)
        claims += [
            Claim("count", one, one["components"] == count, of=name, printed=f"{count:,}", shows={"components": ","},
                  impossible=True),
            Claim("sizes", one, same, of=name, printed=f"{smallest:,} to {largest:,}",
                  shows={"smallest": ",", "largest": ","}, impossible=True),
        ]  # fmt: skip
    return claims


@item(
    "components", where="Supplement C", protocol="counted in the files", quick={}, paper=GRID,
    claims=component_claims,
)  # fmt: skip
def components(run: Run, dataset: str) -> list[Row]:
    """Count the components, and the nodes of the largest and the smallest."""
    found = run.dataset(dataset).graph.components
    smallest, isolated = int(found.sizes.min()), int((found.sizes == 1).sum())
    return [{"components": found.count, "largest": found.largest, "smallest": smallest, "isolated": isolated}]
