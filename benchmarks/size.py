"""Lines of Python by room: code, docstrings, comments and blank lines apart.

Run: python benchmarks/size.py
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "tadropedge"
OTHER = ("testing", "lab", "cli")  # rooms outside of the core
KINDS = ("code", "docstrings", "comments", "blank")


def count(source: str) -> Counter[str]:
    """How many lines of a file are of which kind; a comment behind code is code."""
    documented = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            documented.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0] for token in tokens if token.type == tokenize.COMMENT and token.line.lstrip()[0] == "#"}
    lines = source.splitlines()
    blank = {number for number, line in enumerate(lines, 1) if not line.strip()} - documented
    found = Counter(docstrings=len(documented), comments=len(comments), blank=len(blank))
    found["code"] = len(lines) - found.total()
    return found


def rooms() -> dict[str, Counter[str]]:
    """The lines of each folder of the package; files beside them are ``tadropedge``."""
    found: dict[str, Counter[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        first, *deeper = path.relative_to(PACKAGE).parts
        room = found.setdefault(first if deeper else "tadropedge", Counter())
        room.update(count(path.read_text(encoding="utf-8")), files=1)
    return found


def line(name: str, lines: Counter[str]) -> str:
    total = sum(lines[kind] for kind in KINDS)
    return f"{name:<14}" + "".join(f"{number:>12,}" for number in (lines["files"], total, *(lines[k] for k in KINDS)))


if __name__ == "__main__":
    found = rooms()
    core = sum((lines for room, lines in found.items() if room not in OTHER), Counter())
    print(f"{'room':<14}" + "".join(f"{name:>12}" for name in ("files", "lines", *KINDS)))
    for room in sorted(found, key=lambda room: (room in OTHER, room)):
        print(line(room, found[room]))
    print(line("core and pyg", core))
    print(line("package", sum(found.values(), Counter())))
