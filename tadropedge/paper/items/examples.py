"""The three example graphs of the supplement: aggregate resistance and clusters."""

from __future__ import annotations

from tadropedge.paper.clustered import Contrast, clustered, kept_contrast, spectrum
from tadropedge.paper.figures import graphs
from tadropedge.paper.item import Bench, Item
from tadropedge.paper.items.fig1 import scores_verdict, words
from tadropedge.paper.journal import Journal
from tadropedge.paper.judge import judged
from tadropedge.publish.wording import listed

ROWS = (Contrast,)


def run(bench: Bench) -> Item:
    """Draw the three graphs, and rank the edges of many like them."""
    recipe, journal = bench.recipe, Journal(bench)
    settings = recipe["examples"]
    total = len(settings) * recipe["graphs"]
    rows: list[Contrast] = []
    verdicts, pictures = [], []
    for place, setting in enumerate(settings):
        mine = []
        for number in range(recipe["graphs"]):
            bench.report("graphs", place * recipe["graphs"] + number, total)
            made = clustered(setting, bench.seed + number)
            mine.append(kept_contrast(journal, words(setting), number, made, made.q + 3, clusters=made.q))
            if number == 0 and place < recipe["drawn"]:
                pictures.append((made, spectrum(made)))
        rows += mine
        verdicts.append(scores_verdict(mine, recipe, words=words(setting)))
    said = {name: listed(recipe.published[name]) for name in ("text", "caption")}
    verdicts.append(judged(recipe, "clusters", None, **said))
    return Item(rows, verdicts, {"examples": graphs.scores(pictures)}, recipe.said(), run=journal.run)
