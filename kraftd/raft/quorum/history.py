"""The voter set and kraft.version in force at each offset, from the control records of snapshot and log.

A record is in force as soon as it is in the log, committed or not (KIP-853), until it is truncated. Records
of a snapshot count at its last contained offset: those of the bootstrap checkpoint (0-0) at -1.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Generic, TypeVar

from kraftd.messages.kraft_version_record import KRaftVersionRecord
from kraftd.messages.voters_record import VotersRecord
from kraftd.named_tuple import NamedTuple
from kraftd.raft.quorum.voters import NO_VOTERS, VoterSet
from kraftd.wire.batch import Batch, control_records, iter_batches

V = TypeVar("V")


class Entry(NamedTuple, Generic[V]):
    """A value and the offset of the record that set it."""

    offset: int
    value: V


class _Timeline(Generic[V]):
    """Values by ascending offset."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: list[Entry[V]] = []

    def add(self, offset: int, value: V) -> None:
        self.drop_from(offset)
        self.entries.append(Entry(offset, value))

    def at(self, offset: int) -> Entry[V] | None:
        index = bisect_right(self.entries, offset, key=lambda entry: entry.offset)
        return self.entries[index - 1] if index else None

    def drop_from(self, end_offset: int) -> None:
        while self.entries and self.entries[-1].offset >= end_offset:
            self.entries.pop()

    def drop_before(self, start_offset: int) -> None:
        """Forget the values that are superseded below `start_offset`. The value in force before it stays,
        because a record at the start may still be truncated.
        """
        index = bisect_right(self.entries, start_offset - 1, key=lambda entry: entry.offset)
        del self.entries[: max(0, index - 1)]


class ControlRecordHistory:
    """Voter sets and kraft.versions by offset. `static_voters` are in force until a record names voters."""

    __slots__ = ("_versions", "_voters", "static_voters")

    def __init__(self, static_voters: VoterSet = NO_VOTERS) -> None:
        self.static_voters = static_voters
        self._voters: _Timeline[VoterSet] = _Timeline()
        self._versions: _Timeline[int] = _Timeline()

    def read(self, data: bytes | memoryview, *, at_offset: int | None = None) -> bool:
        """Read the control records of whole batches of the log, or of a snapshot whose last contained offset
        is `at_offset`.

        Returns whether voters or kraft.version changed.  Raises CorruptBatch.
        """
        changed = False
        for batch in iter_batches(data, verify=False):
            changed |= self.read_batch(batch, at_offset=at_offset)
        return changed

    def read_batch(self, batch: Batch, *, at_offset: int | None = None) -> bool:
        """Read one batch; one without control records is ignored."""
        if not batch.header.is_control:
            return False
        changed = False
        for record in control_records(batch):
            offset = record.offset if at_offset is None else at_offset
            if isinstance(record.message, VotersRecord):
                self._voters.add(offset, VoterSet.from_record(record.message))
                changed = True
            elif isinstance(record.message, KRaftVersionRecord):
                self._versions.add(offset, record.message.kraft_version)
                changed = True
        return changed

    @property
    def voters(self) -> VoterSet:
        return self._voters.entries[-1].value if self._voters.entries else self.static_voters

    @property
    def previous_voters(self) -> VoterSet:
        """The voters that were in force before `voters`."""
        entries = self._voters.entries
        return entries[-2].value if len(entries) > 1 else self.static_voters

    @property
    def voters_offset(self) -> int | None:
        """Offset of the record that set `voters`; None while they are the static ones."""
        return self._voters.entries[-1].offset if self._voters.entries else None

    @property
    def kraft_version(self) -> int:
        return self._versions.entries[-1].value if self._versions.entries else 0

    def voters_at(self, offset: int) -> VoterSet:
        """The voter set in force at `offset`, for the header of a snapshot."""
        entry = self._voters.at(offset)
        return entry.value if entry else self.static_voters

    def kraft_version_at(self, offset: int) -> int:
        entry = self._versions.at(offset)
        return entry.value if entry else 0

    def truncate_to(self, end_offset: int) -> bool:
        """Undo the records at or past `end_offset`; returns whether there were any."""
        before = len(self._voters.entries), len(self._versions.entries)
        self._voters.drop_from(end_offset)
        self._versions.drop_from(end_offset)
        return before != (len(self._voters.entries), len(self._versions.entries))

    def forget_before(self, start_offset: int) -> None:
        """Note that the log starts at `start_offset` now: keep what is in force just before it, and after."""
        self._voters.drop_before(start_offset)
        self._versions.drop_before(start_offset)

    def clear(self) -> None:
        """Forget everything, before a snapshot is read that replaces the log."""
        self._voters.entries.clear()
        self._versions.entries.clear()

    def __repr__(self) -> str:
        return f"<ControlRecordHistory kraft.version {self.kraft_version}, {self.voters}>"
