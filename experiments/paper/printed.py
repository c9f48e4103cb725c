"""``PRINTED``: the numbers that the paper prints, as data."""

import tomllib
from pathlib import Path

PRINTED = tomllib.loads(Path(__file__).with_name("published.toml").read_text(encoding="utf-8"))
DATASETS = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}  # our names and those of the paper
LAPLACIANS = ("combinatorial", "normalized")  # the paper does not say which of them it used
SCRIPTS = {"cora": "first-order", "citeseer": "gcn-residual", "pubmed": "gcn-residual"}  # normalisations of DropEdge's
STRATEGIES = ("cutoff", "division", "cdf")
