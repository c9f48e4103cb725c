"""Fixed settings on fresh seeds: every strategy at every p, beside DropEdge at the same p and at the same budget.

This is the experiment behind ``convergence``, ``accuracy-vs-p`` and ``inverse``. At the same p a strategy drops fewer
edges than DropEdge. So beside DropEdge at p stands DropEdge with the expected kept share of the strategy: what is left
of a difference there is topology.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import optuna

from tadropedge._old.paper.item import Bench
from tadropedge._old.paper.judge import Array, BothBudgets, Gap, gaps, where_it_holds
from tadropedge._old.paper.trainings import Work, commits, digest, laboratory, largest_batch
from tadropedge._old.publish.wording import plus_minus
from tadropedge._old.search.engine import Job, run_jobs
from tadropedge._old.search.protocol import reference, replicate
from tadropedge._old.search.space import Space
from tadropedge._old.search.study import Finished, Ledger
from tadropedge._old.training.config import Trial
from tadropedge._old.training.laboratory import Laboratory


@dataclass(frozen=True, kw_only=True)
class FixedSetting:
    """A method at one p on one dataset with one Laplacian, and the share of edges that it keeps."""

    dataset: str
    laplacian: str
    method: str
    keep_prob: float
    kept_share: float


@dataclass(frozen=True)
class Trained:
    """The trainings of one setting, replicate by replicate; a strategy has those of both kinds of DropEdge."""

    setting: FixedSetting
    runs: Sequence[Finished]
    same_p: Sequence[Finished] = ()
    same_budget: Sequence[Finished] = ()

    @property
    def commit(self) -> str | None:
        """The commits of all these trainings."""
        return commits([*self.runs, *self.same_p, *self.same_budget])


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
            seeds, fixed = (recipe[name][dataset] if several else recipe[name] for name in ("seeds", "trial"))
            for laplacian in recipe["laplacians"]:
                work.journal.start()
                here = laboratory(work.bench, data, recipe["backbone"], laplacian)
                bases, shares = {}, {}
                for p in self.keep_probs:
                    for method in ("dropedge", *self.strategies):
                        base = Trial.of(method, **fixed, keep_prob=p)
                        shares[method, p] = share = here.kept_share(base)
                        bases[self.label.format(method=method, p=p)] = base
                        if method != "dropedge":
                            label = self.reference_label.format(method=method, p=p)
                            bases[label] = reference(base, round(share, 6))
                part = f"{dataset}/{laplacian}" if several else laplacian
                found = self._train(work, here, storage, part, bases, seeds)
                yield [
                    Trained(
                        FixedSetting(
                            dataset=dataset,
                            laplacian=laplacian,
                            method=method,
                            keep_prob=float(p),
                            kept_share=round(share, 4),
                        ),
                        found[self.label.format(method=method, p=p)],
                        [] if method == "dropedge" else found[self.label.format(method="dropedge", p=p)],
                        found.get(self.reference_label.format(method=method, p=p), []),
                    )
                    for (method, p), share in shares.items()
                ]

    def _train(
        self,
        work: Work,
        here: Laboratory,
        storage: optuna.storages.BaseStorage,
        part: str,
        bases: Mapping[str, Trial],
        seeds: int,
    ) -> dict[str, list[Finished]]:
        """The finished trainings by name, replicate by replicate; what the storage holds is not run again."""
        seed = work.bench.seed
        settings = {"seed": seed, **here.settings}
        splits = range(1, seeds + 1) if self.fresh_splits else [0] * seeds
        jobs: dict[str, list[Job]] = {}
        for label, base in bases.items():
            # Every setting of the network is named, so that the place of the trainings says them all.
            base = base.but(**here.architecture.settings_of(base))
            space = Space.of({name: [value] for name, value in base.flat().items() if name != "keep_ratio"})
            own = {**settings, "keep_ratio": base.keep_ratio, "curves": self.curves}
            name = f"{here.laplacian}/{label}/{digest(own, space.table(), seed)}"
            ledger = Ledger(storage, name, base.method, space, own)
            jobs[label] = [Job(ledger, s, replicate(base, seed, s, split)) for s, split in enumerate(splits)]
        together = [job for group in zip(*jobs.values(), strict=True) for job in group]
        progress = work.timed(part, "training")
        run_jobs(here.train, together, batch=largest_batch(here), progress=progress, curves=self.curves)
        work.finish()
        return {label: [job.ledger.finished[job.index] for job in mine] for label, mine in jobs.items()}


def against(
    group: Sequence[Trained], measure: Callable[[Sequence[Finished]], Array]
) -> dict[FixedSetting, BothBudgets]:
    """The differences of what is measured ``[S]`` to both kinds of DropEdge, each kind corrected together."""
    strategies = [one for one in group if one.same_budget]
    ours = {one.setting: measure(one.runs) for one in strategies}
    same_p = gaps({one.setting: (ours[one.setting], measure(one.same_p)) for one in strategies})
    same_budget = gaps({one.setting: (ours[one.setting], measure(one.same_budget)) for one in strategies})
    return {setting: BothBudgets(same_p=same_p[setting], same_budget=same_budget[setting]) for setting in ours}


def held(found: Mapping[str, Mapping[str, bool]]) -> bool | str:
    """Where a claim holds, case by case with each Laplacian: the paper does not say which it used, so one is enough.

    >>> held({"combinatorial": {"Cora": True}, "normalized": {"Cora": False}})
    True
    >>> held({"combinatorial": {"Cora": True, "PubMed": False}, "normalized": {"Cora": False, "PubMed": False}})
    'Cora (combinatorial)'
    """
    if any(all(cases.values()) for cases in found.values()):
        return True
    every = {f"{case} ({name})": holds for name, cases in found.items() for case, holds in cases.items()}
    return where_it_holds(every)


def extremes(found: Sequence[Gap], shown: Callable[[Gap], str]) -> str:
    """The smallest and the largest of some differences, as they are ``shown``.

    >>> extremes([Gap(difference=2.0), Gap(difference=-1.0), Gap()], lambda gap: f"{gap.difference:g}")
    'from -1 to 2'
    """
    known = sorted((gap for gap in found if gap.difference is not None), key=lambda gap: gap.difference or 0.0)
    return f"from {shown(known[0])} to {shown(known[-1])}" if known else "undecided"


def in_points(gap: Gap) -> str:
    """A difference of accuracies in points, always with its sign, and half the width of its interval."""
    if gap.difference is None:
        return "undecided"
    return plus_minus(f"{100 * gap.difference:+.2f}".replace("-", "−"), gap.low, gap.high)
