"""Random histories of a log with kills and losses of power at any time: what is opened equals the model."""

from __future__ import annotations

import random
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kraftd.log.data.flushing import FlushJob
from kraftd.log.data.opening import Found
from kraftd.log.data.retention import remove_expired
from kraftd.log.memory_disk import everything_survives
from tests.log.data.logs import DIRECTORY, NOW_MS, SMALL, append, batch, content, new_log, reopened

SETTINGS = SMALL._replace(segment_bytes=500, retention_bytes=1500, retention_ms=-1, segment_index_bytes=100)


class Written(NamedTuple):
    base: int
    last: int
    epoch: int
    data: bytes


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.disk, self.log = new_log(settings=SETTINGS, max_tail_bytes=400)
        self.batches: list[Written] = []
        self.history: set[bytes] = set()
        self.log_start = self.log_end = 0
        self.epoch = 1
        self.flushed = 0
        self.job: FlushJob | None = None

    # --- steps of a partition ---

    @rule(
        gap=st.sampled_from([0, 0, 0, 0, 1, 7]),
        count=st.integers(1, 4),
        extra=st.integers(0, 2),
        raised=st.booleans(),
        size=st.integers(5, 60),
    )
    def append(self, gap: int, count: int, extra: int, raised: bool, size: int) -> None:
        self.epoch += raised
        written, base = [], self.log_end + gap
        for _ in range(1 + extra):
            data = batch(base, count, self.epoch, timestamp_ms=base, size=size)
            written.append(Written(base, base + count - 1, self.epoch, data))
            base += count
        if sum(len(each.data) for each in written) > SETTINGS.segment_bytes:
            return
        append(self.log, *(each.data for each in written))
        self.batches += written
        self.history.update(each.data for each in written)
        self.log_end = base

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule(back=st.integers(1, 12))
    def truncate(self, back: int) -> None:
        offset = max(0, self.log_end - back)
        self.log.truncate_to(offset, NOW_MS)
        self.batches = [each for each in self.batches if each.last < offset]
        if offset < self.log_end:
            self.log_end = offset
            self.log_start = min(self.log_start, offset)
        self.flushed = min(self.flushed, offset)
        self.epoch += 1

    @rule(ahead=st.integers(0, 30))
    def truncate_fully(self, ahead: int) -> None:
        offset = self.log_start + ahead
        self.log.truncate_fully_and_start_at(offset, NOW_MS)
        self.batches, self.log_start, self.log_end = [], offset, offset
        self.flushed = min(self.flushed, offset)
        self.epoch += 1

    @rule(ahead=st.integers(1, 20))
    def delete_before(self, ahead: int) -> None:
        offset = min(self.log_start + ahead, self.log_end)
        self.log.increment_log_start(offset)
        self.log_start = max(self.log_start, offset)

    @rule()
    def retain(self) -> None:
        remove_expired(self.log, NOW_MS, self.log_end)
        self.log_start = max(self.log_start, self.log.log_start)

    @rule()
    def flush(self) -> None:
        self.log.flush(NOW_MS)

    @rule()
    def begin_flush(self) -> None:
        self.job = self.job or self.log.begin_flush()

    @precondition(lambda self: self.job is not None)
    @rule()
    def end_flush(self) -> None:
        assert self.job is not None
        self.job.run()
        self.log.end_flush(self.job, NOW_MS)
        self.job = None

    # --- ends of the process ---

    def reopen(self, found: Found) -> None:
        self.job = None
        self.log, _ = reopened(self.disk, found, SETTINGS)

    @rule()
    def restart(self) -> None:
        if self.job is not None:
            self.end_flush()
        self.log.close(NOW_MS)
        self.disk = self.disk.after_crash(everything_survives)
        self.reopen(Found(self.log_start, self.log.recovery_point, clean=True))
        self.check_ends()

    @rule(torn=st.integers(0, 60), checkpoint=st.floats(0, 1))
    def kill(self, torn: int, checkpoint: float) -> None:
        """A process is killed, perhaps within a write: what was appended before is all there."""
        path = self.log.segments[-1].path(DIRECTORY)
        if torn:
            size = self.disk.size_bytes(path)
            self.disk.open(path).write(size, batch(self.log_end, 2, self.epoch, size=30)[:torn])
        self.disk = self.disk.after_crash(everything_survives)
        point = int(self.log.recovery_point * checkpoint)
        self.reopen(Found(self.log_start, point))
        self.check_ends()

    @rule(seed=st.integers(0, 1 << 32), checkpoint=st.floats(0, 1))
    def lose_power(self, seed: int, checkpoint: float) -> None:
        """Some of what was not flushed is gone; what was flushed is there."""
        draw = random.Random(seed)
        flushed = self.log.recovery_point
        self.disk = self.disk.after_crash(draw.randrange)
        self.reopen(Found(min(self.log_start, flushed), int(flushed * checkpoint)))
        found = content(self.log)
        assert all(data in self.history for data in found)
        there = set(found)
        start = self.log.log_start
        lost = [each for each in self.batches if each.last < flushed and each.base >= start]
        assert all(each.data in there for each in lost if each.base >= self.log_start)
        self.batches = [self.parsed(data) for data in found]
        self.log_start, self.log_end = self.log.log_start, self.log.log_end
        self.epoch += 1

    @staticmethod
    def parsed(data: bytes) -> Written:
        base = int.from_bytes(data[:8], "big")
        last = base + int.from_bytes(data[23:27], "big")
        return Written(base, last, int.from_bytes(data[12:16], "big"), data)

    # --- what must hold ---

    def check_ends(self) -> None:
        assert self.log.log_start == self.log_start
        end = self.batches[-1].last + 1 if self.batches else 0
        assert end <= self.log.log_end <= max(self.log_end, self.log.segments[-1].base_offset)
        self.log_end = self.log.log_end  # of a log truncated within a batch, it is that batch's first offset

    @invariant()
    def the_records_are_those_of_the_model(self) -> None:
        assert (self.log.log_start, self.log.log_end) == (self.log_start, self.log_end)
        assert self.log.recovery_point <= self.log_end
        wanted = [each.data for each in self.batches if each.last >= self.log_start]
        assert content(self.log) == wanted

    @invariant()
    def the_epochs_are_those_of_the_batches(self) -> None:
        for each in self.batches:
            if each.base >= self.log_start:
                assert self.log.epochs.epoch_of(each.base) == each.epoch


LogMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
TestLogMachine = LogMachine.TestCase
