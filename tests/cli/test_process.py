"""What only a process of its own shows: signals, streams, start-up, completion."""

import os
import re
import shutil
import signal
import struct
import subprocess
import sys

import pytest
from command import PROGRAM, process

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
SEARCH = ("--methods", "dropedge", "--trials", "4", "--replicates", "20", "--epochs", "300")


def interrupted(words, line, number=signal.SIGINT):
    """Start a command, send a signal when it has printed a line, and return its exit code and the last line."""
    started = subprocess.Popen(
        [*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    seen = []
    for text in started.stderr:
        seen.append(text)
        if line in text:
            started.send_signal(number)
            break
    _, rest = started.communicate(timeout=120)
    return started.returncode, "".join(seen) + rest


@pytest.mark.parametrize(("line", "number"), [("read karate", signal.SIGINT), ("trainings, about", signal.SIGTERM)])
def test_an_interruption_is_one_line_that_says_what_is_kept(line, number, tmp_path):
    code, err = interrupted(["compare", "karate", *SEARCH, "--out", str(tmp_path / "found")], line, number)
    assert code == 130
    assert err.splitlines()[-1].startswith("stopped")
    assert "Traceback" not in err
    if line != "read karate":
        assert str(tmp_path / "found") in err.splitlines()[-1]
        assert "same command" in err.splitlines()[-1]


def test_an_interruption_while_a_command_loads(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import sys, time\nprint('loading', file=sys.stderr, flush=True)\ntime.sleep(60)\n"
    )
    code, err = interrupted(["methods", "--plugin", str(tmp_path / "slow.py")], "loading")
    assert code == 130
    assert "nothing is kept" in err.splitlines()[-1]


def test_a_library_that_makes_another_error_of_an_interruption_hides_nothing(tmp_path):
    (tmp_path / "odd.py").write_text(
        "import sys, time\nprint('loading', file=sys.stderr, flush=True)\n"
        "try:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    raise ImportError('odd')\n"
    )
    code, err = interrupted(["methods", "--plugin", str(tmp_path / "odd.py")], "loading")
    assert code == 130
    assert "odd" not in err.splitlines()[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="no shell")
@pytest.mark.parametrize(
    "line",
    [
        "{} methods >&-",
        "{} datasets --json > /dev/full",
        "{} --help > /dev/full",
        "{{ {} methods; echo $? >&3; }} 3>code | true; exit $(cat code)",
    ],
)
def test_an_output_that_is_closed_or_full_is_one_line(line, tmp_path):
    command = " ".join(PROGRAM)
    done = subprocess.run(
        ["bash", "-c", line.format(command)], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_an_unusable_backend_of_matplotlib_is_one_line(tmp_path):
    done = process("weights", "karate", "--out", tmp_path / "w", env={**ENVIRONMENT, "MPLBACKEND": "nonsense"})
    assert done.returncode == 2
    assert "MPLBACKEND" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "w").exists()


def test_help_and_mistakes_load_nothing_slow():
    look = (
        "import sys\nfrom tadropedge.cli.app import run\ncode = run(sys.argv[1:])\n"
        "slow = {'torch', 'numpy', 'scipy', 'matplotlib', 'pandas', 'ray', 'networkx'} & set(sys.modules)\n"
        "sys.exit(3 if slow else code)"
    )
    for words, code in [
        (("--help",), 0),
        (("--version",), 0),
        (("compare", "-h"), 0),
        (("train", "karate", "--epochs", "x"), 2),
        (("compare", "karate", "--replicates", "1"), 2),
        (("weights", "karate", "--score", "agregate"), 2),
    ]:
        done = subprocess.run([sys.executable, "-c", look, *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == code, (words, done.stderr)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_scripts_parse(shell, tmp_path):
    script = tmp_path / f"tadropedge.{shell}"
    script.write_text(process("--completion", shell).stdout)
    assert "sparsify" in script.read_text()
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert subprocess.run([shell, "-n", str(script)], capture_output=True).returncode == 0


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_knows_whose_completion_it_is(tmp_path):
    (tmp_path / "script").write_text(process("--completion", "zsh").stdout)
    ask = f"autoload -Uz compinit; compinit -u -d {tmp_path}/dump; source {tmp_path}/script; print $_comps[tadropedge]"
    done = subprocess.run(["zsh", "-fc", ask], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "_cyclopts_tadropedge"


def test_bash_completes_commands_and_options(tmp_path):
    (tmp_path / "script").write_text(process("--completion", "bash").stdout)
    ask = (
        "source {script}; COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); COMP_LINE='{words}'; "
        "COMP_POINT=${{#COMP_LINE}}; $(complete -p tadropedge | sed 's/.*-F \\([^ ]*\\).*/\\1/') tadropedge; "
        'echo "${{COMPREPLY[@]}}"'
    )
    for words, expected in [("tadropedge wei", "weights"), ("tadropedge weights --keep-r", "--keep-ratio")]:
        line = ask.format(script=tmp_path / "script", words=words)
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
        assert expected in done.stdout.split(), done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize("width", [12, 100])
def test_the_moving_line_shows_the_time_however_narrow_the_terminal(width):
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    command = [*PROGRAM, "train", "karate", "--hidden", "8", "--epochs", "300"]
    environment = {name: value for name, value in ENVIRONMENT.items() if name not in ("COLUMNS", "LINES")}
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env={**environment, "TERM": "xterm"})
    os.close(theirs)
    seen = b""
    while True:
        try:
            some = os.read(ours, 4096)
        except OSError:  # how the end of a terminal is told
            some = b""
        if not some:
            break
        seen += some
    os.close(ours)
    assert started.wait(timeout=60) == 0
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.decode()).replace("\r", "\n").splitlines()
    moving = [line for line in lines if re.match(r"\d+:\d\d:\d\d ", line)]
    assert len(set(moving)) > 1 or (width == 12 and len(moving) > 1)  # there is no room for the epoch
    assert max(map(len, moving)) <= width
    assert any("epoch" in line for line in moving) == (width > 12)
