"""Freed memory is given back to the system after much was freed, and not while more is being freed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kraftd.runtime.freed_memory import Allocator, FreedMemory
from testkit.process import wait_until
from tests.runtime.daemon_process import DaemonProcess

MIB = 1 << 20
ON_LINUX = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="other systems have other allocators"
)

# kraftd that lists its arenas where it would look at them.
LOOKING = """
import ctypes
import sys
from pathlib import Path
from kraftd.cli.main import main
from kraftd.runtime import freed_memory

def list_arenas(allocator):
    ctypes.CDLL(None).malloc_stats()
    file.touch()

file = Path(sys.argv.pop(1))
freed_memory.POLL_S = 0.05
freed_memory.FreedMemory.look = lambda self: list_arenas(self._allocator)
main()
"""
# Every hundredth piece of 100 MB stays: no page at the end of the heap can be given back by a free.
HOLED = """
from pathlib import Path
from kraftd.runtime.freed_memory import Allocator, FreedMemory

def resident_pages():
    return int(Path("/proc/self/statm").read_text().split()[1])

freed = FreedMemory(Allocator())
pieces = [bytes(1_000) for _ in range(100_000)]
kept = pieces[::100]
del pieces
before = resident_pages()
trims = [freed.look() for _ in range(3)]
print(trims, (before - resident_pages()) * 4_096 >> 20)
"""
# How many more pieces of memory the system itself has given out for the records of one answer.
RECORDS = """
from kraftd.runtime.freed_memory import Allocator, set_options

set_options()
allocator = Allocator()
before = allocator._info().hblks
records = bytes(1 << 20)
print(allocator._info().hblks - before)
"""


class Sized(Allocator):
    """An allocator with so many free MiB at each look, and after a trim."""

    def __init__(self, *free_mib: int) -> None:
        self.free_mib = list(free_mib)
        self.trims = 0

    def free_bytes(self) -> int:
        return MIB * self.free_mib.pop(0)

    def trim(self) -> None:
        self.trims += 1


@pytest.mark.parametrize(
    ("free_mib", "trims"),
    [
        pytest.param([1, 2, 3, 2], 0, id="a little"),
        pytest.param([1, 30, 60, 90], 0, id="more is being freed"),
        pytest.param([1, 30, 30, 30, 30, 30], 1, id="much, once"),
        pytest.param([30, 1, 20, 20, 19], 1, id="used, and freed again"),
        pytest.param([1, 30, 30, 30, 60, 60, 60], 2, id="much, after a trim"),
    ],
)
def test_memory_is_given_back_once_much_was_freed(free_mib: list[int], trims: int) -> None:
    allocator = Sized(*free_mib)
    freed = FreedMemory(allocator)
    while allocator.free_mib:
        freed.look()
    assert allocator.trims == trims


@ON_LINUX
def test_pages_between_pieces_in_use_are_given_back() -> None:
    found = subprocess.run([sys.executable, "-c", HOLED], capture_output=True, text=True, check=True)
    trims, given_mib = found.stdout.rsplit(maxsplit=1)
    assert trims == "[False, True, False]" and int(given_mib) > 40


@ON_LINUX
@pytest.mark.parametrize(
    ("environment", "of_the_system"), [({}, "0"), ({"MALLOC_MMAP_THRESHOLD_": "131072"}, "1")]
)
def test_the_memory_of_records_is_used_again(environment: dict[str, str], of_the_system: str) -> None:
    found = subprocess.run(
        [sys.executable, "-c", RECORDS],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | environment,
    )
    assert found.stdout.strip() == of_the_system


@ON_LINUX
def test_a_daemon_looks_at_its_memory_and_has_one_arena(tmp_path: Path) -> None:
    daemon, file, errors = DaemonProcess(tmp_path).format(), tmp_path / "looked", tmp_path / "errors"
    command = [sys.executable, "-c", LOOKING, str(file), "start", str(daemon.properties)]
    with (
        errors.open("w") as stderr,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr) as process,
    ):
        try:
            wait_until(file.exists, "a look")
        finally:
            process.terminate()
    assert process.returncode == 0
    arenas = {line for line in errors.read_text().splitlines() if line.startswith("Arena ")}
    assert arenas == {"Arena 0:"}
