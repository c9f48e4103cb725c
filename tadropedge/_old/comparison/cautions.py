"""What a reader should know before believing a comparison: what validation preferred, what had not converged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tadropedge._old.comparison.results import MethodRow, Protocol, labelled
from tadropedge._old.publish.wording import counted, listed, method_words, percent

HARDLY = 0.95  # of the edges: who keeps more drops next to nothing
FALLING = 0.25  # of the runs: from here on a method counts as not converged; by chance alone it would be one in twenty


def cautions(rows: Sequence[MethodRow], protocol: Protocol | None = None) -> list[str]:
    """Why to be careful with the rows of a group, a sentence each."""
    named = {label: row for label, row in labelled(rows).items() if row.least_share is None}
    said = [
        *([] if protocol is not None and protocol.keep_ratio is not None else _hardly_dropping(named)),
        *_same_trial(named, protocol),
        *_falling(named, protocol),
        *_unseen(named),
        *([] if protocol is None else _splits(protocol)),
    ]
    tests = [(label, test) for label, row in named.items() for test in row.tests.values()]
    several = any(len(row.tests) > 1 for row in rows)
    for label, test in tests:
        front = f"{label} against {method_words(test.reference)}" if several else label
        said += [f"{front}: {words}" for words in (test.evidence.warnings if test.evidence else ())]
    return said


def _hardly_dropping(named: Mapping[str, MethodRow]) -> list[str]:
    """Methods whose chosen settings keep nearly all edges: they are not dropping, whatever their name."""
    shares = {label: row.settings.get("kept_share") for label, row in named.items() if row.against}
    hardly = [
        f"{label} keeps {percent(share, 1)} %"
        for label, share in shares.items()
        if isinstance(share, float) and share > HARDLY
    ]
    if not hardly:
        return []
    return [f"Validation chose to drop hardly any edges: {listed(hardly)} of them, so there is little to tell apart."]


def _same_trial(named: Mapping[str, MethodRow], protocol: Protocol | None) -> list[str]:
    trials = {row.trial for row in named.values() if row.trial is not None}
    if len(trials) != 1 or len(named) < 2 or (protocol is not None and protocol.trials < 2):
        return []
    return [
        f"Validation chose the same trial (number {trials.pop()}) for all {len(named)} methods: the settings of the "
        "network decided, not the dropping."
    ]


def _falling(named: Mapping[str, MethodRow], protocol: Protocol | None) -> list[str]:
    """Methods and references whose validation loss was still falling when training ended."""
    falling = {}
    for label, row in named.items():
        falling[label] = (row.unconverged, row.honest)
        falling |= {test.reference: (test.unconverged, test) for test in row.against.values()}
    found = [
        f"{method_words(name)} ({many} of {judged.seeds + judged.failed} runs)"
        for name, (many, judged) in falling.items()
        if many is not None and judged is not None and many > FALLING * (judged.seeds + judged.failed)
    ]
    if not found:
        return []
    more = "" if protocol is None else f": take more than {protocol.epochs} (--epochs)"
    return [f"Validation loss was still falling in the last 5 % of the epochs of {listed(found)}{more}."]


def _unseen(named: Mapping[str, MethodRow]) -> list[str]:
    """Collapses that the replicates of methods that are called better cannot exclude."""
    better = {
        label: test.evidence.collapse_rate
        for label, row in named.items()
        for test in row.against.values()
        if test.outcome == "better" and test.evidence
    }
    if not better:
        return []
    return [
        f"What was not seen may still happen: the replicates of {listed(better)} cannot exclude a collapse in up to "
        f"{percent(max(better.values()), 0)} % of runs."
    ]


def _splits(protocol: Protocol) -> list[str]:
    said = [] if protocol.disjoint else [protocol.shared]
    if protocol.judge_splits < protocol.seeds:
        said.append(
            f"The {protocol.seeds} replicates share {counted(protocol.judge_splits, 'split')}, all that the file has "
            "left to judge: the intervals speak of no others."
        )
    return said
