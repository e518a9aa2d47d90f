"""When the code of a broker's coordinators is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kraftd.runtime.late_code import has_coordinators_logs

STARTED = """
import sys, uvloop
import kraftd.runtime.broker_listeners, kraftd.runtime.daemon
from kraftd.runtime import late_code
def is_loaded(): return "kraftd.groups.coordinator" in sys.modules
assert not is_loaded()
late_code.LATER_S = 0.01
loop = uvloop.new_event_loop()
late_code.load_coordinators([sys.argv[1]], loop)
print(is_loaded())
async def wait():
    import asyncio
    for _ in range(1000):
        if is_loaded(): return
        await asyncio.sleep(0.01)
loop.run_until_complete(wait())
print(is_loaded())
"""


@pytest.mark.parametrize(("log", "at_once"), [("t-0", "False"), ("__consumer_offsets-3", "True")])
def test_coordinators_are_loaded_at_a_start_that_needs_them_and_else_later(
    tmp_path: Path, log: str, at_once: str
) -> None:
    (tmp_path / log).mkdir()
    command = [sys.executable, "-c", STARTED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [at_once, "True"]


def test_logs_of_other_topics_and_unreadable_directories_need_no_coordinators(tmp_path: Path) -> None:
    for name in ("__cluster_metadata-0", "__consumer_offsets_copy-0", "t-1", "meta.properties"):
        (tmp_path / name).mkdir()
    assert not has_coordinators_logs([str(tmp_path), str(tmp_path / "none")])
    (tmp_path / "__share_group_state-49").mkdir()
    assert has_coordinators_logs([str(tmp_path / "none"), str(tmp_path)])
