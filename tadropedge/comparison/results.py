"""The results document: rows that depend on data and settings alone, and apart from them the run that made them.

``results.json`` is ``{"compare": [row, ...], "run": {...}}``. The same rows give the same bytes. Reading checks every
field and names the wrong one by its place (``results.json: compare[3].honest.mean must be a number, got 'high'``);
writing checks in the same way, so no file is written that cannot be read.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping
from dataclasses import astuple, fields, is_dataclass
from pathlib import Path

import numpy as np

from tadropedge.comparison.rows import Results
from tadropedge.comparison.schema import parse
from tadropedge.comparison.statistics import Honest
from tadropedge.errors import TadropedgeError
from tadropedge.files import existing, write_atomic

# A list or mapping of numbers alone, which is put on one line: a curve of 400 epochs should not take 400.
NUMBERS = re.compile(r'[\[{](\n\s+("\w+": )?(-?[0-9][0-9.eE+-]*|null),?)+\n\s+[\]}]')


def as_document(results: Results) -> dict[str, object]:
    """``results`` as plain JSON values; a number that is not finite becomes ``None``.

    >>> from tadropedge.comparison.rows import PaperProtocol, Row
    >>> row = Row("cora", "gcn", 2, "cdf", "combinatorial", PaperProtocol(0.88, 100))
    >>> as_document(Results([row]))["compare"][0]["paper_protocol"]
    {'best_test': 0.88, 'trials': 100}
    """
    return {"compare": [plain(row) for row in results.rows], "run": plain(results.run)}


def write_results(results: Results, path: str | Path) -> Path:
    """Write ``results.json`` in one step: a killed process leaves the old file or the new one."""
    path = Path(path)
    document = as_document(results)
    parse(document, path.name)
    return write_json(document, path)


def read_results(path: str | Path) -> Results:
    """Read and check ``results.json``."""
    return parse(read_json(path), Path(path).name)


def write_json(document: object, path: Path) -> Path:
    """Write plain values in one step, a list of numbers on one line."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    lines = NUMBERS.sub(lambda match: " ".join(match[0].split()), text)
    return write_atomic(path, f"{lines}\n".encode())


def read_json(path: str | Path) -> object:
    """Read a JSON file, or say where it is none."""
    path = existing(path)
    try:
        document: object = json.loads(path.read_bytes())
    except json.JSONDecodeError as error:
        raise TadropedgeError(f"{path.name}:{error.lineno}: not JSON: {error.msg}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise TadropedgeError(f"{path.name}: cannot be read as JSON ({error})") from error
    return document


def write_csv(results: Results, path: str | Path) -> Path:
    """Write the rows as a flat table, without their curves and settings; what is not known stays empty."""
    honest_names = [member.name for member in fields(Honest)]
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(
        ["dataset", "backbone", "layers", "method", "laplacian", "paper_best_test", "paper_trials"]
        + [f"honest_{name}" for name in honest_names]
    )
    for row in parse(as_document(results), Path(path).name).rows:
        paper = astuple(row.paper_protocol) if row.paper_protocol else (None, None)
        honest = astuple(row.honest) if row.honest else (None,) * len(honest_names)
        table.writerow([row.dataset, row.backbone, row.layers, row.method, row.laplacian, *paper, *honest])
    return write_atomic(Path(path), stream.getvalue().encode())


def plain(value: object) -> object:
    """Dataclasses, arrays and NumPy numbers as what ``json`` writes."""
    if is_dataclass(value):
        return {member.name: plain(getattr(value, member.name)) for member in fields(value)}
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise TadropedgeError(f"results hold texts, numbers, lists and mappings, got {value!r}")
