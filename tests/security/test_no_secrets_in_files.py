"""A scan of the project's own files for keys and tokens: tests create theirs at run time."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATTERNS = {
    "a private key": re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{40}"),
    "a JSON web token": re.compile(rb"\beyJ[A-Za-z0-9_-]{20,}\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}"),
    "an access key": re.compile(
        rb"\b(AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|xox[baprs]-[A-Za-z0-9-]{20,}|AIza[0-9A-Za-z_-]{35})\b"
    ),
    "a password in an address": re.compile(rb"\bhttps?://[^/\s:@'\"{}<>]+:[^/\s:@'\"{}<>]{6,}@"),
}


def test_no_file_of_the_project_contains_a_secret() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("no checkout of git's")
    found = [
        f"{name}: {what}"
        for name in listed.stdout.decode().split("\0")
        if name and (ROOT / name).is_file()
        for data in [(ROOT / name).read_bytes()]
        for what, pattern in PATTERNS.items()
        if pattern.search(data)
    ]
    assert not found


@pytest.mark.parametrize("what", PATTERNS)
def test_the_scan_finds_each_kind_of_secret(what: str) -> None:
    samples = {
        "a private key": "-----BEGIN EC PRIVATE KEY-----\n" + "A" * 64,
        "a JSON web token": f"eyJ{'a' * 30}.eyJ{'b' * 30}.{'c' * 30}",
        "an access key": "AKIA" + "Q" * 16,
        "a password in an address": "https://user:" + "hush-hush" + "@host/",
    }
    assert PATTERNS[what].search(samples[what].encode())
