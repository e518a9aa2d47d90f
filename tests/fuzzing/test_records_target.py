"""A minute of hostile input for the record engine in C, with sanitizers and planted faults that it finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzzing import sanitized

pytestmark = pytest.mark.compiler

FAULTS = {
    "a length beyond the end": (
        "read_varint(c, size) < 0 || *size > c->end - c->p",
        "read_varint(c, size) < 0",
    ),
    "a body beyond the end": ("if (r->size < 0 || r->size > c->end - c->p)", "if (r->size < 0)"),
    "a checksum that is not compared": ("if (stored != computed)", "if (stored == ~computed)"),
    "a fault that is forgotten": ("if (n >= MOST_ERRORS)", "if (n >= 3)"),
}


def test_sanitizers_report_nothing_about_the_record_engine(tmp_path: Path) -> None:
    done = sanitized.run_target("records", sanitized.build("records", tmp_path), sanitized.GATE_SECONDS)
    assert done.returncode == 0, done.stderr
    assert "rounds from seed 0" in done.stdout


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_within_seconds(tmp_path: Path, fault: str) -> None:
    right, wrong = FAULTS[fault]
    source = sanitized.SOURCES["records"].read_text()
    assert source.count(right) == 1
    built = sanitized.build("records", tmp_path, source.replace(right, wrong))
    done = sanitized.run_target("records", built, 300)  # it ends with what it finds
    assert done.returncode
    assert "Sanitizer" in done.stderr or "fuzz_" in done.stderr
