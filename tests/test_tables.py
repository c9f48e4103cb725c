from pathlib import Path

import pytest
import tables

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(("file", "name"), [(file, name) for file, made in tables.PLACES.items() for name in made])
def test_every_table_is_what_the_results_say(file, name):
    text = (ROOT / file).read_text(encoding="utf-8")
    assert tables.filled(text, name, tables.PLACES[file][name]()) == text
