"""What the help begins and ends with: a sentence on every command, and examples."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

EXAMPLES = {
    "compare": (
        "tadropedge compare cora --methods dropedge,cdf,auto --trials 20 --seeds 10",
        "tadropedge compare graph.csv --nodes nodes.csv --out my-comparison",
        "tadropedge compare cora --model my_models:make_gcn --methods dropedge,cdf",
    ),
    "train": (
        "tadropedge train cora --method cdf --keep-prob 0.7 --layers 3",
        "tadropedge train cora --method degree-proportional --keep-ratio 0.5 --out cora-model",
        "tadropedge train graph.csv --nodes nodes.csv --split-sizes 140,500,1000",
    ),
    "predict": (
        "tadropedge train cora --method cdf --out cora-model",
        "tadropedge predict cora-model cora --out predictions.csv",
        "tadropedge predict model graph.csv --nodes nodes.csv --model my_models:GCN",
    ),
    "weights": (
        "tadropedge weights cora --q 7 --out cora-weights",
        "tadropedge weights graph.csv --desired-clusters 10",
        "tadropedge weights graph.csv --score degree --no-figures --json",
    ),
    "sparsify": (
        "tadropedge sparsify cora --score effective --keep-ratio 0.5 --out sparse",
        "tadropedge sparsify graph.csv --keep-ratio 0.1 --no-certificate",
    ),
    "methods": (
        "tadropedge methods",
        "tadropedge methods --plugin my_scores",
    ),
    "datasets": (
        "tadropedge datasets",
        "tadropedge datasets --data-root data --json",
    ),
    "regimes": (
        "tadropedge regimes --preset quick --out regimes",
        "tadropedge regimes --preset full --device cuda --plan",
        "tadropedge regimes --recipe my-map.toml --out my-map",
    ),
    "report": ("tadropedge report cora-gcn",),
    "recover": ("tadropedge recover cora-gcn/study.db",),
    "reproduce": (
        "tadropedge reproduce table1 --preset quick --out reproduction",
        "tadropedge reproduce all --preset paper --device cuda",
    ),
    "doctor": (
        "tadropedge doctor",
        "tadropedge doctor --json",
    ),
}


def epilog(command: str) -> str:
    """The end of the help of a command; the sign for a backspace in front keeps its lines as they are.

    >>> epilog("report").splitlines()[1:]
    ['Example:', '  tadropedge report cora-gcn']
    """
    lines = EXAMPLES[command]
    return "\n  ".join([f"\b\nExample{'s' if len(lines) > 1 else ''}:", *lines])


def first_sentence(command: Callable[..., None]) -> str:
    """What a command is for, in the list of all of them, where a longer text would be cut off.

    >>> def command() -> None:
    ...     "Which edges? Those that matter."
    >>> first_sentence(command)
    'Which edges?'
    """
    return re.split(r"(?<=[.?])\s", inspect.getdoc(command) or "", maxsplit=1)[0].replace("\n", " ")
