"""What every dataset of ``DATASETS`` must do: checked fields, a split that fits them, the same for the same seed."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from conftest import data_root, need_data

from tadropedge import TadropedgeError
from tadropedge.data import DATASETS, load_dataset

cached = cache(lambda name, seed, options: load_dataset(name, root=data_root(), seed=seed, **dict(options)))


def parts(dataset):
    """Everything that a seed could decide, as tensors."""
    features = dataset.features.to_dense() if dataset.features.layout is torch.sparse_csr else dataset.features
    split = dict(dataset.split.parts())
    return {"pairs": dataset.graph.pairs, "features": features, "labels": dataset.labels, **split}


class DatasetContract:
    """Subclass it with the name of the dataset and what its seed decides.

    ``options`` are given to the loader; ``random`` names what another seed changes (``pairs``, ``features``,
    ``labels``, ``train``); ``covers``: whether the split holds every labelled node or sample; ``folder`` is where the
    files of the dataset must be; ``bad`` maps messages to options that are refused with them.
    """

    name: str
    level = "node"
    options: dict = {}
    random: set = set()
    covers = False
    folder = ""
    bad: dict = {}

    @pytest.fixture(autouse=True)
    def present(self):
        if self.folder:
            need_data(data_root() / self.folder)

    def load(self, seed=0):
        return cached(self.name, seed, tuple(self.options.items()))

    def test_its_fields(self):
        data = self.load()
        assert (data.name, data.level) == (self.name, self.level)
        assert data.backbone == {"node": "gcn", "graph": "gcnn"}[self.level]
        assert data.features.dtype == torch.float32
        assert data.features.shape[-2:] == (data.graph.num_nodes, data.num_features)
        assert data.labels.unique()[-data.num_classes :].tolist() == list(range(data.num_classes))
        assert data.class_names is None or len(data.class_names) == data.num_classes

    def test_parts_of_the_split_are_disjoint_labelled_and_train_every_class(self):
        data = self.load()
        everything = torch.cat([part for _, part in data.split.parts()])
        assert len(everything.unique()) == len(everything) == sum(data.split.sizes)
        assert bool((data.labels[everything] >= 0).all())
        assert data.labels[data.split.train].unique().tolist() == list(range(data.num_classes))
        assert (len(everything) == int((data.labels >= 0).sum())) == self.covers

    def test_the_seed_decides_what_is_random_and_nothing_else_does(self):
        state = torch.get_rng_state()
        one, other = self.load(), self.load(seed=1)
        same = load_dataset(self.name, root=data_root(), seed=0, **self.options)
        assert torch.equal(state, torch.get_rng_state())
        assert one.graph.fingerprint == same.graph.fingerprint
        changed = set()
        for (name, mine), again, theirs in zip(
            parts(one).items(), parts(same).values(), parts(other).values(), strict=True
        ):
            assert torch.equal(mine, again)
            changed |= set() if torch.equal(mine, theirs) else {name}
        assert changed >= self.random
        assert bool(changed) == bool(self.random)

    def test_on_every_device(self, device):
        moved = self.load().to(device)
        for name, value in parts(moved).items():
            assert value.device.type == device.type
            assert torch.equal(value.cpu(), parts(self.load())[name])

    def test_options_that_are_refused(self):
        with pytest.raises(TadropedgeError, match=f"unknown option of {self.name} 'colour'; choose from "):
            load_dataset(self.name, root=data_root(), colour="red")
        if self.random:
            for seed in (-1, 0.5):
                with pytest.raises(TadropedgeError, match=f"seed must be a whole number of at least 0, got {seed}"):
                    load_dataset(self.name, root=data_root(), seed=seed, **self.options)
        for message, options in self.bad.items():
            with pytest.raises(TadropedgeError, match=message):
                load_dataset(self.name, root=data_root(), **{**self.options, **options})

    def test_it_is_found_by_its_name_in_any_case(self):
        assert self.name in DATASETS
        shouted = load_dataset(self.name.upper(), root=data_root(), **self.options)
        assert shouted.graph.fingerprint == self.load().graph.fingerprint
