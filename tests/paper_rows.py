"""Rows of Tables 1 and 2 by hand: only what a test speaks of has to be named."""

from __future__ import annotations

import numpy as np

from tadropedge.comparison.results import PaperProtocol
from tadropedge.comparison.statistics import honest_rows
from tadropedge.paper.cells import Result
from tadropedge.paper.contest import Contender, Contest
from tadropedge.paper.judge import summary
from tadropedge.paper.trainings import Fresh

SPLITS = 0.8 + 0.02 * np.sin(np.arange(12.0))  # what all methods share in a replicate
NOISE = 0.001 * np.cos(3.0 * np.arange(12.0))  # and what they do not: its mean is 0.00003


def result(method, *, best=0.88, printed=0.88, fresh=SPLITS, reference=None, laplacian=None, network="gcn-2", **more):
    """A row of Table 1."""
    backbone, _, layers = network.partition("-")
    accuracy, references = {method: fresh}, {} if reference is None else {method: reference}
    return Result(
        dataset=more.pop("dataset", "cora"),
        backbone=backbone,
        layers=int(layers),
        method=method,
        laplacian=laplacian,
        printed=printed,
        paper_protocol=PaperProtocol(best, 100),
        above_printed=None if printed is None else round(best - printed, 6),
        honest=honest_rows(accuracy, references)[method],
        null=more.pop("null", None),
        fresh=Fresh(0.8, tuple(fresh), 1000),
        reference_accuracies=None if reference is None else tuple(reference),
        settings={},
        **more,
    )


def contender(name, *, fresh=None, accuracy=0.9, printed=0.9, dataset="cora", choice=None):
    """A row of Table 2; without fresh accuracies it has no mean."""
    choice = choice or Contest("cdf", 2, "combinatorial")
    return Contender(
        row=name,
        dataset=dataset,
        source="measured",
        printed=printed,
        accuracy=accuracy,
        honest=summary(np.array([] if fresh is None else fresh)),
        choice=choice,
        honest_choice=choice,
        fresh=Fresh(0.8, None if fresh is None else tuple(fresh), 1000),
        looks=100,
    )
