"""Reads partitions for the coordinators of their broker, in threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kraftd.broker_node.effects import ReadPartition
from kraftd.broker_node.events import PartitionRead
from kraftd.ground.event import Event
from kraftd.host.ports import Ports
from kraftd.log.data.reading import run_cold
from kraftd.log.errors import CorruptStorage
from kraftd.log_dirs.directories import LogDirectories


class PartitionReads:
    """`step` steps the node with what was read."""

    def __init__(self, directories: LogDirectories, ports: Ports, step: Callable[[Event], None]) -> None:
        self._directories = directories
        self._ports = ports
        self._step = step

    def __repr__(self) -> str:
        return f"<PartitionReads of {self._directories!r}>"

    def read(self, effect: ReadPartition) -> None:
        """Read; PartitionRead comes back in a later callback."""
        log = self._directories.logs.get((effect.topic, effect.partition))
        where = effect.topic, effect.partition, effect.leader_epoch
        if log is None:
            lost = PartitionRead(*where, b"", "the log is not open")
            self._ports.timer.call_soon(self._step, lost)
            return
        read = log.cold_read(max(effect.offset, log.log_start), effect.max_bytes, log.log_end)

        def failed(error: Exception) -> None:
            if log.cut_count != read.cut_count:  # a cleaning has replaced the files
                self.read(effect)
            else:
                is_damaged = isinstance(error, CorruptStorage)
                self._step(PartitionRead(*where, b"", str(error), is_damaged))

        def done(data: bytes | memoryview) -> None:
            self._step(PartitionRead(*where, data))

        disk = self._directories.resources.disk
        self._ports.work_threads.run(partial(run_cold, disk, read), done, failed)
