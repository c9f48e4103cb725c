"""Raw files of a small graph in the layouts of PyTorch Geometric's datasets, for tests of whoever reads them."""

import json

import numpy as np
import scipy.sparse as sp

NODES, SPLITS = 12, 10
RANDOM = np.random.default_rng(3)
EDGES = np.array([(node, (node + step) % NODES) for node in range(NODES) for step in (1, 3)] + [(0, 0), (5, 4)])
LABELS = np.arange(NODES) % 3
WORDS = (RANDOM.random((NODES, 7)) < 0.4).astype(np.float32)  # a row of zeros would have no line in Actor's file
WORDS[:, 0] = 1
REAL = RANDOM.random((NODES, 5), dtype=np.float32)
PART = np.stack([np.roll(np.arange(NODES), place) // 4 for place in range(SPLITS)])  # [K, N]: 0, 1 and 2
MASKS = {name: np.equal(PART, number) for number, name in enumerate(("train", "val", "test"))}
PAIRS = sorted({(min(edge), max(edge)) for edge in EDGES.tolist() if edge[0] != edge[1]})
HOMOPHILY = sum(LABELS[one] == LABELS[other] for one, other in PAIRS) / len(PAIRS)


def adjacency():
    """The arcs as they are listed, in one direction, with a loop."""
    return sp.csr_matrix((np.ones(len(EDGES), dtype=np.float32), EDGES.T), shape=(NODES, NODES))


def parts(prefix, matrix):
    """A CSR matrix by its parts."""
    return {f"{prefix}_{part}": np.array(getattr(matrix, part)) for part in ("data", "indices", "indptr", "shape")}


def arrays(path):
    """CitationFull, Amazon, Coauthor; features of 3 are ones to PyTorch Geometric."""
    np.savez(path, **parts("adj", adjacency()), **parts("attr", sp.csr_matrix(3 * WORDS)), labels=LABELS)


def heterophilous(path):
    """HeterophilousGraphDataset, with ten splits as rows."""
    masks = {f"{name}_masks": mask for name, mask in MASKS.items()}
    np.savez(path, edges=EDGES[:-2], node_features=REAL, node_labels=LABELS, **masks)


def targets(path):
    """GitHub, Twitch and their like; both directions are listed."""
    np.savez(path, edges=np.concatenate((EDGES, EDGES[:, ::-1])), features=REAL, target=LABELS)


def splits(folder, name):
    """The ten files of masks of Geom-GCN."""
    for place in range(SPLITS):
        masks = {f"{part}_mask": mask[place].astype(np.uint8) for part, mask in MASKS.items()}
        np.savez(folder / f"{name}_split_0.6_0.2_{place}.npz", **masks)


def geom_gcn(path, name=None):
    """WebKB and WikipediaNetwork: a line of features per node."""
    lines = [f"{node}\t{','.join(map(str, WORDS[node].astype(int)))}\t{LABELS[node]}" for node in range(NODES)]
    text(path, lines)
    splits(path.parent, name or path.parts[-3] if path.parts[-3] != "geom_gcn" else path.parts[-4])


def actor(path):
    """Actor: the numbers of the words of each node."""
    lines = [f"{node}\t{','.join(map(str, WORDS[node].nonzero()[0]))}\t{LABELS[node]}" for node in range(NODES)]
    text(path, lines)
    splits(path.parent, "film")


def text(path, lines):
    """The two files of Geom-GCN, each with a line of names on top."""
    path.write_text("\n".join(["node_id\tfeature\tlabel", *lines, ""]))
    arcs = [f"{one}\t{other}" for one, other in EDGES]
    (path.parent / "out1_graph_edges.txt").write_text("\n".join(["node_id\tnode_id", *arcs, ""]))


def wiki_cs(path):
    """WikiCS: one JSON document; the test nodes of all splits are the same."""
    document = {
        "features": REAL.tolist(), "labels": LABELS.tolist(), "test_mask": (np.arange(NODES) >= 9).tolist(),
        "links": [[int(other) for one, other in EDGES if one == node] for node in range(NODES)],
        "train_masks": [[node // 3 == place for node in range(NODES)] for place in (0, 1)],
        "val_masks": [[node // 3 == 2 for node in range(NODES)] for _ in (0, 1)],
        "stopping_masks": [[False] * NODES] * 2,
    }  # fmt: skip
    path.write_text(json.dumps(document))


def saint(path):
    """Flickr and Reddit2."""
    np.savez(path, **{name.removeprefix("adj_"): part for name, part in parts("adj", adjacency()).items()})
    np.save(path.parent / "feats.npy", REAL)
    (path.parent / "class_map.json").write_text(json.dumps({str(node): int(LABELS[node]) for node in range(NODES)}))
    role = {"tr": [0, 1, 2, 3], "va": [4, 5], "te": [6, 7, 8]}
    (path.parent / "role.json").write_text(json.dumps(role))


def reddit(path):
    """Reddit: 1, 2 and 3 are the parts of its split."""
    sp.save_npz(path, adjacency().tocoo())
    np.savez(path.parent / "reddit_data.npz", feature=REAL, label=LABELS, node_types=np.arange(NODES) // 4 + 1)


def airports(path):
    """Airports: nodes have numbers of their own."""
    lines = [f"{100 + node} {LABELS[node]}" for node in range(NODES)]
    name = path.name.removesuffix(".edgelist")
    (path.parent / f"labels-{name}.txt").write_text("\n".join(["node label", *lines, ""]))
    path.write_text("".join(f"{100 + one} {100 + other}\n" for one, other in EDGES))


WRITERS = {
    "CitationFull": arrays, "Amazon": arrays, "Coauthor": arrays, "HeterophilousGraphDataset": heterophilous,
    "GitHub": targets, "FacebookPagePage": targets, "DeezerEurope": targets, "LastFMAsia": targets, "Twitch": targets,
    "WebKB": geom_gcn, "WikipediaNetwork": geom_gcn, "Actor": actor, "WikiCS": wiki_cs, "Flickr": saint,
    "Reddit2": saint, "Reddit": reddit, "Airports": airports,
}  # fmt: skip


def write(kind, path):
    """Write the raw files of a class; ``path`` is the one that tells whether they are there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    WRITERS[kind](path)
    return path
