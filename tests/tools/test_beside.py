"""One command beside others: whose exit code counts, what is shown, and how it gives way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.beside import has_quota

TOOL = (sys.executable, "-m", "tools.beside")
needs_shares = pytest.mark.skipif(has_quota(), reason="with a quota nothing runs beside the others")
ROOT = Path(__file__).resolve().parents[2]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TOOL, *words], capture_output=True, text=True, check=False, cwd=ROOT)


def shell(text: str) -> list[str]:
    return ["sh", "-c", text]


@pytest.mark.parametrize(
    ("background", "first", "second", "code"),
    [("exit 0", "exit 0", "exit 0", 0), ("exit 3", "exit 0", "exit 0", 3), ("exit 0", "exit 0", "exit 5", 5)],
)
def test_the_exit_code_is_that_of_the_command_that_fails(
    background: str, first: str, second: str, code: int
) -> None:
    assert run(*shell(background), "--", *shell(first), "--", *shell(second)).returncode == code


@needs_shares
def test_a_failure_ends_the_commands_after_it_and_the_one_beside(tmp_path: Path) -> None:
    made = tmp_path / "made"
    pid = tmp_path / "pid"
    ends = f"while [ ! -s {pid} ]; do sleep 0.01; done; exit 4"
    done = run(*shell(f"echo $$ > {pid}; exec sleep 600"), "--", *shell(ends), "--", "touch", str(made))
    assert done.returncode == 4 and not made.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@needs_shares
def test_the_output_of_the_command_beside_comes_last_and_whole() -> None:
    done = run(*shell("echo beside; echo error >&2"), "--", *shell("sleep 0.2; echo first"))
    assert done.stdout.splitlines() == ["first", "beside", "error"]


@needs_shares
@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="Linux alone has idle processes")
def test_the_command_beside_is_idle_work_in_a_session_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "stat"
    says = f"echo $$ > {file}.new; cat /proc/self/stat >> {file}.new; mv {file}.new {file}"
    done = run(*shell(says), "--", *shell(f"while [ ! -e {file} ]; do sleep 0.01; done"))
    assert done.returncode == 0
    shell_id, stat = file.read_text().splitlines()
    fields = stat.rpartition(")")[2].split()  # from the third on: proc(5)
    session, policy = fields[3], fields[38]
    assert (session, int(policy)) == (shell_id, os.SCHED_IDLE)


@pytest.mark.parametrize(
    ("file", "text", "limited"),
    [
        ("cpu.max", "max 100000", False),
        ("cpu.max", "200000 100000", True),
        ("cpu/cpu.cfs_quota_us", "-1", False),
        ("cpu/cpu.cfs_quota_us", "150000", True),
        ("cpu.weight", "100", False),
    ],
)
def test_a_quota_of_either_version_of_control_groups_is_seen(
    tmp_path: Path, file: str, text: str, limited: bool
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(f"{text}\n")
    assert has_quota(tmp_path) is limited
