"""Rewrite studies.tgz, results.json and report.html, whose fingerprints are of version 1, once for all.

The old fingerprint of every study is computed from its stored settings and must be the one in its name, and the old
fingerprints of the bundled datasets must be the stored ones: then both are understood, and the new ones take their
place. Nothing else is changed. Run from the root of the repository, with TADROPEDGE_DATA set:

    python results/paper/migrate.py
"""

import gzip
import hashlib
import io
import json
import sys
import tarfile
from functools import cache
from pathlib import Path

import numpy as np
import torch

from tadropedge.data import load_dataset
from tadropedge.fingerprint import VERSION, fingerprint
from tadropedge.paper.clustered import clustered
from tadropedge.paper.item import Bench
from tadropedge.paper.items.proposition1 import words
from tadropedge.paper.items.theorem1 import _datasets
from tadropedge.paper.recipe import load_recipe
from tadropedge.paper.registry import ITEMS
from tadropedge.paper.trainings import digest
from tadropedge.registry import NETWORKS
from tadropedge.search.space import method_space
from tadropedge.training.laboratory import VERSION as TRAINING
from tadropedge.training.laboratory import data_fingerprints

HERE = Path(__file__).parent
ADDED = {"method", "seed", "keep_ratio", "curves", "fresh split"}  # to the settings of a laboratory


def old_hash(text):
    return hashlib.sha256(text.encode()).hexdigest()


def old_digest(settings, space, seed):
    return old_hash(json.dumps([settings, space, seed], sort_keys=True))[:8]


def old_recipe(recipe):
    used = [old_recipe(load_recipe(name, recipe.preset)) for name in recipe.settings.get("uses", [])]
    spaces = [method_space(method).table() for method in recipe.settings.get("competitors", {})]
    own = [recipe.name, recipe.preset, dict(recipe.settings), dict(recipe.published)]
    return old_hash(json.dumps([*own, *used, *spaces], sort_keys=True))[:16]


def old_data(dataset):
    """The stored fingerprints of version 1: of the graph, and of the values of features, labels and split."""
    graph = dataset.graph
    digest = hashlib.sha256(f"{graph.num_nodes};{graph.num_edges};".encode())
    digest.update(np.ascontiguousarray(graph.pairs.numpy()).tobytes())
    if graph.weight is not None:
        digest.update(graph.weight.numpy().tobytes())
    data = hashlib.sha256()
    features = dataset.features.values() if dataset.features.layout is torch.sparse_csr else dataset.features
    for tensor in (features, dataset.labels, *(part for _, part in dataset.split.parts())):
        data.update(np.ascontiguousarray(tensor.numpy()).tobytes())
    return digest.hexdigest()[:16], data.hexdigest()[:16]


@cache
def bundled():
    """The new fingerprints of every bundled dataset by the old ones."""
    sets = [load_dataset(name) for name in ("cora", "citeseer", "pubmed")]
    noises = ("stated", "calibrated")
    sets += [load_dataset("source-localization", seed=graph, noise=noise) for noise in noises for graph in range(30)]
    return {old_data(one): data_fingerprints(one) for one in sets}


def new_laboratory(old, fresh):
    """The settings of a laboratory as they are told now."""
    network = NETWORKS[old["backbone"]]
    told = {name: value for name, value in old.items() if name in network.settings}
    defaults = {"training": TRAINING, "evaluate_every": 1, "precision": "highest"}
    kept = ("backbone", "layers", "hidden", "epochs", "laplacian", "q", "selection", "per_layer", "split")
    return {
        **{name: old[name] for name in kept},
        **{f"network.{name}": value for name, value in network.completed(old["backbone"], told).items()},
        **{name: old.get(name, usual) for name, usual in defaults.items()},
        "fresh_sizes": old["split"] if fresh is None else fresh,
        **{f"data.{name}": value for name, value in bundled()[old["graph"], old["data"]].items()},
    }


def parted(settings):
    """The settings of the laboratory, the space, and what was added."""
    space = {key.removeprefix("space."): value for key, value in settings.items() if key.startswith("space.")}
    added = {key: settings[key] for key in settings if key in ADDED}
    return {k: v for k, v in settings.items() if k not in added and not k.startswith("space.")}, space, added


