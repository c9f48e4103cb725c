"""The command line: compare, train, report."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tadropedge.compare.comparison import DEFAULT_METHODS, Plan, Report, compare, run_info, write_all
from tadropedge.compare.report import write_report
from tadropedge.compare.results import as_document, read_results
from tadropedge.compare.rows import Results, grouped
from tadropedge.compare.terminal import table
from tadropedge.data import DATASETS, bayes_accuracy, load_dataset
from tadropedge.errors import TadropedgeError
from tadropedge.training.config import METHODS, Architecture, Method, Trial
from tadropedge.training.laboratory import Laboratory
from tadropedge.training.model_file import save_model

SECONDS_BETWEEN_LINES = 5.0
app = typer.Typer(
    help="Topology adaptive edge dropping: which edges to drop, and whether it helps on your graph.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Dataset_ = Annotated[str, typer.Argument(help=f"one of {', '.join(DATASETS)}, or the path of your own data")]
Backbone_ = Annotated[
    str | None, typer.Option("--backbone", help="gcn, jknet, incepgcn, gcnn; default: what the data needs")
]
Layers_ = Annotated[int | None, typer.Option("--layers", help="graph convolutions (default 2; 1 for gcnn)")]
Hidden_ = Annotated[int | None, typer.Option("--hidden", help="width (default 128; 32 for gcnn)")]
Epochs_ = Annotated[int, typer.Option("--epochs", help="epochs of every training")]
Laplacian_ = Annotated[str, typer.Option("--laplacian", help="combinatorial or normalized")]
Q_ = Annotated[int | None, typer.Option("--q", help="clusters a component (default: the number of classes)")]
Split_ = Annotated[str | None, typer.Option("--split", help="full, public or random, where the dataset offers them")]
PerClass_ = Annotated[int | None, typer.Option("--per-class", help="labels a class of a random split")]
Noise_ = Annotated[str | None, typer.Option("--noise", help="of source-localization: calibrated, stated or a number")]
Nodes_ = Annotated[Path | None, typer.Option("--nodes", help="csv of features and labels beside your own edge list")]
Seed_ = Annotated[int, typer.Option("--seed", help="everything random follows from it")]
Device_ = Annotated[str, typer.Option("--device", help="auto, cpu or cuda")]
Root_ = Annotated[Path | None, typer.Option("--data-root", help="folder with the datasets (or TADROPEDGE_DATA)")]
Out_ = Annotated[Path, typer.Option("--out", help="folder for the results")]
Json_ = Annotated[bool, typer.Option("--json", help="print results as JSON and nothing else")]
PerLayer_ = Annotated[bool, typer.Option("--per-layer", help="a new subgraph for every layer")]
Selection_ = Annotated[str, typer.Option("--selection", help="kept model by validation loss in: evaluation, training")]


@app.command("compare")
def compare_command(
    dataset: Dataset_,
    methods: Annotated[str, typer.Option("--methods", help=f"from {', '.join(METHODS)}")] = ",".join(DEFAULT_METHODS),
    backbone: Backbone_ = None,
    layers: Layers_ = None,
    hidden: Hidden_ = None,
    trials: Annotated[int, typer.Option("--trials", help="search trials a method")] = 100,
    seeds: Annotated[int, typer.Option("--seeds", help="fresh seeds and splits a method")] = 20,
    epochs: Epochs_ = 400,
    laplacian: Laplacian_ = "combinatorial",
    q: Q_ = None,
    split: Split_ = None,
    per_class: PerClass_ = None,
    noise: Noise_ = None,
    nodes: Nodes_ = None,
    per_layer: PerLayer_ = False,
    selection: Selection_ = "evaluation",
    seed: Seed_ = 0,
    device: Device_ = "auto",
    data_root: Root_ = None,
    storage: Annotated[str | None, typer.Option("--storage", help="Optuna storage URL (default: OUT/study.db)")] = None,
    out: Out_ = Path("comparison"),
    as_json: Json_ = False,
) -> None:
    """Which edge dropping helps on this graph? Trains every method and says so, with numbers to trust.

    Killed at any moment, the same command goes on where it stopped.

    Example: tadropedge compare cora --methods original,dropedge,cdf --trials 20 --seeds 10 --out cora-gcn
    """
    started = time.monotonic()
    plan = Plan([Method.of(name.strip()).name for name in methods.split(",")], trials, seeds, seed)
    laboratory = _laboratory(
        dataset, split, data_root, seed, device, backbone, layers, hidden,
        options=_data_options(per_class, noise, nodes),
        epochs=epochs, laplacian=laplacian, q=q, per_layer=per_layer, selection=selection,
    )  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    try:
        with _progress(as_json) as report:
            rows = compare(laboratory, plan, storage or out / "study.db", report)
    except KeyboardInterrupt:
        again = shlex.join(["tadropedge", *sys.argv[1:]])
        print(f"\nstopped; finished trials are kept. Go on with: {again}", file=sys.stderr)
        raise typer.Exit(130) from None
    run = run_info(started, shlex.join(["tadropedge", *sys.argv[1:]]), laboratory)
    run |= _bound(dataset, seed, _data_options(per_class, noise, nodes))
    page = write_all(rows, run, out)
    _show(Results(rows, run), as_json)
    if not as_json:
        if "bayes_accuracy" in run:
            print(f"Bayes-optimal accuracy on this graph: {run['bayes_accuracy']:.2%}")
        print(f"report: {page}")


@app.command("train")
def train_command(
    dataset: Dataset_,
    method: Annotated[str, typer.Option("--method", help=f"one of {', '.join(METHODS)}")] = "cdf",
    keep_prob: Annotated[
        float, typer.Option("--keep-prob", help="the paper's p: probability of KEEPING an edge")
    ] = 0.7,
    gamma: Annotated[float | None, typer.Option("--gamma", help="threshold (default: the knee of the weights)")] = None,
    learning_rate: Annotated[float, typer.Option("--learning-rate")] = 0.01,
    weight_decay: Annotated[float, typer.Option("--weight-decay")] = 5e-4,
    dropout: Annotated[float, typer.Option("--dropout")] = 0.5,
    normalization: Annotated[str, typer.Option("--normalization", help="of the shift operator")] = "gcn",
    self_weight: Annotated[bool, typer.Option("--self-weight")] = False,
    batch_norm: Annotated[bool, typer.Option("--batch-norm")] = False,
    backbone: Backbone_ = None,
    layers: Layers_ = None,
    hidden: Hidden_ = None,
    epochs: Epochs_ = 400,
    laplacian: Laplacian_ = "combinatorial",
    q: Q_ = None,
    split: Split_ = None,
    per_class: PerClass_ = None,
    noise: Noise_ = None,
    nodes: Nodes_ = None,
    per_layer: PerLayer_ = False,
    selection: Selection_ = "evaluation",
    seed: Seed_ = 0,
    device: Device_ = "auto",
    data_root: Root_ = None,
    out: Annotated[Path | None, typer.Option("--out", help="folder for the best model (safetensors and JSON)")] = None,
    as_json: Json_ = False,
) -> None:
    """Train one model, print what it reached, and save the best of it.

    Example: tadropedge train cora --method cdf --keep-prob 0.7 --layers 3 --out cora-model
    """
    trial = Trial(
        method, learning_rate, weight_decay, dropout, keep_prob, None, gamma,
        normalization, self_weight, batch_norm, seed,
    )  # fmt: skip
    laboratory = _laboratory(
        dataset, split, data_root, seed, device, backbone, layers, hidden,
        options=_data_options(per_class, noise, nodes),
        epochs=epochs, laplacian=laplacian, q=q, per_layer=per_layer, selection=selection,
    )  # fmt: skip
    with _progress(as_json) as report:
        laboratory.progress = lambda done, total: report("training", done, total)
        outcome = laboratory.train([trial], keep_state=out is not None)[0]
    if outcome.failed:
        raise TadropedgeError(f"the loss was not finite; try a smaller learning rate than {learning_rate:g}")
    if out is not None:
        data = laboratory.dataset
        save_model(
            out, outcome, laboratory.architecture, data.name, data.num_features, data.num_classes,
            num_nodes=data.graph.num_nodes, class_names=data.class_names,
        )  # fmt: skip
    answer = {"dataset": dataset, "method": method, "best_epoch": outcome.best_epoch, **outcome.kept}
    print(json.dumps(answer) if as_json else "\n".join(f"{key}: {value}" for key, value in answer.items()))


@app.command("report")
def report_command(
    folder: Annotated[Path, typer.Argument(help="folder with a results.json")], as_json: Json_ = False
) -> None:
    """Write the report of a finished comparison again.

    Example: tadropedge report cora-gcn
    """
    results = read_results(folder / "results.json")
    page = write_report(results, folder / "report.html")
    _show(results, as_json)
    if not as_json:
        print(f"report: {page}")


def _laboratory(
    dataset: str,
    split: str | None,
    root: Path | None,
    seed: int,
    device: str,
    backbone: str | None,
    layers: int | None,
    hidden: int | None,
    *,
    options: dict[str, Any],
    **settings: Any,
) -> Laboratory:
    """The dataset on its device, with the backbone it needs where none is named."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device not in ("cpu", "cuda") or (device == "cuda" and not torch.cuda.is_available()):
        raise TadropedgeError(
            f"device {device!r} is not here; choose from auto, cpu{', cuda' if torch.cuda.is_available() else ''}"
        )
    data = load_dataset(dataset, root=root, split=split, seed=seed, **options).to(device)
    backbone = backbone or data.backbone
    small = backbone == "gcnn"
    architecture = Architecture(backbone, layers or (1 if small else 2), hidden or (32 if small else 128))
    return Laboratory(data, architecture, **settings)


