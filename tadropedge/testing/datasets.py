"""What every dataset of ``tadropedge.lab.DATASETS`` must do: fields that fit, splits by number, one seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tadropedge import TadropedgeError
from tadropedge.lab.data.dataset import Dataset
from tadropedge.lab.data.load import load
from tadropedge.lab.registry import DATASETS


class DatasetContract:
    """Subclass it with the ``dataset``, a name or a function, its ``options``, and what a seed decides.

    ``random`` names that: of ``pairs``, ``features``, ``labels``, ``train``. For instance::

        class TestSquare(DatasetContract):
            dataset = staticmethod(square)
            random = {"train"}
    """

    dataset: str | Callable[..., Any]
    options: dict[str, Any] = {}
    random: set[str] = {"train"}

    @pytest.fixture(autouse=True)
    def _known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        if not isinstance(self.dataset, str):
            monkeypatch.setitem(DATASETS, "of-this-test", self.dataset)

    @property
    def name(self) -> str:
        """What it is called in ``DATASETS``."""
        return self.dataset if isinstance(self.dataset, str) else "of-this-test"

    def load(self, seed: int = 0, **more: Any) -> Dataset:
        """The dataset as its users load it."""
        return load(self.name, seed=seed, **{**self.options, **more})

    def parts(self, data: Dataset) -> dict[str, Tensor]:
        """All that a seed could decide."""
        features = data.features.to_dense()
        return {"pairs": data.graph.pairs, "features": features, "labels": data.labels, "train": data.split(0).train}

    def test_its_fields_fit_together(self) -> None:
        data = self.load()
        assert data.features.dtype == torch.float32
        assert data.features.shape == (data.graph.num_nodes, data.num_features)
        assert set(data.labels.tolist()) - {-1} == set(range(data.num_classes))
        assert data.class_names is None or len(data.class_names) == data.num_classes

    def test_its_splits_are_disjoint_and_train_every_class(self) -> None:
        data = self.load()
        for number in (0, 1, 7):
            split = data.split(number)
            everything = torch.cat([part for _, part in split.parts()])
            assert len(everything.unique()) == len(everything)
            assert bool((data.labels[everything] >= 0).all())
            assert data.labels[split.train].unique().tolist() == list(range(data.num_classes))

    def test_a_split_is_a_pure_function_of_its_number(self) -> None:
        data = self.load()
        later, first = data.split(3), data.split(0)
        assert [part.tolist() for _, part in later.parts()] == [part.tolist() for _, part in data.split(3).parts()]
        assert first.train.tolist() == self.load().split(0).train.tolist()
        assert later.train.tolist() != first.train.tolist() or data.num_splits is not None

    def test_a_seed_decides_what_is_random_and_nothing_else_does(self) -> None:
        state = torch.get_rng_state()
        one, again, other = self.load(), self.load(), self.load(seed=1)
        assert torch.equal(state, torch.get_rng_state())
        assert one.fingerprint() == again.fingerprint()
        mine, same, theirs = self.parts(one), self.parts(again), self.parts(other)
        assert all(torch.equal(value, same[name]) for name, value in mine.items())
        assert {name for name, value in mine.items() if not torch.equal(value, theirs[name])} == self.random

    def test_options_that_it_has_not_are_named(self) -> None:
        with pytest.raises(TadropedgeError, match="colour"):
            self.load(colour="red")

    def test_it_is_found_in_any_letters(self) -> None:
        shouted = load(self.name.upper(), **self.options)
        assert shouted.fingerprint() == self.load().fingerprint()