def new_studies(studies):
    """From {name: settings} to {name: (new name, new settings)}."""
    spaces = {}
    for name, settings in studies.items():
        head, kind, method = name.partition("/search/")
        if kind:
            spaces.setdefault(head, {})[method] = parted(settings)[1]
    found = {}
    for name, settings in studies.items():
        laboratory, space, added = parted(settings)
        seed = added["seed"]
        new = new_laboratory(laboratory, added.pop("fresh split", None))
        parts = name.split("/")
        at = next((at for at, part in enumerate(parts) if part in ("search", "honest", "reference") and at > 1), None)
        if "curves" in added:  # fixed settings
            own = {key: value for key, value in added.items() if key != "method"}
            before, after = {**laboratory, **own}, {**new, **own}
            place, contents = len(parts) - 1, [space]
        else:
            place = at - 2 if parts[at - 1].startswith("test-") else at - 1
            before, after = laboratory, {**new, "fresh_sizes": new["split"]}
            head = "/".join(parts[: place + 1])
            contents = [space, spaces[head]]  # one space for all methods, or one each
        (content,) = [one for one in contents if old_digest(before, one, seed) == parts[place]]
        parts[place] = digest(after, content, seed)
        table = {"fingerprint": VERSION, "method": added.pop("method"), "seed": added.pop("seed"), **new, **added}
        found[name] = "/".join(parts), {**table, **{f"space.{key}": value for key, value in space.items()}}
    assert len({new for new, _ in found.values()}) == len(found)
    return found


def new_journal(content):
    lines = [json.loads(line) if line[:14] != b'{"op_code":4,"' else line for line in content.splitlines()]
    names, studies = [], {}
    for line in lines:
        if isinstance(line, dict) and line["op_code"] == 0 and line["study_name"] not in names:
            names.append(line["study_name"])
        elif isinstance(line, dict) and line["op_code"] == 2:
            studies[names[line["study_id"]]] = line["user_attr"]["settings"]
    found, made, out = new_studies(studies), set(), []
    assert set(found) == set(names)
    for line in lines:
        if isinstance(line, dict) and line["op_code"] == 0:
            if line["study_name"] in made:  # a repeated creation does nothing
                continue
            made.add(line["study_name"])
            line = {**line, "study_name": found[line["study_name"]][0]}
        elif isinstance(line, dict):
            line = {**line, "user_attr": {"settings": found[names[line["study_id"]]][1]}}
        out.append(line if isinstance(line, bytes) else json.dumps(line, separators=(",", ":")).encode())
    return b"".join(line + b"\n" for line in out)


def piece_data(item):
    """The data of every piece of an item, by its name."""
    recipe = load_recipe(item, "paper")
    bench = Bench(recipe, Path())
    if item == "variance":
        data = {name: data_fingerprints(bench.dataset(name)) for name in recipe["datasets"]}
        return lambda name: data[name.split("/")[0]]
    if item == "proposition1":
        kinds = {words(kind): kind for kind in recipe["kinds"]}
        made = {
            name: clustered(kinds[name[0]], name[1])
            for name in ((k, n) for k in kinds for n in range(recipe["graphs"]))
        }
        data = {f"{kind}/{number}": (one.graph.fingerprint, one.clusters) for (kind, number), one in made.items()}
        return data.__getitem__
    families = {family["dataset"]: _datasets(bench, family) for family in recipe["families"]}
    data = {name: [(data_fingerprints(one), one.gamma) for one in mine] for name, mine in families.items()}
    sizes = tuple(recipe["sizes"])
    for graph in range(recipe["trained_graphs"]):
        one = bench.dataset("source-localization", seed=graph, sizes=sizes)
        data[f"filters/{graph}"] = data_fingerprints(one)
    return lambda name: data[name.rpartition("/")[0]] if name.startswith("filters/") else data[name.split("/")[0]]


def new_pieces(item, content):
    recipe, data, out = load_recipe(item, "paper"), piece_data(item), []
    for line in content.decode().splitlines():
        checksum, _, text = line.partition(" ")
        table = json.loads(text)
        assert checksum == old_hash(text)[:16]
        assert (table["recipe"], table["seed"]) == (old_recipe(recipe), 0)
        found = fingerprint(data=data(table["name"]))[:16]
        head = {"recipe": recipe.fingerprint, "seed": 0, "data": found}
        text = json.dumps({**head, **{key: value for key, value in table.items() if key not in head}})
        out.append(f"{old_hash(text)[:16]} {text}\n")
    return "".join(out).encode()


def main():
    packed = io.BytesIO()
    with (
        tarfile.open(HERE / "studies.tgz") as old,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            path = Path(member.name)
            content = old.extractfile(member).read() if member.isfile() else b""
            if path.suffix == ".journal":
                content = new_journal(content)
            elif path.suffix == ".pieces":
                content = new_pieces(path.stem, content)
            entry = tarfile.TarInfo(member.name)
            entry.type, entry.mode, entry.size = member.type, 0o755 if member.isdir() else 0o644, len(content)
            new.addfile(entry, io.BytesIO(content))
            print(member.name, len(content), file=sys.stderr)
    (HERE / "studies.tgz").write_bytes(gzip.compress(packed.getvalue(), compresslevel=9, mtime=0))
    recipes = [load_recipe(item, "paper") for item in ITEMS]
    for name in ("results.json", "report.html"):
        text = (HERE / name).read_text(encoding="utf-8")
        for recipe in recipes:
            assert text.count(old_recipe(recipe)) >= 1, (name, recipe.name)
            text = text.replace(old_recipe(recipe), recipe.fingerprint)
        (HERE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
