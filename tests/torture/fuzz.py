"""Valid files with something changed in them: bytes, members of archives, values in JSON, with checksums set right.

A case is one reader and one seed: ``BATCH`` changed files, read in a child with limits of time and memory, so that a
crash is seen. Each must be refused with one clear line or give something valid. ``make fuzz FUZZ=500`` runs so many
seeds per reader; what a failure prints names reader, seed and number, from which ``changed`` makes the file again.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from torture import Case
from torture.process import forked
from torture.readers import READERS, Reader, attempt

TRIES = "files with changed bytes, members or values"

SEEDS = int(os.environ.get("FUZZ", "20"))  # per reader
BATCH = 25
SECONDS, MEGABYTES = 5.0, 2000  # of one file, of one case
NUMBERS = (0, 1, -1, 2, 127, 255, 2**31 - 1, -(2**31), 2**31, 2**53, 2**63 - 1, -(2**63))
WORDS = (b"nan", b"-1", b"1e999", b"9" * 40, b'"', *(bytes([mark]) for mark in b"'=,#{[\n\r\t\0\xff"))
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2.5, 1e308, 10**30, -(10**400), "", "a", "\ud800", "\0\n", "x" * 5000, [], {}, [[]],
    [None], {"": None}, {"name": 1}, [1, 2, 3], "NaN", "../../etc", 2**63,
)  # fmt: skip


def cases() -> Iterator[Case]:
    """Every reader with every seed; a sample of them holds many readers."""
    for seed in range(SEEDS):
        for name in READERS:
            yield Case(f"{name}, seed {seed}", partial(batch, name, seed))


def batch(name: str, seed: int, folder: Path, count: int = BATCH) -> None:
    """Read the changed files of one reader and seed."""
    READERS[name].content()  # what is made once is made before the fork
    ended = forked(partial(_read_all, name, seed, count), folder, seconds=SECONDS * 6, megabytes=MEGABYTES)
    assert ended.code == 0, f"{name}, seed {seed}: {ended}"


def _read_all(name: str, seed: int, count: int) -> int:
    reader = READERS[name]
    for number in range(count):
        print(f"number {number}", flush=True)
        place = Path(f"{number}")
        place.mkdir()
        reader.beside(place)
        (place / reader.name).write_bytes(changed(name, seed, number))
        begun = time.monotonic()
        attempt(partial(reader.read, place))
        assert time.monotonic() - begun < SECONDS, "it took too long"
        shutil.rmtree(place)
    return 0


def changed(name: str, seed: int, number: int) -> bytes:
    """A valid file of a reader with something changed: always the same for the same numbers."""
    reader, chance = READERS[name], random.Random(f"{name}/{seed}/{number}")
    content = reader.content()
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        content = _change(reader, content, chance)
    return content


def _change(reader: Reader, content: bytes, chance: random.Random) -> bytes:
    if chance.random() < 0.25:
        return damaged(content, chance)
    try:
        parts = reader.parts(content)
        chosen = chance.choice(sorted(parts))
        parts[chosen] = _part(parts[chosen], chance)
        if chance.random() < 0.1 and len(parts) > 1:  # one in the place of another, or none
            other = chance.choice(sorted(parts))
            parts[chosen] = parts.pop(other) if other != chosen else parts[chosen]
        return reader.whole(parts, chance)
    except Exception:  # an earlier change has left nothing that can be taken apart
        return damaged(content, chance)


def _part(part: bytes, chance: random.Random) -> bytes:
    if part[:1] in (b"{", b"["):
        if chance.random() < 0.7:
            return with_other_value(part, chance)
    elif part.startswith(b"\x93NUMPY") and chance.random() < 0.7:
        return with_other_number(part, chance) if chance.random() < 0.7 else with_other_header(part, chance)
    return damaged(part, chance)


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Bytes flipped, cut, moved, repeated, left out, or words put in."""
    place, length = (chance.randrange(len(content) + 1), chance.choice((1, 1, 2, 4, 8, 64, 1000)))
    kind = chance.randrange(7)
    if kind == 0:
        flipped = bytearray(content)
        for _ in range(min(length, len(content))):
            flipped[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        return bytes(flipped)
    if kind == 1:
        return content[:place]
    if kind == 2:
        return content[:place] + content[place + length :]
    if kind == 3:
        return content[:place] + chance.randbytes(length) + content[place:]
    if kind == 4:
        return content[:place] + chance.choice(WORDS) + content[place:]
    if kind == 5:
        other = chance.randrange(len(content) + 1)
        return content[:place] + content[other : other + length] + content[place:]
    number = struct.pack(chance.choice("<>") + "q", chance.choice(NUMBERS))[:: chance.choice((1, -1))]
    return content[:place] + number + content[place + 8 :]


def with_other_number(part: bytes, chance: random.Random) -> bytes:
    """An array with one entry of eight bytes replaced."""
    start = part.index(b"\n") + 1
    places = (len(part) - start) // 8
    if not places:
        return damaged(part, chance)
    place = start + 8 * chance.randrange(places)
    other = struct.pack("<d", chance.choice((2.5, float("nan"), float("inf"), 1e308)))
    number = other if chance.random() < 0.2 else struct.pack("<q", chance.choice(NUMBERS))
    return part[:place] + number + part[place + 8 :]


def with_other_header(part: bytes, chance: random.Random) -> bytes:
    """An array whose header says another type or shape."""
    changes = {
        b"'<i8'": (b"'<f8'", b"'<u8'", b"'>i8'", b"'|O8'", b"'<U2'", b"'|V8'", b"'<M8'", b"'|b1'"),
        b"'<f8'": (b"'<i8'", b"'<c8'", b"'>f8'", b"'|O8'", b"'<U0'", b"'|S8'", b"'<f2'", b"'<f4'"),
        b"(12,": (b"(-1,", b"(99,", b"(11,", b"(1e,", b"(0, ", b"(6,2"),
        b"(2, 12)": (b"(24,1,)", b"(12, 2)", b"(24,)  ", b"(1,24,)", b"(2,-12)", b"(2, 99)"),
        b"(12, 4)": (b"(48,)  ", b"(4, 12)", b"(12, 0)", b"(6,2,4)"),
        b"False": (b"True ", b"None "),
    }
    known = [old for old in changes if old in part]
    if not known:
        return damaged(part, chance)
    old = chance.choice(known)
    return part.replace(old, chance.choice(changes[old]), 1)


def with_other_value(part: bytes, chance: random.Random) -> bytes:
    """JSON with one value replaced, left out, or moved under another name."""
    document = json.loads(part)
    places = list(_places(document))
    if not places:
        return damaged(part, chance)
    holder, key = chance.choice(places)
    kind = chance.randrange(5)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[chance.choice(("", "name", "rows", "mean", key + "s"))] = holder.pop(key)
    elif kind == 2:
        other, place = chance.choice(places)
        holder[key] = json.loads(json.dumps(other[place]))
    else:
        holder[key] = chance.choice(VALUES)
    return json.dumps(document).encode()


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every member of every object and list, as the holder and the name or place in it."""
    keys = document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in list(keys):
        yield document, key
        yield from _places(document[key])
