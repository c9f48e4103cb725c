"""Fixed settings on fresh seeds: every strategy at every p, beside DropEdge at the same p and at the same budget.

This is the experiment behind ``convergence``, ``accuracy-vs-p`` and ``inverse``. At the same p a strategy drops fewer
edges than DropEdge. So beside DropEdge at p stands DropEdge with the expected kept share of the strategy: what is left
of a difference there is topology.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tadropedge.paper.item import Bench
from tadropedge.paper.trainings import Repeats, Work, laboratory
from tadropedge.search.study import Finished
from tadropedge.training.config import Trial


@dataclass(frozen=True, kw_only=True)
class Trained:
    """The trainings of one method at one p, replicate by replicate; a strategy has those of both kinds of DropEdge."""

    dataset: str
    laplacian: str
    method: str
    keep_prob: float
    kept_share: float
    runs: Sequence[Finished]
    same_p: Sequence[Finished] = ()
    same_budget: Sequence[Finished] = ()


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """Which methods are trained, at which p, and what their studies are called."""

    strategies: Sequence[str]
    keep_probs: Sequence[float]
    label: str = "{method}/{p:g}"
    reference_label: str = "reference/{method}/{p:g}"
    fresh_splits: bool = True
    curves: bool = False

    def work(self, bench: Bench) -> Work:
        """All the trainings that a recipe plans."""
        recipe = bench.recipe
        each = (1 + 2 * len(self.strategies)) * len(self.keep_probs) * len(recipe["laplacians"])
        seeds = recipe["seeds"]
        return Work(
            bench, each * (seeds if isinstance(seeds, int) else sum(seeds[name] for name in recipe["datasets"]))
        )

    def run(self, work: Work) -> Iterator[list[Trained]]:
        """What is trained on one dataset with one Laplacian after the other, p by p."""
        recipe = work.bench.recipe
        several = "datasets" in recipe.settings  # then each has seeds, settings and a storage of its own
        for dataset in recipe["datasets"] if several else [recipe["dataset"]]:
            data, storage = work.bench.dataset(dataset), work.bench.storage(dataset if several else "")
            for laplacian in recipe["laplacians"]:
                work.journal.start()
                repeats = Repeats(
                    laboratory=laboratory(work.bench, data, recipe["backbone"], laplacian),
                    place=laplacian,
                    seeds=recipe["seeds"][dataset] if several else recipe["seeds"],
                    fresh_splits=self.fresh_splits,
                    curves=self.curves,
                )
                settings = recipe["trial"][dataset] if several else recipe["trial"]
                shares = {}
                for p in self.keep_probs:
                    for method in ("dropedge", *self.strategies):
                        base = Trial.of(method, **settings, keep_prob=p)
                        shares[method, p] = repeats.add(self.label.format(method=method, p=p), base)
                        if method != "dropedge":
                            repeats.add_reference(self.reference_label.format(method=method, p=p), base)
                found = repeats.run(work, storage, f"{dataset}/{laplacian}" if several else laplacian)
                yield [
                    Trained(
                        dataset=dataset,
                        laplacian=laplacian,
                        method=method,
                        keep_prob=float(p),
                        kept_share=round(share, 4),
                        runs=found[self.label.format(method=method, p=p)],
                        same_p=[] if method == "dropedge" else found[self.label.format(method="dropedge", p=p)],
                        same_budget=found.get(self.reference_label.format(method=method, p=p), []),
                    )
                    for (method, p), share in shares.items()
                ]
