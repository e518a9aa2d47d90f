"""Runs one command beside others, from what they leave of the processors, and fails if any of them fails.

    python -m tools.beside BACKGROUND... -- COMMAND... [-- COMMAND...]

The commands run one after another until one fails. The background command is idle work: whatever else runs on
the machine goes first. Once no other command is left it runs as any process does. Its output is shown at the
end. Where the processors are shared by quota it runs last: idle work uses up a quota, too.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path

_SEPARATOR = "--"
_LAST_NICE = 19
_KILL_AFTER_S = 10


def main(words: Sequence[str]) -> int:
    """Run the commands; returns the exit code of the first that fails, the background command last."""
    background, *others = [list(some) for is_end, some in groupby(words, _SEPARATOR.__eq__) if not is_end]
    if has_quota():
        return _first_failure([*others, background])
    with tempfile.TemporaryFile() as output:
        beside = _start_idle(background, output.fileno())
        try:
            failed = _first_failure(others)
            if not failed:
                _give_way_no_more(beside.pid)
                failed = beside.wait()
        finally:
            _end(beside)
        output.seek(0)
        shutil.copyfileobj(output, sys.stdout.buffer)
        sys.stdout.flush()
    return failed


def has_quota(groups: Path = Path("/sys/fs/cgroup")) -> bool:
    """Return whether control groups, of either version, limit the time of this container's processes."""
    limits: list[str] = []
    for name in ("cpu.max", "cpu/cpu.cfs_quota_us"):
        with suppress(OSError):
            limits += (groups / name).read_text().split()[:1]
    return any(limit not in ("max", "-1") for limit in limits)


def _first_failure(commands: Sequence[list[str]]) -> int:
    """Run commands until one fails; returns its exit code, or 0."""
    return next((code for one in commands if (code := subprocess.run(one, check=False).returncode)), 0)


def _start_idle(command: list[str], output: int) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, so that it can be ended with all that it starts."""
    dies_with_parent = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    return subprocess.Popen(
        [*dies_with_parent, *command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        preexec_fn=_become_idle,
    )


def _become_idle() -> None:
    os.nice(_LAST_NICE)
    with suppress(AttributeError, OSError):  # of Linux alone
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    _weigh_session("self", _LAST_NICE)


def _weigh_session(process: int | str, nice: int) -> None:
    """Weigh the session of a process against others, where the system shares its time among sessions."""
    with suppress(OSError):
        Path(f"/proc/{process}/autogroup").write_text(str(nice))


def _give_way_no_more(session: int) -> None:
    """Have all processes of a session run as any other, where the system permits that."""
    _weigh_session(session, 0)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, AttributeError):
            process = int(stat.parent.name)
            if os.getsid(process) == session:
                os.sched_setscheduler(process, os.SCHED_OTHER, os.sched_param(0))
                os.setpriority(os.PRIO_PROCESS, process, 0)


def _end(beside: subprocess.Popen[bytes]) -> None:
    """End a session that is still there."""
    if beside.poll() is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(beside.pid, number)
        with suppress(subprocess.TimeoutExpired):
            beside.wait(_KILL_AFTER_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
