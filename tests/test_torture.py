"""A sample of every section of ``make torture``."""

import pytest
from torture import SECTIONS, sample

SAMPLE = 12


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{name}: {case.name}"[:80]) for name in SECTIONS for case in sample(name, SAMPLE)]
)
def test_behaves(case, tmp_path):
    case.check(tmp_path)
