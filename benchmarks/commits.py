"""Write into the trainings of a results folder which commit made them, where they do not say it themselves.

Trainings of version 0.1 have a date and no commit; ``studies/ITEM-PRESET.seconds.json`` names the commits at which an
item was trained. So a training was made by the newest of these that is not younger than the training. Only the
attribute ``commit`` is added, every other byte of ``studies/*.journal`` stays, and a second run changes nothing:

    mkdir again && tar xzf results/paper/studies.tgz -C again && python benchmarks/commits.py again
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tadropedge.atomic import write_atomic
from tadropedge.paper.journal import COMMIT
from tadropedge.provenance import ROOT

NEW_TRIAL = 4  # how Optuna's journals begin a trial; ours are whole there
Dates = Mapping[str, datetime]  # of commits


def dates(journal: Path) -> Dates:
    """The commits at which the item of a journal was trained; ``table1-cora.journal`` belongs to ``table1``."""
    for earlier in sorted(journal.parent.glob("*.seconds.json")):
        item = earlier.name.rpartition("-")[0]
        if journal.stem == item or journal.stem.startswith(f"{item}-"):
            places = json.loads(earlier.read_text())["trained_on"]
            return {name: committed(name) for name in (place.rpartition(COMMIT)[2] for place in places)}
    return {}


def committed(name: str) -> datetime:
    """When a commit of this checkout was made."""
    command = ["git", "-C", str(ROOT), "show", "--no-patch", "--format=%cI", name]
    return datetime.fromisoformat(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


def dated(line: str, commits: Dates) -> tuple[str, str | None]:
    """A line of a journal with the commit of its trial, and that commit; as it is where it says it or none fits.

    >>> commits = {name: datetime.fromisoformat(f"2026-11-15T1{name}:00+00:00") for name in ("0", "3")}
    >>> trial = '{"op_code":4,"datetime_complete":"2026-11-15T12:00:00+00:00","user_attrs":{"index":7}}'
    >>> dated(trial, commits)[0]
    '{"op_code":4,"datetime_complete":"2026-11-15T12:00:00+00:00","user_attrs":{"index":7,"commit":"0"}}'
    """
    content: dict[str, Any] = json.loads(line)
    attributes = content.get("user_attrs", {})
    if content["op_code"] != NEW_TRIAL or "commit" in attributes or "digest" in attributes:
        return line, None
    finished = datetime.fromisoformat(content["datetime_complete"])
    before = [name for name, date in commits.items() if date <= finished]
    if not before:
        return line, None
    attributes["commit"] = max(before, key=commits.__getitem__)
    return json.dumps(content, separators=(",", ":")), attributes["commit"]


def main(folder: Path) -> None:
    """All journals of a results folder, each in one step."""
    for journal in sorted((folder / "studies").glob("*.journal")):
        commits = dates(journal)
        lines = [dated(line, commits) for line in journal.read_text().splitlines()]
        found = Counter(commit for _, commit in lines if commit is not None)
        if found:
            write_atomic(journal, "".join(f"{line}\n" for line, _ in lines).encode())
        print(journal.name, ", ".join(f"{commit}: {count} trainings" for commit, count in found.items()) or "as it was")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
