"""packaging/kraftd.service, as systemd itself reads it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).resolve().parents[2] / "packaging" / "kraftd.service"
MAX_EXPOSURE = 1.5

pytestmark = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")


def analyze(*arguments: object) -> str:
    done = subprocess.run(
        ["systemd-analyze", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_systemd_accepts_every_line_of_the_unit() -> None:
    lines = [line for line in analyze("verify", UNIT).splitlines() if "kraftd.service" in line]
    assert [line for line in lines if "is not executable" not in line] == []


def test_the_security_exposure_of_the_unit_is_low() -> None:
    output = analyze("security", "--offline=true", UNIT)
    found = re.search(r"Overall exposure level for kraftd.service: ([\d.]+)", output)
    assert found is not None, output
    assert float(found[1]) <= MAX_EXPOSURE
