"""What a keeper of snapshots logs if the directory cannot be read, as without a free file descriptor."""

from __future__ import annotations

from typing import Any

from kraftd.host.snapshot_keeper import SnapshotKeeper
from kraftd.log.errors import StorageFailure
from kraftd.requests.repeats import Repeats


class Clock:
    ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms


class Log:
    def __init__(self) -> None:
        self.seen: list[int] = []

    def error(self, text: str, **fields: Any) -> None:
        self.seen.append(fields["seen"])


class Keeper(SnapshotKeeper):
    """A keeper whose polls fail, without the rest of a node."""

    def __init__(self) -> None:
        self._timer = Clock()  # type: ignore[assignment]
        self._repeats = Repeats()
        self.log = Log()

    def start(self, first_poll_ms: int = 0) -> None: ...

    def poll(self) -> None:
        raise StorageFailure("cannot list /data: Too many open files")


def test_a_directory_that_cannot_be_read_is_logged_at_once_and_then_once_a_minute() -> None:
    keeper = Keeper()
    for _ in range(121):  # two polls a second
        keeper._poll_again()
        keeper._timer.ms += 500  # type: ignore[attr-defined]
    assert keeper.log.seen == [1, 120]
