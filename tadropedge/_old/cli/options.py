"""The options that several commands share, and the laboratory they ask for."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from tadropedge._old.checks import PYG, check_integer, check_number, name_or_path, settle
from tadropedge._old.errors import TadropedgeError, lookup, show
from tadropedge._old.registry import DATASETS, MEASURES, NETWORKS

if TYPE_CHECKING:
    from tadropedge._old.search.engines import Engine
    from tadropedge._old.training.laboratory import Laboratory

METHODS = (
    "original, dropedge, cdf, degree-proportional, jaccard-cdf:unbiased, graphsage+cdf and many more: "
    "tadropedge methods lists them"
)
GRAPH_FILES = (
    "pyg:CLASS/NAME (tadropedge datasets lists them), or your own file: an edge list (csv, tsv, txt, also .gz), .npz, "
    ".pt, .mtx, .graphml, .gml, or a folder of OGB"
)
COLUMN = "a column of your own file as the score 'column': its name, or its number from 3 on in a file without header"


def load_plugins(modules: list[str] | None) -> list[str] | None:
    """Import the user's modules, also from the current folder, for what they add to the registries."""
    if modules and (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    for module in modules or ():
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:
            raise TadropedgeError(
                f"--plugin: cannot import the plugin {module!r} ({type(error).__name__}: {error})"
            ) from error
    return modules


def load_model_factory(told: str) -> str:
    """Import ``package.module:factory``, also from the current folder; the name of the network it becomes."""
    module, colon, attribute = told.partition(":")
    if not (module and colon and attribute):
        shown = show(told, typed=False)
        raise TadropedgeError(f"--model must be MODULE:FACTORY, such as my_models:make_gcn, got {shown}")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        factory = importlib.import_module(module)
        for part in attribute.split("."):
            factory = getattr(factory, part)
    except (Exception, SystemExit) as error:
        raise TadropedgeError(f"cannot import the model {told!r} ({type(error).__name__}: {error})") from error
    from tadropedge._old.nn.own import own_network

    return own_network(factory, told)  # type: ignore[arg-type]


ENGINES = ("local", "ray")
NO_RAY = "--engine ray needs the package ray, which is not installed: pip install 'tadropedge[ray]'"
MOST_ADDED = 1e6  # written out, because that of conditions.py loads torch
LARGEST = 2**31 - 1  # of any count
PLUGIN = "import your own module first, for what it adds to a registry such as SCORES or DATASETS; repeatable"
DATA = f"one of {', '.join(DATASETS)}, or {GRAPH_FILES}"
MODEL = "your own nn.Module instead of a backbone; also from the current folder"
LAPLACIANS = "[combinatorial|normalized]"
Plugin_ = Annotated[list[str] | None, Option(metavar="MODULE", callback=load_plugins, is_eager=True, help=PLUGIN)]
Model_ = Annotated[str | None, Option(metavar="MODULE:FACTORY", help=MODEL)]
KeepProb_ = Annotated[
    float | None,
    Option(metavar="P", help="the paper's p: probability of KEEPING an edge (default 0.7)", show_default=False),
]
KeepRatio_ = Annotated[
    float | None, Option(metavar="SHARE", help="expected share of kept edges, instead of --keep-prob")
]
ScoreColumn_ = Annotated[str | None, Option(metavar="NAME", help=COLUMN)]
Gamma_ = Annotated[float | None, Option(metavar="X", help="threshold of the scores (default: their knee)")]
Seed_ = Annotated[int, Option(metavar="N", help="random seed")]
Device_ = Annotated[str, Option(metavar="[auto|cpu|cuda]", help="where to compute; auto is a GPU where there is one")]
Root_ = Annotated[Path | None, Option(metavar="DIR", help="folder with the datasets (or TADROPEDGE_DATA)")]
Nodes_ = Annotated[Path | None, Option(metavar="FILE", help="csv of features and labels beside a graph without any")]
Noise_ = Annotated[str | None, Option(metavar="[calibrated|stated|X]", help="of the signals; source-localization only")]
AddEdges_ = Annotated[
    float | None, Option(metavar="SHARE", help="add random edges: this share of the graph's own (default 0)")
]
HideFeatures_ = Annotated[
    float | None, Option(metavar="SHARE", help="hide the features of this share of the nodes (default 0)")
]
Out_ = Annotated[Path, Option(metavar="DIR", help="folder for the results")]
Wait_ = Annotated[bool, Option("--wait", help="wait while another process uses the folder")]
Engine_ = Annotated[
    str, Option(metavar="[local|ray]", help="who trains: this process, or the workers of a Ray cluster")
]
Address_ = Annotated[
    str | None,
    Option(metavar="[auto|HOST]", help="of the Ray cluster; auto: this machine's own (default: Ray is started here)"),
]
GpusPerBatch_ = Annotated[
    float | None, Option(metavar="X", help="share of a GPU per batch on Ray (default: 1, or 0 where there are none)")
]
Batch_ = Annotated[
    int | None, Option(metavar="N", help="trainings per batch (default: as many as fit; on Ray at most 32)")
]
Deadline_ = Annotated[
    float | None, Option(metavar="S", help="seconds without an epoch after which Ray tries a batch again (default 600)")
]
Json_ = Annotated[bool, Option("--json", help="print results as JSON and nothing else")]


def noise_of(told: str | None) -> str | float | None:
    """The noise by its name, or a number.

    >>> noise_of("stated"), noise_of("0.5")
    ('stated', 0.5)
    """
    with suppress(TypeError, ValueError):
        return float(told)  # type: ignore[arg-type]
    return told


@dataclass(frozen=True, kw_only=True)
class LaboratoryOptions:
    """What ``compare`` and ``train`` share: a dataset, a network, a device, and how to train."""

    dataset: Annotated[str, Argument(metavar="DATA", help=DATA, show_default=False)]
    backbone: Annotated[
        str | None, Option(metavar="NAME", help=f"{', '.join(NETWORKS)} (default: gcn, or gcnn for graphs)")
    ] = None
    model: Model_ = None
    layers: Annotated[int | None, Option(metavar="N", help="graph convolutions (default 2; 1 for gcnn)")] = None
    hidden: Annotated[int | None, Option(metavar="N", help="width (default 128; 32 for gcnn)")] = None
    epochs: Annotated[int, Option(metavar="N", help="epochs of every training")] = 400
    laplacian: Annotated[str, Option(metavar=LAPLACIANS, help="whose modes aggregate resistance is made of")] = (
        "combinatorial"
    )
    q: Annotated[
        int | None, Option("--q", metavar="N", help="clusters per component (default: the number of classes)")
    ] = None
    split: Annotated[
        str | None, Option(metavar="[full|public|random]", help="kind of split, where the dataset offers them")
    ] = None
    per_class: Annotated[
        str | None, Option(metavar="[N|full]", help="labels per class to train on; full: 60 % of all labels")
    ] = None
    split_sizes: Annotated[
        str | None, Option(metavar="TRAIN,VAL,TEST", help="draw splits of these sizes (of nodes) instead")
    ] = None
    measure: Annotated[
        str | None,
        Option(
            metavar=f"[{'|'.join(MEASURES)}]",
            help="what methods are judged by (default: accuracy, or roc-auc for two classes of very different sizes)",
        ),
    ] = None
    add_edges: AddEdges_ = None
    hide_features: HideFeatures_ = None
    noise: Noise_ = None
    nodes: Nodes_ = None
    score_column: ScoreColumn_ = None
    evaluate_every: Annotated[int, Option(metavar="N", help="epochs from one evaluation to the next")] = 1
    per_layer: Annotated[bool, Option("--per-layer", help="a new subgraph for every layer")] = False
    selection: Annotated[
        str, Option(metavar="[evaluation|training]", help="the pass whose validation loss selects the model")
    ] = "evaluation"
    precision: Annotated[str, Option(metavar="[highest|high]", help="of matrix products; high is TF32 on a GPU")] = (
        "highest"
    )
    seed: Seed_ = 0
    device: Device_ = "auto"
    data_root: Root_ = None
    plugin: Plugin_ = None

    def __post_init__(self) -> None:
        # Before torch is loaded.
        name_or_path("dataset", self.dataset, DATASETS)
        if self.backbone is not None:
            lookup("backbone", self.backbone, dict.fromkeys(NETWORKS))
        for name in ("layers", "hidden", "epochs", "q", "evaluate_every"):
            check_count(name, getattr(self, name))
        check_count("per_class", self.labels if isinstance(self.labels, int) else None)
        check_conditions(self.add_edges, self.hide_features)
        if self.measure is not None:
            lookup("measure", self.measure, dict.fromkeys(MEASURES))
        check_own_column(self.score_column, self.dataset)
        if self.sizes is not None and (self.split is not None or self.per_class is not None):
            other = "--split" if self.split is not None else "--per-class"
            raise TadropedgeError(f"--split-sizes and {other} exclude each other: each is a way to draw splits")
        if self.model is not None:  # last: it imports torch and the user's own module
            if self.backbone is not None:
                raise TadropedgeError("--model and --backbone exclude each other: each is the network that is trained")
            settle(self, backbone=load_model_factory(self.model))

    @property
    def labels(self) -> int | str | None:
        """The labels of ``--per-class``: a number, or ``full``."""
        told = self.per_class
        if told is None or told == "full":
            return told
        if not (told.removeprefix("-").isascii() and told.removeprefix("-").isdigit()):
            shown = show(told, typed=False)
            raise TadropedgeError(f"--per-class must be a whole number of at least 1, or 'full', got {shown}")
        return int(told)

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """The sizes of ``--split-sizes``."""
        if self.split_sizes is None:
            return None
        cells = [cell.strip() for cell in self.split_sizes.split(",")]
        if len(cells) != 3 or not all(cell.isascii() and cell.isdigit() for cell in cells):
            raise TadropedgeError(
                f"--split-sizes must be three whole numbers TRAIN,VAL,TEST such as 140,500,1000, "
                f"got {show(self.split_sizes, typed=False)}"
            )
        for cell in cells:
            check_count("each of --split-sizes", int(cell))
        return tuple(int(cell) for cell in cells)

    @property
    def data_options(self) -> dict[str, Any]:
        """What was asked of the loader; a number may stand for the name of a noise."""
        named: dict[str, Any] = {"per_class": self.labels, "noise": noise_of(self.noise), "nodes": self.nodes}
        named["score_column"] = self.score_column
        named["split_sizes"] = self.sizes
        return {key: value for key, value in named.items() if value is not None}

    @property
    def told(self) -> str:
        """The dataset as it was named, with its conditions."""
        from tadropedge._old.data import Conditions

        return self.dataset + Conditions(self.add_edges or 0.0, self.hide_features or 0.0, self.seed).words

    @property
    def again(self) -> str:
        """The words that name the same data on another command line: the conditions, with the seed that drew them."""
        shares = {"--add-edges": self.add_edges, "--hide-features": self.hide_features}
        words = [f"{flag} {share:g}" for flag, share in shares.items() if share]
        return " ".join([self.dataset, *words, *([f"--seed {self.seed}"] if words and self.seed else [])])

    def laboratory(self, choose_splits: int | None = None, gradient_norms: bool = False) -> Laboratory:
        """The dataset on its device, with the network and the measure it needs where none is named."""
        from tadropedge._old.data import Conditions, conditioned, load_dataset
        from tadropedge._old.spectrum.plan import LAPLACIANS
        from tadropedge._old.training.config import SELECTIONS
        from tadropedge._old.training.laboratory import PRECISIONS, laboratory_for

        device = chosen_device(self.device)
        lookup("laplacian", self.laplacian, LAPLACIANS)
        lookup("selection", self.selection, SELECTIONS)
        lookup("precision", self.precision, PRECISIONS)
        conditions = Conditions(self.add_edges or 0.0, self.hide_features or 0.0, self.seed)
        loaded = load_dataset(self.dataset, self.data_root, self.split, self.seed, **self.data_options)
        data = conditioned(loaded, conditions).to(device)
        settings = ("epochs", "laplacian", "q", "per_layer", "selection", "precision", "evaluate_every", "measure")
        return laboratory_for(
            data,
            self.backbone,
            self.layers,
            self.hidden,
            choose_splits=choose_splits,
            gradient_norms=gradient_norms,
            **{name: getattr(self, name) for name in settings},
        )


def with_laboratory_options(command: Callable[..., None]) -> Callable[..., None]:
    """Show typer the fields of the parameter ``options: LaboratoryOptions`` of ``command`` as options of their own."""
    own, shared = (inspect.signature(call, eval_str=True).parameters for call in (command, LaboratoryOptions))

    @wraps(command)
    def gathered(**given: Any) -> None:
        command(options=LaboratoryOptions(**{name: given.pop(name) for name in shared}), **given)

    merged = [each for name in own for each in (shared.values() if name == "options" else [own[name]])]
    gathered.__signature__ = inspect.Signature(merged)  # type: ignore[attr-defined]
    gathered.__annotations__ = {each.name: each.annotation for each in merged}
    return gathered


def check_own_column(column: str | None, dataset: str) -> None:
    """Refuse ``--score-column`` for a dataset that is no file."""
    if column is not None and (dataset in DATASETS or dataset.startswith(PYG)):
        raise TadropedgeError(
            f"--score-column names a column of your own file, and {dataset} is a dataset without any, got {column!r}"
        )


def check_conditions(add_edges: float | None, hide_features: float | None) -> None:
    """Refuse what is no share, before torch is loaded."""
    check_number("add_edges", add_edges or 0.0, 0, MOST_ADDED)
    check_number("hide_features", hide_features or 0.0, 0, 1)


def check_score(score: str | None, column: str | None) -> None:
    """Refuse the score ``column`` without ``--score-column``."""
    if score == "column" and column is None:
        raise TadropedgeError("the score 'column' needs --score-column NAME")


def chosen_budget(keep_prob: float | None, keep_ratio: float | None, default: float = 0.7) -> dict[str, float]:
    """``--keep-prob`` or ``--keep-ratio``, of which only one may be given."""
    if keep_prob is not None and keep_ratio is not None:
        raise TadropedgeError(
            f"--keep-prob and --keep-ratio exclude each other, got {keep_prob:g} and {keep_ratio:g}: the first is the "
            "probability of keeping an edge, the second the expected share of kept edges"
        )
    if keep_ratio is not None:
        return {"keep_ratio": check_number("keep_ratio", keep_ratio, 0, 1)}
    return {"keep_prob": check_number("keep_prob", default if keep_prob is None else keep_prob, 0, 1)}


def output_folder(out: Path, *targets: str, wait: bool) -> AbstractContextManager[None]:
    """The folder of the results, for this process alone and checked before any work: ``tadropedge._old.lock.locked``."""
    from tadropedge._old.lock import locked

    return locked(out, *targets, wait=wait, say=partial(print, file=sys.stderr, flush=True))


def check_count(name: str, value: int | None, least: int = 1) -> None:
    """Refuse what is no number of things that a computer can hold; ``None`` stands for a default."""
    if value is not None:
        check_integer(name, value, least=least, most=LARGEST)


def chosen_engine(
    engine: str,
    address: str | None,
    gpus_per_batch: float | None,
    batch: int | None,
    deadline: float | None,
    device: str,
) -> Engine:
    """Who trains, by ``--engine`` and its settings; on ``--device cpu`` workers use no GPU either."""
    lookup("engine", engine, dict.fromkeys(ENGINES))
    check_count("batch", batch)
    given = {"--address": address, "--gpus-per-batch": gpus_per_batch, "--deadline": deadline}
    if engine != "ray":
        for flag, value in given.items():
            if value is not None:
                raise TadropedgeError(f"{flag} belongs to --engine ray, got {flag} {value} with --engine {engine}")
        from tadropedge._old.search.engines import Local

        return Local(batch)
    if importlib.util.find_spec("ray") is None:
        raise TadropedgeError(NO_RAY)
    from tadropedge._old.search.ray_engine import RayEngine

    gpus = 0.0 if gpus_per_batch is None and device == "cpu" else gpus_per_batch
    return RayEngine(address, gpus, batch=batch, deadline=600.0 if deadline is None else deadline)


def chosen_device(device: str) -> str:
    """``auto`` is a GPU where there is one; a device that is not here is refused."""
    import torch

    here = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
    if device not in ("auto", *here):
        raise TadropedgeError(f"device {device!r} is not available; choose from auto, {', '.join(here)}")
    return here[-1] if device == "auto" else device
