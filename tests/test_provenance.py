import subprocess

import pytest

from tadropedge.provenance import commit, machine


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    monkeypatch.delenv("TADROPEDGE_COMMIT", raising=False)
    (tmp_path / "tadropedge").mkdir()
    (tmp_path / "tadropedge" / "code.py").write_text("one = 1\n")
    who = ("-c", "user.name=someone", "-c", "user.email=someone@example.org")
    for arguments in (("init", "-q"), ("add", "-A"), (*who, "commit", "-q", "-m", "first")):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)
    return tmp_path


def test_a_changed_checkout_does_not_pass_for_its_commit(checkout):
    clean = commit(checkout)
    assert len(clean) == 12
    (checkout / "README.md").write_text("prose decides no number\n")
    assert commit(checkout) == clean
    (checkout / "tadropedge" / "code.py").write_text("one = 2\n")
    assert commit(checkout) == f"{clean} with local changes"


def test_a_copy_says_what_it_was_told(tmp_path, monkeypatch):
    monkeypatch.delenv("TADROPEDGE_COMMIT", raising=False)
    assert commit(tmp_path) == "not a checkout"
    monkeypatch.setenv("TADROPEDGE_COMMIT", "0123456789ab")
    assert commit(tmp_path) == "0123456789ab"
    assert "cores" in machine("cpu")
