"""Children of a test heed signals, however the test run itself was started."""

from __future__ import annotations

import subprocess
import sys

RUN = """
import subprocess
from testkit.process import let_children_heed_signals
let_children_heed_signals()
child = subprocess.run(["sh", "-c", "kill -INT $$; echo survived"])
print(child.returncode)
"""


def test_a_child_of_a_test_run_in_the_background_can_be_interrupted() -> None:
    ignoring = ("sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-c", RUN)
    done = subprocess.run(ignoring, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "-2\n"
