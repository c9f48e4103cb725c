"""``cite``: what to cite for a method, exactly its parts. The entries stand in ``references.bib``."""

from __future__ import annotations

import re
from pathlib import Path

from tadropedge.dropping import Dropping, called
from tadropedge.lab.candidate import Candidate

FILE = Path(__file__).parents[1] / "references.bib"
ENTRY = r"^(?=@\w+\{(\w+),)(.*?^\}\n)"  # its key, and all of it
PAPER, DROPEDGE, MLP_FIRST = "gao2021training", "rong2020dropedge", "han2023mlpinit"

# Of scores, rules, uses, options, ways of training and networks; what is not here has no source but this package.
SOURCES: dict[str, tuple[str, ...]] = {
    "aggregate": (PAPER,),
    "effective": ("spielman2011graph",),
    "degree": ("lovasz1993random", "liu2023dspar"),
    "jaccard": ("wu2019adversarial",),
    "common-neighbours": ("ravasz2002hierarchical",),
    "forman": ("samal2018comparative", "fesser2023mitigating"),
    "cosine": ("zhang2020gnnguard",),
    "local-degree": ("hamann2016structure",),
    "local-similarity": ("satuluri2011local",),
    "pagerank": ("zhu2021graph",),
    "eigenvector": ("bonacich1972factoring", "zhu2021graph"),
    "dropsens": ("singh2025effects",),
    "cutoff": (PAPER,),
    "division": (PAPER,),
    "cdf": (PAPER,),
    "expected": ("srivastava2014dropout",),
    "connected": ("kruskal1956shortest",),
    "exact": ("ohlsson1998sequential",),
    "unbiased": ("horvitz1952generalization",),
    "consistent": ("feng2020graph", "krause2010discriminative"),
    "sharpen": ("feng2020graph", "krause2010discriminative"),
    "gcn": ("kipf2017semi",),
    "jknet": ("xu2018representation",),
    "incepgcn": (DROPEDGE,),
    "resgcn": ("li2019deepgcns",),
    "gcnii": ("chen2020simple",),
    "appnp": ("klicpera2019predict",),
    "gat": ("velickovic2018graph",),
    "sage": ("hamilton2017inductive",),
    "mlp": ("rumelhart1986learning",),
}


class BibTeX(str):
    """Entries, which a prompt and a notebook show as they are."""

    def __repr__(self) -> str:
        return str(self)


def cite(method: str | Dropping | Candidate) -> BibTeX:
    """The BibTeX of exactly the parts of a method: its score, rule, use, options, way of training and network.

    What drops edges at random cites DropEdge; the rules ``cutoff``, ``division`` and ``cdf`` and the score of a rule
    that names none cite the paper of TADropEdge. A part of your own is a comment: you know its source.

    >>> re.findall(r"@.*{(.*),", cite("effective-cdf:connected"))
    ['rong2020dropedge', 'spielman2011graph', 'gao2021training', 'kruskal1956shortest']
    >>> cite("gcn+original")
    @inproceedings{kipf2017semi,
      title = {Semi-Supervised Classification with Graph Convolutional Networks},
      author = {Kipf, Thomas N. and Welling, Max},
      booktitle = {International Conference on Learning Representations},
      year = {2017},
    }
    <BLANKLINE>
    """
    candidate = Candidate.parse(method)
    dropping = candidate.dropping
    keys = [DROPEDGE] if dropping.rule is not None and dropping.use in ("dropped", "expected") else []
    notes = []
    for part in (candidate.network, dropping.score, dropping.rule, dropping.use, *dropping.options, *candidate.ways):
        if part is not None and not isinstance(part, str):
            notes.append(f"% {called(part)}: a part of your own, whose source you know\n")
        keys += SOURCES.get(part, ()) if isinstance(part, str) else ()
    if dropping.keep_ratio == 0 and "finish" in candidate.ways:
        keys.append(MLP_FIRST)
    entries = dict(re.findall(ENTRY, FILE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
    return BibTeX("\n".join([*(entries[key] for key in dict.fromkeys(keys)), *notes]))
