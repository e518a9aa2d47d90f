"""A minute of hostile input for the column builder in C, with sanitizers and planted faults that it finds."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzzing import sanitized

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.skipif(find_spec("pyarrow") is None, reason="the extra kraftd[spark] is not installed"),
]

FAULTS = {
    "a length beyond the end": ("*length > r->end - r->at", "0", "ERROR: AddressSanitizer"),
    "rows of a refused batch": ("cut_back(builder, before);", "", "fuzz_"),
}


def test_sanitizers_report_nothing_about_the_columns(tmp_path: Path) -> None:
    done = sanitized.run_target("columns", sanitized.build("columns", tmp_path), sanitized.GATE_SECONDS)
    assert done.returncode == 0, done.stderr
    assert "rounds from seed 0" in done.stdout


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_within_seconds(tmp_path: Path, fault: str) -> None:
    right, wrong, report = FAULTS[fault]
    source = sanitized.SOURCES["columns"].read_text()
    assert source.count(right) == 1
    built = sanitized.build("columns", tmp_path, source.replace(right, wrong))
    done = sanitized.run_target("columns", built, 300)  # it ends with what it finds
    assert done.returncode and report in done.stderr
