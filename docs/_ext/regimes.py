"""Which edge dropping to use: the directive ``which-dropping``, made of ``results/regimes/results.json``.

````markdown
```{which-dropping}
```
````

A table of situations, the picture of the map and one sentence per question. Nothing here is written by hand: without
the file there is nothing to say, and the build fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from tadropedge.publish.tables import markdown
from tadropedge.publish.wording import NOTHING, counted, points
from tadropedge.regimes.goals import LEAST, spectral, width_words
from tadropedge.regimes.report import AGAINST, opening
from tadropedge.regimes.results import RegimeMap, read_map
from tadropedge.regimes.statements import statements
from tadropedge.regimes.summary import (
    MapChoice,
    capital,
    choice,
    condition_words,
    conditions,
    datasets,
    findings,
)

FOLDER = "results/regimes"
COLUMNS = ("your situation", "use", "surely better in", "median gain (points)")
FENCE = "`" * 3


def rows(found: RegimeMap) -> Iterator[tuple[str, ...]]:
    """One row per situation that has an answer, and one for all where no method is better than not dropping."""
    without: list[str] = []
    cells = 0
    for condition in conditions(found):
        made, words = choice(found, condition), condition_words(*condition)
        if made.method is None and made.reference == "none":
            without.append(words)
            cells += made.record.cells
        else:
            yield capital(words), used(made), recorded(made), points(made.record.median)
    if without:
        yield capital("; ".join(without)), "no dropping", f"0 of {counted(cells, 'cell')}, any method", NOTHING


def used(made: MapChoice) -> str:
    """The method to use, with the doubt it deserves.

    >>> from tadropedge.regimes.summary import MethodRecord
    >>> record = MethodRecord(better=1, undecided=9)
    >>> used(MapChoice(condition=("depth", 8), method="dropedge", reference="none", record=record))
    'perhaps `dropedge`'
    """
    if made.method is None:
        return "`dropedge`: no score is better"
    return f"`{made.method}`" if made.often else f"perhaps `{made.method}`"


def recorded(made: MapChoice) -> str:
    """In how many cells a method is better, and than what if it is not not dropping."""
    told = made.record
    against = "" if made.reference == "none" else f", than {AGAINST[made.reference]}"
    worse = f"; worse in {told.worse}" if told.worse else ""
    return f"{told.better} of {told.cells} datasets{against}{worse}"


def few(found: RegimeMap) -> str:
    """What a reader must know of a map of a few datasets."""
    title = found.recipe.get("title", "A small map")
    return (
        f"**{title}.** It shows what a map looks like and says little about other graphs: `tadropedge regimes --preset "
        "full` measures one of many, and `tadropedge compare` measures yours."
    )


def page(found: RegimeMap, folder: str) -> str:
    """The page as Markdown; ``folder`` is the address of the results in the repository."""
    every = findings(found)
    lines = [
        *([] if len(datasets(found)) >= LEAST else [few(found), ""]),
        opening(found),
        "",
        *markdown(COLUMNS, rows(found), left=(0, 1, 2)),
        "",
        f"A row speaks of {counted(len(datasets(found)), 'dataset')} at once: one method, in how many of them it is "
        "surely better than not dropping, and its median difference over all of them. “Perhaps”: on less than half of "
        "them. It was chosen by the cells that it is judged by.",
        "",
        f"![The best method of every dataset under every condition, and its gain](../{FOLDER}/figures/map.png)",
        "",
        f"{FENCE}{{dropdown}} What was found, question by question",
        *(f"* **{capital(one.name)}.** {one.words}" for one in statements(found)),
        f"* **Spectral or degree?** {spectral(every).words}",
        f"* **How sure?** {width_words(every)}",
        FENCE,
        "",
        f"Every number, and the way to its trials: [{FOLDER}]({folder}).",
    ]
    return "\n".join(lines)


class WhichDropping(SphinxDirective):
    """The advice of the map of regimes."""

    def run(self) -> list[nodes.Node]:
        """Make the page; without a measured map that is an error."""
        file = Path(self.env.srcdir).parent / FOLDER / "results.json"
        if not file.is_file():
            raise self.error(
                f"{FOLDER}/results.json is missing, from which this page is made: "
                f"measure it with `tadropedge regimes --preset full --out {FOLDER}`"
            )
        self.env.note_dependency(str(file))
        address = f"{self.config.repository_url}/tree/{self.config.repository_branch}/{FOLDER}"
        return self.parse_text_to_nodes(page(read_map(file), address))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("which-dropping", WhichDropping)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
