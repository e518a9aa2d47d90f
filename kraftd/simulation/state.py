"""The state machine of worlds without controllers: registers that the log's records set.

A record is `key=value`; a snapshot is one record a register.
"""

from __future__ import annotations

from kraftd.simulation.files import Files
from kraftd.wire.batch import values as batch_values


class Registers:
    """What the committed log says, read when it is asked for."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.next_offset = 0
        self.registers: dict[bytes, bytes] = {}

    def apply(self, value: bytes) -> None:
        key, _, rest = value.partition(b"=")
        self.registers[key] = rest

    def catch_up(self, end_offset: int) -> None:
        """Read the log, or the newest snapshot first where the log does not reach back."""
        log = self.files.log
        if self.next_offset < log.log_start:
            snapshot_id = log.snapshots[0]
            self.registers.clear()
            for record in self.files.snapshot_values(snapshot_id):
                self.apply(record)
            self.next_offset = snapshot_id.offset
        for batch in self.files.batches(self.next_offset, end_offset):
            if not batch.header.is_control:
                for value in batch_values(batch):
                    self.apply(bytes(value))
        self.next_offset = end_offset

    def values(self) -> list[bytes]:
        """The registers as records, in the order of their keys."""
        return [key + b"=" + value for key, value in sorted(self.registers.items())]

    def __repr__(self) -> str:
        return f"<Registers {len(self.registers)} to {self.next_offset}>"
