"""Writes a replica's high watermark to the disk now and then, apart from every commit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kraftd.ground.ticks import next_tick_ms
from kraftd.log.errors import DiskFull

if TYPE_CHECKING:
    from kraftd.host.executors.core_executor import EffectExecutor
    from kraftd.host.ports import Handle
    from kraftd.raft.core import RaftCore


class HighWatermarkKeeper:
    """Polls every `interval_ms`; a high watermark that has not moved is not written again."""

    def __init__(self, executor: EffectExecutor, core: RaftCore, interval_ms: int) -> None:
        self._executor = executor
        self._core = core
        self._interval_ms = interval_ms
        self._timer = executor.ports.timer
        self._alarm: Handle | None = None
        self._writing = False

    def __repr__(self) -> str:
        return f"<HighWatermarkKeeper every {self._interval_ms} ms{', writing' if self._writing else ''}>"

    def start(self, first_ms: int | None = None) -> None:
        """Poll from then on."""
        at_ms = next_tick_ms(self._timer.now_ms(), self._interval_ms, first_ms)
        self._alarm = self._timer.call_at(at_ms, self._poll)

    def stop(self) -> None:
        """Stop polls."""
        if self._alarm is not None:
            self._alarm.cancel()

    def write(self) -> None:
        """Write the high watermark at a clean stop. Blocks. Raises StorageError."""
        storage = self._executor.storage
        mark = storage.new_mark(self._core.high_watermark)
        if mark is not None:
            try:
                storage.high_watermark.advance(*mark)
            except DiskFull:
                pass  # the older one stays

    def _poll(self) -> None:
        self.start()
        storage = self._executor.storage
        mark = None if self._writing else storage.new_mark(self._core.high_watermark)
        if mark is not None:
            self._writing = True
            self._executor.ports.work_threads.run(
                partial(storage.high_watermark.advance, *mark), self._written, self._failed
            )

    def _written(self, _: None) -> None:
        self._writing = False

    def _failed(self, error: Exception) -> None:
        self._writing = False
        if not isinstance(error, DiskFull):
            self._executor.fail(error)
