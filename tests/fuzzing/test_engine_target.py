"""A minute of hostile input for the codec engine in C, with sanitizers, which notice a planted fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzzing import sanitized

pytestmark = pytest.mark.compiler

READ_CUT_BYTES = """
import sys
from kraftd.messages.fetch_request import FetchRequest
from kraftd.wire.codec import encode_bytes
from tests.fuzzing.hostile import exact, load
cut = exact(encode_bytes(FetchRequest(), 17)[:-1])
load("kraftd.wire._engine", sys.argv[1]).decode(FetchRequest, 17, cut)
"""


def test_sanitizers_report_nothing_about_the_engine(tmp_path: Path) -> None:
    done = sanitized.run_target("engine", sanitized.build("engine", tmp_path), sanitized.GATE_SECONDS)
    assert done.returncode == 0, done.stderr
    assert "rounds from seed 0" in done.stdout


def test_a_planted_read_of_one_byte_too_many_is_reported(tmp_path: Path) -> None:
    source = sanitized.SOURCES["engine"].read_text()
    check = "count > r->size - r->at)"
    assert source.count(check) == 1
    built = sanitized.build("engine", tmp_path, source.replace(check, "count > r->size - r->at + 1)"))
    done = sanitized.run_python("-c", READ_CUT_BYTES, str(built))
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr
