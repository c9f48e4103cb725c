"""Two processes in one folder at the same time: both finish, they agree, and nothing is lost."""

import pytest
from torture import jobs
from torture.process import FULL, Child


@pytest.mark.parametrize("again", range((1, 20)[FULL]))
@pytest.mark.parametrize("job", ["compare", "train", "weights"])
def test_two_processes_share_a_folder(job, again, tmp_path):
    jobs.begin(job, tmp_path)
    both = [Child(jobs.COMMANDS[job].split(), tmp_path, jobs.prepare) for _ in range(2)]
    for child in both:
        ended = child.wait()
        assert ended.code == 0, ended
        assert "warning" not in ended.err, ended
    assert jobs.results(tmp_path) == jobs.whole(job).files
    assert not [path.name for path in tmp_path.glob("out/**/*") if ".tmp" in path.name or path.suffix == ".training"]


def test_two_searches_of_different_size_share_what_they_train(tmp_path):
    words = jobs.COMMANDS["compare"]
    more = words.replace("--replicates 2", "--replicates 3").replace("--methods dropedge", "--methods dropedge,cdf")
    both = [Child(each.split(), tmp_path, jobs.prepare) for each in (words, more)]
    for child in both:
        assert child.wait().code == 0
    rows = jobs.rows(tmp_path / "out")
    for key, row in jobs.whole("compare").files["trials.db"].items():
        assert rows[key] == row
    jobs.epochs(tmp_path)
    assert Child(more.split(), tmp_path, jobs.prepare).wait().code == 0
    assert not jobs.epochs(tmp_path), "all was there"
