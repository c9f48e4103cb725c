import io
import threading

import pytest
from graphs import ZOO

from tadropedge import aggregate_resistance
from tadropedge.progress import Progress


def test_shown_when_asked_and_silent_otherwise(capsys):
    aggregate_resistance(ZOO["karate"], 3, progress=True)
    shown = capsys.readouterr()
    assert "edges scored" in shown.err
    assert shown.out == ""
    aggregate_resistance(ZOO["karate"], 3)
    assert capsys.readouterr().err == ""


def test_one_long_step_is_seen_while_it_runs(monkeypatch):
    """The bar has a clock of its own: it appears although nothing advanced."""
    seen = threading.Event()

    class Terminal(io.StringIO):
        def isatty(self):
            return True

        def write(self, text):
            if "work" in text:
                seen.set()
            return super().write(text)

    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setattr("tadropedge.progress.PATIENCE", 0.01)
    with Progress("work", total=1):
        assert seen.wait(timeout=30)


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
