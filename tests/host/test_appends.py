"""The appends of one step to one log are written together, to the bytes of one after another."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any, cast

import pytest

from kraftd.broker_node.effects import AppendToLog
from kraftd.host.broker_logs.appending import Appends
from kraftd.host.ports import Ports
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.errors import DiskFull, StorageError
from kraftd.log.memory_disk import MemoryDisk
from kraftd.partition.effects import AppendBatches
from kraftd.wire.batch import iter_batches
from kraftd.wire.error_code import ErrorCode
from tests.log.data.logs import DIRECTORY, NOW_MS, TOPIC, batch, content, new_log

KEY = (TOPIC, 0)
STEP_MS = 3
Ended = tuple[int, int, ErrorCode | None]  # base and end offset of an append, and what failed it


class Steps:
    """Steps that append to one log, as a broker's executor drives them."""

    def __init__(self, settings: DataLogSettings) -> None:
        self.disk, self.log = new_log(MemoryDisk(), settings)
        self.failed: list[StorageError] = []
        self.written: list[str] = []
        self.clock_ms = NOW_MS
        ports = Ports(*[cast(Any, self)] * 5, self.failed.append)
        self.appends = Appends({KEY: self.log}, ports, lambda key, at: (), self.written.append, self._failed)

    def now_ms(self) -> int:
        self.clock_ms += STEP_MS
        return self.clock_ms

    def wall_ahead_ms(self) -> int:
        return 0

    def _failed(self, key: Any, log: DataLog, error: StorageError) -> None:
        self.failed.append(error)

    def add(self, data: bytes) -> None:
        self.appends.add(AppendToLog(*KEY, [append_of(data)]))

    def step(self, batches: Iterable[bytes]) -> list[Ended]:
        for one in batches:
            self.add(one)
        return self.take()

    def take(self) -> list[Ended]:
        ended = self.appends.take()
        writes = () if ended is None else ended.writes
        assert all((one.topic, one.partition) == KEY for one in writes)
        return [(each.base_offset, each.end_offset, one.error) for one in writes for each in one.appends]

    def files(self) -> dict[str, bytes]:
        """What a clean stop leaves of the log."""
        self.log.close(NOW_MS)
        return {
            name: self.disk.open(f"{DIRECTORY}/{name}").read(0, 1 << 20)
            for name in self.disk.list_names(DIRECTORY)
        }


def append_of(data: bytes) -> AppendBatches:
    headers = tuple(one.header for one in iter_batches(data))
    return AppendBatches(headers[0].base_offset, headers[-1].next_offset, headers, (memoryview(data),))


def batches_of(seed: int, count: int) -> list[bytes]:
    """Batches of many sizes, with timestamps that run back and far ahead, and two epochs."""
    rng, found, offset = random.Random(seed), [], 0
    for at in range(count):
        records = rng.randint(1, 4)
        timestamp_ms = NOW_MS + rng.choice((0, 1, 7, 50, 900)) * rng.choice((1, 1, 1, -1))
        found.append(batch(offset, records, 1 + at * 2 // count, timestamp_ms, rng.choice((5, 20, 200))))
        offset += records + rng.choice((0, 0, 0, 3))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_files_are_those_of_one_append_after_another(seed: int) -> None:
    rng, batches = random.Random(seed + 1000), batches_of(seed, 80)
    settings = DataLogSettings(
        segment_bytes=rng.choice((900, 3_000, 100_000)),
        segment_ms=rng.choice((60, 1_000, 1 << 40)),
        index_interval_bytes=rng.choice((0, 200)),
        segment_index_bytes=rng.choice((48, 96, 10 << 10)),
    )
    together, alone = Steps(settings), Steps(settings)
    ended: list[Ended] = []
    left = list(batches)
    while left:
        count = rng.randint(1, 6)
        some, left = left[:count], left[count:]
        ended += together.step(some)
    assert ended == [one for data in batches for one in alone.step([data])]
    assert all(error is None for _, _, error in ended) and len(together.log.segments) == len(
        alone.log.segments
    )
    assert content(together.log) == batches
    assert together.files() == alone.files()


def test_five_batches_are_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(DataLogSettings())
    steps.step([batch(0)])
    calls: list[Sequence[Any]] = []
    appended = DataLog.append
    monkeypatch.setattr(
        DataLog, "append", lambda log, views, *rest: calls.append(views) or appended(log, views, *rest)
    )
    ended = steps.step([batch(at) for at in range(1, 6)])
    assert [len(views) for views in calls] == [5]
    assert ended == [(at, at + 1, None) for at in range(1, 6)]
    assert len(steps.written) == 2, "a directory that was full is written again"


def test_a_write_that_fails_fails_all_and_those_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(DataLogSettings())
    steps.step([batch(0)])

    def full(*_: Any) -> None:
        raise DiskFull("no space")

    with monkeypatch.context() as patch:
        patch.setattr(DataLog, "append", full)
        for at in (1, 2):
            steps.add(batch(at))
        steps.appends.write()
    steps.add(batch(3))  # its producer's sequence follows that of the failed one
    assert [error for _, _, error in steps.take()] == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
    assert len(steps.failed) == 1 and steps.log.log_end == 1
    assert steps.step([batch(1)]) == [(1, 2, None)], "the next step writes again"


def test_the_time_of_writes_is_that_of_the_step() -> None:
    steps = Steps(DataLogSettings())
    for at in range(3):
        steps.add(batch(at))
    ended = steps.appends.take()
    assert ended is not None and ended.took_ms >= STEP_MS
    assert steps.appends.take() is None
