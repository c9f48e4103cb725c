import io

import pytest
from graphs import ZOO

from tadropedge import aggregate_resistance
from tadropedge.progress import Progress


def test_shown_when_asked_and_silent_otherwise(capsys):
    aggregate_resistance(ZOO["karate"], 3, progress=True)
    shown = capsys.readouterr()
    assert "eigenvectors" in shown.err
    assert shown.out == ""
    aggregate_resistance(ZOO["karate"], 3)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("patience", [0.0, 60.0])
def test_on_a_terminal_only_long_work_shows(monkeypatch, patience):
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("tadropedge.progress.PATIENCE", patience)
    with Progress("work", total=4) as bar:
        bar.note("half")
        bar.advance(2)
        bar.advance(2)
    assert ("work" in terminal.getvalue()) == (patience == 0.0)
