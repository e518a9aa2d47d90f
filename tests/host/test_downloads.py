"""The thread that writes a leader's snapshot: in order, off the loop, waiting only on a full disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pytest
import structlog

from kraftd.host.snapshots.downloads import MAX_WAITING_BYTES, Downloads
from kraftd.host.snapshots.snapshot_download import SnapshotDownload
from kraftd.log.errors import DiskFull, StorageFailure
from kraftd.messages.fetch_response import FetchResponse
from kraftd.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftd.metadata_dir.files.checkpoint import checkpoint_path, list_checkpoints
from kraftd.raft import effects
from kraftd.raft.events import ResponseReceived, SnapshotFinished, SnapshotRefused
from kraftd.runtime.threads import RealDiskThread
from tests.controller_node.test_snapshot_download import DIRECTORY, ID, PIECE_BYTES, WHOLE, follower
from tests.runtime.daemon_process import WAIT_S


class Loop:
    """Runs the calls that the thread requests, like a loop's callbacks, when the test asks for it."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[tuple[Callable[..., object], tuple[Any, ...]]] = SimpleQueue()
        self.stepped: list[Any] = []
        self.failures: list[BaseException] = []

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> None:
        self.calls.put((function, arguments))

    def run_next(self) -> None:
        """Wait for the next call and run it."""
        function, arguments = self.calls.get(timeout=WAIT_S)
        function(*arguments)

    def until(self, condition: Callable[[], object]) -> None:
        while not condition():
            self.run_next()


class Download:
    """A follower's download on a disk in memory, with a loop that the test runs."""

    def __init__(self) -> None:
        self.disk, log = follower()
        self.loop = Loop()
        self.thread = RealDiskThread("download", self.loop.call_soon, self.loop.failures.append, retry_s=0)
        self.downloads = Downloads(
            SnapshotDownload(self.disk, log), self.thread, self.loop.stepped.append, structlog.get_logger()
        )

    def deliver(self, data: bytes = WHOLE) -> None:
        self.downloads.begin(effects.BeginSnapshot(ID))
        for at in range(0, len(data), PIECE_BYTES):
            self.downloads.write(effects.WriteSnapshot(ID, at, data[at : at + PIECE_BYTES]))
        self.downloads.finish(effects.FinishSnapshot(ID))

    def whole(self) -> bool:
        return self.disk.read_bytes(checkpoint_path(DIRECTORY, ID)) == WHOLE


@pytest.fixture
def download() -> Iterator[Download]:
    download = Download()
    yield download
    download.disk.fault = None
    download.thread.stop()


def test_a_snapshot_is_written_and_named_off_the_loop(download: Download) -> None:
    threads: set[int] = set()
    download.disk.fault = lambda *_: threads.add(threading.get_ident())
    download.deliver()
    download.loop.until(lambda: download.loop.stepped)
    [finished] = download.loop.stepped
    assert type(finished) is SnapshotFinished and finished.size_bytes == len(WHOLE)
    assert download.whole()
    assert len(threads) == 1 and threading.get_ident() not in threads


def test_a_damaged_download_is_deleted_and_refused(download: Download) -> None:
    download.deliver(WHOLE[:-1])
    download.loop.until(lambda: download.loop.stepped)
    assert download.loop.stepped == [SnapshotRefused(ID)]
    assert list_checkpoints(download.disk, DIRECTORY) == ([], [])


def test_an_abandoned_download_leaves_no_file(download: Download) -> None:
    download.downloads.begin(effects.BeginSnapshot(ID))
    download.downloads.write(effects.WriteSnapshot(ID, 0, WHOLE[:PIECE_BYTES]))
    download.downloads.abandon(effects.AbandonSnapshot(ID))
    download.thread.stop()
    assert list_checkpoints(download.disk, DIRECTORY) == ([], [])


def faults(kind: type[Exception]) -> list[int]:
    """The numbers of the operations of a whole download."""
    download = Download()
    before = download.disk.operations
    download.deliver()
    download.loop.until(lambda: download.loop.stepped)
    download.thread.stop()
    return list(range(1, download.disk.operations - before + 1))


@pytest.mark.parametrize("at", faults(DiskFull))
def test_a_full_disk_at_any_operation_delays_the_download(download: Download, at: int) -> None:
    """A failed sync never counts as a full disk, whatever the reason, as on the real disk."""
    remaining = [at, 3]

    def full(operation: str, path: str) -> None:
        remaining[0] -= 1
        if remaining[0] <= 0 and remaining[1] > 0 and operation != "sync":
            remaining[1] -= 1
            raise DiskFull(f"no room to {operation} {path}")

    download.disk.fault = full
    download.deliver()
    download.loop.until(lambda: download.loop.stepped)
    assert not download.loop.failures
    assert download.whole()


@pytest.mark.parametrize("at", faults(StorageFailure))
def test_a_failed_operation_ends_the_process_and_never_names_a_partial_file(
    download: Download, at: int
) -> None:
    remaining = [at]

    def fail(operation: str, path: str) -> None:
        remaining[0] -= 1
        if remaining[0] == 0:
            raise StorageFailure(f"cannot {operation} {path}")

    download.disk.fault = fail
    download.deliver()
    download.loop.until(lambda: download.loop.failures)
    assert not download.loop.stepped
    names, _ = list_checkpoints(download.disk, DIRECTORY)
    assert not names or download.whole()


def test_while_the_disk_lags_the_next_piece_is_held_back(download: Download) -> None:
    may_write, loop = threading.Event(), download.loop

    def wait(*_: str) -> None:
        assert may_write.wait(WAIT_S)

    download.disk.fault = wait
    download.downloads.begin(effects.BeginSnapshot(ID))
    piece = bytes(1 << 20)
    for at in range(0, MAX_WAITING_BYTES + 1, len(piece)):
        download.downloads.write(effects.WriteSnapshot(ID, at, piece))
    next_piece = ResponseReceived(7, FetchSnapshotResponse())
    download.downloads.received(next_piece)
    assert loop.stepped == [], "the next piece is held back"
    other = ResponseReceived(8, FetchResponse())
    download.downloads.received(other)
    assert loop.stepped == [other], "other responses are not"
    may_write.set()
    loop.until(lambda: len(loop.stepped) == 2)
    assert loop.stepped == [other, next_piece]
