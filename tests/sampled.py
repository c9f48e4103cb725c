"""Trainings by mini-batches, alone and in processes that start with few imports."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from tadropedge.data.synthetic import load_clusters
from tadropedge.neighbours.plan import MiniBatches
from tadropedge.training.batch import Course
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.laboratory import Laboratory, make_task
from tadropedge.training.mini_batches import SampledTraining
from tadropedge.training.ranks import Ranks

# Network, method, and nodes per step, of 15 in all: of three, one of four processes gets none.
KINDS = [("gcn", "dropedge", 8), ("gat", "cdf:unbiased", 6), ("sage", "degree-proportional", 4)]


@cache
def clusters():
    """More nodes than a network of three layers sees from a few of them."""
    return load_clusters(clusters=3, nodes=60)


def prepared(name, method, *, per_layer=False, epochs=3, data=None, layers=3, **settings):
    """Task, architecture, trial and course of a training with all kinds of noise."""
    data = data or clusters()
    laboratory = Laboratory(data, Architecture(name, layers, 8), epochs, per_layer=per_layer)
    method = "original" if name == "mlp" else method
    extra = {"attention_dropout": 0.3, "heads": 2} if name == "gat" else {}
    trial = Trial.of(method, keep_prob=0.6, seed=5, dropout=0.4, **extra, **settings)
    task = make_task(data, [laboratory.split(0)], laboratory._needed([trial]))
    return task, laboratory.architecture, trial, Course(epochs=epochs, per_layer=per_layer)


def curves(name, method, size, ranks=None):
    """The losses of twenty epochs, ``[2, 20]``."""
    training = SampledTraining(
        *prepared(name, method, epochs=20, layers=2),
        plan=MiniBatches(size=size, fanout=(4, 3), evaluate=50),
        ranks=ranks or Ranks(),
    )
    outcome = training.run()
    return np.stack((outcome.train_loss, outcome.val_loss))


def take_part(rank, folder):
    """A process that trains among four, then among two, and writes the losses where the test finds them."""
    torch.set_num_threads(1)
    for count in (4, 2):
        if rank < count:
            place = f"file://{folder}/meet{count}"
            torch.distributed.init_process_group("gloo", init_method=place, rank=rank, world_size=count)
            ranks = Ranks(rank, count)
            np.save(f"{folder}/{count}-{rank}.npy", np.stack([curves(*kind, ranks) for kind in KINDS]))
            torch.distributed.destroy_process_group()
