"""The three example graphs of the supplement: aggregate resistance and clusters."""

from __future__ import annotations

from tadropedge._old.paper.clustered import Contrast, clustered, kept_contrast, spectrum
from tadropedge._old.paper.figures import graphs
from tadropedge._old.paper.item import Bench, Item
from tadropedge._old.paper.items.fig1 import scores_verdict, words
from tadropedge._old.paper.journal import Journal
from tadropedge._old.paper.judge import judged
from tadropedge._old.publish.wording import listed

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
        claim = "scores" if place < recipe["drawn"] else "scores elsewhere"  # of what the paper draws none
        verdicts.append(scores_verdict(mine, recipe, claim, words=words(setting)))
    said = {name: listed(recipe.published[name]) for name in ("text", "caption")}
    verdicts.append(judged(recipe, "clusters", None, **said))
    return Item(rows, verdicts, {"examples": graphs.scores(pictures)}, recipe.said(), run=journal.run)
