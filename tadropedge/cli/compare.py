"""``tadropedge compare``: which way of dropping edges pays on a graph, if any."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from tadropedge.cli.options import Count, DataOptions, FileOptions, NetworkOptions, RunOptions, Words, typed
from tadropedge.cli.output import Display, columns, command_line, keeps, note, show
from tadropedge.errors import TadropedgeError

if TYPE_CHECKING:
    from tadropedge.lab.search.protocol import Search
    from tadropedge.lab.search.timing import Estimate

Points = Annotated[float, Parameter(validator=Number(gt=0, lte=100))]


def compare(
    data: str,
    /,
    *,
    methods: Words = (),
    trials: Count | None = None,
    replicates: Annotated[Count, Parameter(validator=Number(gte=2))] | None = None,
    time_budget: timedelta | None = None,
    half_width: Points | None = None,
    margin: Points = 1.0,
    controls: Literal["claims", "all", "none"] = "claims",
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
    out: Path | None = None,
    networks: NetworkOptions = NetworkOptions(),
    nodes: DataOptions = DataOptions(),
    files: FileOptions = FileOptions(),
    running: RunOptions = RunOptions(),
) -> None:
    """Does dropping, weighing or pruning edges help on this data? Ends with what to do, and how sure that is.

    Every method is searched alike on every split; validation chooses, test judges. Finished trainings are kept: after
    an interruption the same command goes on.

    Args:
        data: The name of a dataset (see tadropedge datasets), or a file with features and labels.
        methods: What is compared with original, such as dropedge,cdf,gat+dropedge@0.5 (see tadropedge methods); a few
            that suit the data unless said.
        trials: Trials of every search: 16 unless said, 8 with --model.
        replicates: Splits, each with its own search: 20 unless said.
        time_budget: Begin no further replicate after this time, such as 10m; with --model 30m unless said.
        half_width: Stop when every interval is this narrow, in points.
        margin: What counts as no difference, in points.
        controls: Which methods are held against the controls of their claim: claims are those that beat original.
        engine: Who trains: this process, or the workers of Ray.
        address: The address of a Ray cluster; without it Ray is started here.
        out: The folder of trials, results and page: comparison-DATA unless said.
    """
    running.begin()
    networks.check()
    from tadropedge.lab.comparison.claims import candidates_of

    try:
        candidates_of(methods)  # refused before anything is read
    except TadropedgeError as error:
        raise TadropedgeError(str(error), argument="methods") from error

    from tadropedge.cli.reading import read_dataset
    from tadropedge.lab.comparison.compare import OWN_MODEL
    from tadropedge.lab.comparison.compare import compare as compared
    from tadropedge.lab.comparison.page import text
    from tadropedge.lab.search.executors import opened
    from tadropedge.lab.search.protocol import Search, default_rungs
    from tadropedge.lab.training.trial import TrainingSettings

    device, model = running.found_device(), networks.load()
    search = replace(Search() if model is None else OWN_MODEL, seed=running.seed)
    given: dict[str, Any] = {"trials": trials, "replicates": replicates}
    given["time_budget"] = None if time_budget is None else time_budget.total_seconds()
    given["half_width"] = None if half_width is None else half_width / 100
    search = replace(search, **{name: value for name, value in given.items() if value is not None})
    rungs = () if model is not None else default_rungs(networks.epochs)
    dataset = read_dataset(data, files, nodes, running.seed)
    folder = out or Path(f"comparison-{dataset.name}")
    with redirect_stdout(sys.stderr), opened(engine, address) as executor, Display(running.json) as display:
        keeps(folder)
        found = compared(
            dataset, methods or None, model=model, search=search, controls=controls, margin=margin / 100, out=folder,
            executor=executor, watch=_Watch(display, search), network=networks.network or "gcn",
            layers=networks.layers, hidden=networks.hidden, device=device,
            training=TrainingSettings(epochs=networks.epochs, measure=networks.measure, rungs=rungs),
            score_settings={} if networks.q is None else {"q": networks.q},
        )  # fmt: skip
    options = typed(nodes, files, running, leave=("json", "device"))
    found = found.labelled(command=command_line(), source=data, options=options)
    found.save(folder)
    note(f"written to {folder}")  # what is printed ends with the answer
    show(found.as_dict(), running.json, [text(found, columns())])


class _Watch:
    """Shows the progress of a search, and says beforehand how long it will take."""

    def __init__(self, display: Display, search: Search) -> None:
        self.plan, self.trained, self.epoch = display.plan, display.trained, display.epoch
        self._search, self._told = search, 0

    def estimate(self, found: Estimate) -> None:
        """How much there is to do."""
        from tadropedge.lab.reports.text import seconds

        limit = self._search.time_budget
        until = "" if limit is None else f", of which at most {seconds(limit)} are used"
        note(f"{found.trainings:,} trainings, about {seconds(found.seconds)}{until}")

    def replicate(self, found: Mapping[str, Sequence[Any]]) -> None:
        """First figures, at 2, 4, 8 … replicates: nothing is decided by them."""
        count = min(map(len, found.values()), default=0)
        if count < max(2, 2 * self._told):
            return
        self._told = count
        means = {name: 100 * sum(one.test for one in some) / len(some) for name, some in found.items()}
        told = ", ".join(f"{name} {mean:.1f}" for name, mean in means.items())
        note(f"so far, {count} of {self._search.replicates} replicates (test, %): {told}")
