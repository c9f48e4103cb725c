"""The options that several commands share, and the laboratory they ask for."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from tadropedge.checks import check_integer, name_or_path
from tadropedge.errors import TadropedgeError, lookup, show
from tadropedge.method import grammar
from tadropedge.registry import DATASETS, MEASURES, NETWORKS

if TYPE_CHECKING:
    from tadropedge.training.laboratory import Laboratory

METHODS = grammar()


def load_plugins(modules: list[str] | None) -> list[str] | None:
    """Import the user's modules, also from the current folder, for what they add to the registries."""
    if modules and (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    for module in modules or ():
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:
            raise TadropedgeError(f"cannot import the plugin {module!r} ({type(error).__name__}: {error})") from error
    return modules


LARGEST = 2**31 - 1  # of any count
PLUGIN = "import your own module first, for what it adds to a registry such as SCORES or DATASETS; repeatable"
Plugin_ = Annotated[list[str] | None, Option(metavar="MODULE", callback=load_plugins, is_eager=True, help=PLUGIN)]
KeepProb_ = Annotated[float, Option(help="the paper's p: probability of KEEPING an edge")]
Gamma_ = Annotated[float | None, Option(help="threshold (default: the knee of the scores)")]
Seed_ = Annotated[int, Option(help="random seed")]
Device_ = Annotated[str, Option(help="auto, cpu or cuda")]
Root_ = Annotated[Path | None, Option(help="folder with the datasets (or TADROPEDGE_DATA)")]
Out_ = Annotated[Path, Option(help="folder for the results")]
Wait_ = Annotated[bool, Option("--wait", help="wait while another process uses the folder")]
Json_ = Annotated[bool, Option("--json", help="print results as JSON and nothing else")]


@dataclass(frozen=True, kw_only=True)
class LaboratoryOptions:
    """What ``compare`` and ``train`` share: a dataset, a network, a device, and how to train."""

    dataset: Annotated[str, Argument(help=f"one of {', '.join(DATASETS)}, or the path of your own data")]
    backbone: Annotated[str | None, Option(help=f"{', '.join(NETWORKS)} (default: gcn, or gcnn for graphs)")] = None
    layers: Annotated[int | None, Option(help="graph convolutions (default 2; 1 for gcnn)")] = None
    hidden: Annotated[int | None, Option(help="width (default 128; 32 for gcnn)")] = None
    epochs: Annotated[int, Option(help="epochs of every training")] = 400
    laplacian: Annotated[str, Option(help="combinatorial or normalized")] = "combinatorial"
    q: Annotated[int | None, Option("--q", help="clusters per component (default: the number of classes)")] = None
    split: Annotated[str | None, Option(help="full, public or random, where the dataset offers them")] = None
    per_class: Annotated[int | None, Option(help="labels per class of a random split")] = None
    split_sizes: Annotated[
        str | None, Option(metavar="TRAIN,VAL,TEST", help="draw splits of these sizes (of nodes) instead")
    ] = None
    measure: Annotated[
        str | None,
        Option(help=f"{', '.join(MEASURES)} (default: accuracy, or roc-auc for two classes of very different sizes)"),
    ] = None
    noise: Annotated[str | None, Option(help="source-localization only: calibrated, stated or a number")] = None
    nodes: Annotated[Path | None, Option(help="csv of features and labels beside your own edge list")] = None
    evaluate_every: Annotated[int, Option(help="epochs from one evaluation to the next")] = 1
    per_layer: Annotated[bool, Option("--per-layer", help="a new subgraph for every layer")] = False
    selection: Annotated[str, Option(help="which validation loss selects the model: evaluation or training")] = (
        "evaluation"
    )
    precision: Annotated[str, Option(help="of matrix products: highest, or high (TF32 on a GPU)")] = "highest"
    seed: Seed_ = 0
    device: Device_ = "auto"
    data_root: Root_ = None
    plugin: Plugin_ = None

    def __post_init__(self) -> None:
        # Before torch is loaded.
        name_or_path("dataset", self.dataset, DATASETS)
        if self.backbone is not None:
            lookup("backbone", self.backbone, dict.fromkeys(NETWORKS))
        for name in ("layers", "hidden", "epochs", "q", "per_class", "evaluate_every"):
            check_count(name, getattr(self, name))
        if self.measure is not None:
            lookup("measure", self.measure, dict.fromkeys(MEASURES))
        if self.sizes is not None and (self.split is not None or self.per_class is not None):
            other = "--split" if self.split is not None else "--per-class"
            raise TadropedgeError(f"--split-sizes and {other} exclude each other: each is a way to draw splits")

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
        named: dict[str, Any] = {"per_class": self.per_class, "noise": self.noise, "nodes": self.nodes}
        named["split_sizes"] = self.sizes
        with suppress(TypeError, ValueError):
            named["noise"] = float(self.noise)  # type: ignore[arg-type]
        return {key: value for key, value in named.items() if value is not None}

    def laboratory(self, choose_splits: int | None = None) -> Laboratory:
        """The dataset on its device, with the network and the measure it needs where none is named."""
        from tadropedge.data import load_dataset
        from tadropedge.spectrum.plan import LAPLACIANS
        from tadropedge.training.config import SELECTIONS, Architecture
        from tadropedge.training.laboratory import PRECISIONS, Laboratory
        from tadropedge.training.measures import default_measure

        device = chosen_device(self.device)
        lookup("laplacian", self.laplacian, LAPLACIANS)
        lookup("selection", self.selection, SELECTIONS)
        lookup("precision", self.precision, PRECISIONS)
        data = load_dataset(self.dataset, self.data_root, self.split, self.seed, **self.data_options).to(device)
        backbone = self.backbone or data.backbone
        layers, hidden = (1, 32) if backbone == "gcnn" else (2, 128)
        layers = layers if self.layers is None else self.layers
        architecture = Architecture(backbone, layers, hidden if self.hidden is None else self.hidden)
        settings = ("epochs", "laplacian", "q", "per_layer", "selection", "precision", "evaluate_every")
        return Laboratory(
            data,
            architecture,
            measure=default_measure(data) if self.measure is None else self.measure,
            choose_splits=choose_splits,
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


def output_folder(out: Path, *targets: str, wait: bool) -> AbstractContextManager[None]:
    """The folder of the results, for this process alone and checked before any work: ``tadropedge.lock.locked``."""
    from tadropedge.lock import locked

    return locked(out, *targets, wait=wait, say=partial(print, file=sys.stderr, flush=True))


def check_count(name: str, value: int | None, least: int = 1) -> None:
    """Refuse what is no number of things that a computer can hold; ``None`` stands for a default."""
    if value is not None:
        check_integer(name, value, least=least, most=LARGEST)


def chosen_device(device: str) -> str:
    """``auto`` is a GPU where there is one; a device that is not here is refused."""
    import torch

    here = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
    if device not in ("auto", *here):
        raise TadropedgeError(f"device {device!r} is not available; choose from auto, {', '.join(here)}")
    return here[-1] if device == "auto" else device
