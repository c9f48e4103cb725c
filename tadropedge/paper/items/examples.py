"""The three example graphs of the supplement: aggregate resistance and clusters."""

from __future__ import annotations

from tadropedge.paper.clustered import Contrast, clustered, contrast, spectrum
from tadropedge.paper.figures import graphs
from tadropedge.paper.item import IMPOSSIBLE, Bench, Item, Verdict
from tadropedge.paper.items.fig1 import scores_verdict, words
from tadropedge.publish.wording import listed

ROWS = (Contrast,)


def run(bench: Bench) -> Item:
    """Draw the three graphs, and rank the edges of many like them."""
    recipe = bench.recipe
    settings = recipe["examples"]
    total = len(settings) * recipe["graphs"]
    rows: list[Contrast] = []
    verdicts, pictures = [], []
    for place, setting in enumerate(settings):
        mine = []
        for number in range(recipe["graphs"]):
            bench.report("graphs", place * recipe["graphs"] + number, total)
            made = clustered(setting, bench.seed + number)
            found = spectrum(made)
            mine.append(contrast(number, made, found, shown=made.q + 3, clusters=made.q))
            if number == 0 and place < recipe["drawn"]:
                pictures.append((made, found))
        rows += mine
        verdicts.append(scores_verdict(mine, f"Weights identify the edges between clusters: {words(setting)}"))
    caption, text = recipe.published["caption"], recipe.published["text"]
    verdicts.append(
        Verdict(
            f"The example graphs have {listed(text)} clusters",
            IMPOSSIBLE,
            f"the text says {listed(text)}, the caption of the figure {listed(caption)}; drawn here as captioned",
        )
    )
    notes = [
        "The paper does not say how its graphs were made: these are connected block models with few links between.",
        "The last kind is the paper's own block model of source localisation, of which it draws none.",
    ]
    return Item(rows, verdicts, {"examples": graphs.scores(pictures)}, notes)