def _data_options(per_class: int | None, noise: str | None, nodes: Path | None) -> dict[str, Any]:
    """What was asked of the loader; a number may stand for the name of a noise."""
    named: dict[str, Any] = {"per_class": per_class, "noise": noise, "nodes": nodes}
    if noise is not None:
        with suppress(ValueError):
            named["noise"] = float(noise)
    return {key: value for key, value in named.items() if value is not None}


def _bound(dataset: str, seed: int, options: dict[str, Any]) -> dict[str, object]:
    """The accuracy that no classifier can beat, where it is known."""
    if dataset.lower() != "source-localization":
        return {}
    return {"bayes_accuracy": round(bayes_accuracy(seed, **options), 4)}


def _show(results: Results, as_json: bool) -> None:
    if as_json:
        print(json.dumps(as_document(results)))
        return
    for group in grouped(results.rows):
        Console().print(table(group))


@contextmanager
def _progress(quiet: bool) -> Iterator[Report]:
    """A live display with the time left on a terminal, a line now and then elsewhere, nothing with ``--json``."""
    if quiet:
        yield lambda phase, done, total: None
        return
    if not sys.stderr.isatty():
        yield _plain_log()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=Console(stderr=True)) as display:
        tasks: dict[str, Any] = {}

        def shown(phase: str, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = display.add_task(phase, total=total)
            display.update(tasks[phase], completed=done, total=total)

        yield shown


def _plain_log() -> Report:
    last = [0.0]
    begun: dict[str, tuple[float, int]] = {}

    def line(phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        start, before = begun.setdefault(phase, (now, done))
        if done < total and now - last[0] < SECONDS_BETWEEN_LINES:
            return
        last[0] = now
        speed = (done - before) / max(now - start, 1e-9)
        left = f", about {(total - done) / speed:.0f} s left" if speed > 0 and done < total else ""
        print(f"{phase}: {done} of {total}{left}", file=sys.stderr, flush=True)

    return line


def run() -> None:
    """Run the command line; bad input is one line and exit code 2."""
    try:
        app()
    except (TadropedgeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
