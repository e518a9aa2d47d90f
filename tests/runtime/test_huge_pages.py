"""Memory that is in use is put on huge pages; memory that is not stays as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kraftd.runtime.huge_pages import collapse

ABLE = Path("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")
# 32 MiB with a byte in each page, and as much with a byte in every second one.
FILLED = """
import mmap
from pathlib import Path
from kraftd.runtime.huge_pages import collapse

def kib(key):
    rollup = Path("/proc/self/smaps_rollup").read_text()
    return int(rollup.partition(key + ":")[2].split()[0])

used, holed = (mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE) for _ in range(2))
for place in range(0, 32 << 20, 4096):
    used[place] = 7
    holed[place] = 7 if place % 8192 else 0
for place in range(0, 32 << 20, 8192):
    holed.madvise(mmap.MADV_DONTNEED, place, 4096)
before = kib("Rss")
print(collapse(), kib("AnonHugePages") // 2048, (kib("Rss") - before) >> 10)
assert set(used[::4096]) == {7} and sum(holed[::4096]) == 7 * 4096
"""


@pytest.mark.skipif(not ABLE.exists(), reason="this system has no huge pages")
def test_memory_in_use_is_on_huge_pages_and_no_more_of_it_is_taken() -> None:
    done = subprocess.run([sys.executable, "-c", FILLED], capture_output=True, text=True, check=True)
    collapsed, huge, more_mib = map(int, done.stdout.split())
    assert collapsed == huge >= 15
    assert more_mib <= 4


def test_a_system_without_huge_pages_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("kraftd.runtime.huge_pages._SIZE", tmp_path / "missing")
    assert collapse() == 0
