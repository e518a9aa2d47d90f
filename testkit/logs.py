"""Reads metadata directories offline, and checks invariants between them (S1-S6, S9, S13, C1).

It only reads files, so it can examine directories of running controllers as well: it stops reading at a
half-written batch.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kraftd.log.disk import RealDisk
from kraftd.messages.leader_change_message import LeaderChangeMessage
from kraftd.messages.voters_record import VotersRecord
from kraftd.metadata.image import Image
from kraftd.metadata_dir.files.checkpoint import CheckpointReader, parse_checkpoint_name
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import Batch, CorruptBatch, control_records, read_batch, values
from kraftd.wire.record_frame import decode_record, encode_record

PARTITION = "__cluster_metadata-0"
_READS = 5  # of a log whose segments go while it is read


class Broken(AssertionError):
    """A broken invariant: its name, then the contradiction."""


class Entry(NamedTuple):
    """One batch of a log."""

    base: int
    end: int  # the offset after its last record
    epoch: int
    data: bytes


@dataclass(frozen=True)
class DirectoryLog:
    """The content of one directory: the newest snapshot, and the batches after or beside it."""

    directory: Path
    start: int
    entries: Sequence[Entry]
    snapshot: OffsetAndEpoch | None

    def __repr__(self) -> str:
        return f"<DirectoryLog {self.directory.parent.name} {self.start}..{self.end} epoch {self.epoch}>"

    @property
    def end(self) -> int:
        return self.entries[-1].end if self.entries else self.start

    @property
    def epoch(self) -> int:
        return self.entries[-1].epoch if self.entries else 0

    def image(self, end_offset: int) -> Image:
        """The image of everything below an offset."""
        image, done = Image(), 0
        if self.snapshot is not None and self.snapshot.offset <= end_offset:
            reader = CheckpointReader(RealDisk(), str(self._checkpoint(self.snapshot)))
            for batch in reader.values():
                for value in batch:
                    image.apply(decode_record(value).message, self.snapshot.offset - 1, self.snapshot.epoch)
            reader.close()
            done = self.snapshot.offset
        for entry in self.entries:
            batch_read = read_batch(entry.data, verify=False)
            if entry.base >= done and entry.end <= end_offset and not batch_read.header.is_control:
                for offset, value in enumerate(values(batch_read), entry.base):
                    image.apply(decode_record(value).message, offset, entry.epoch)
        return image

    def control_messages(self, end_offset: int) -> list[tuple[int, object]]:
        """(epoch, message) of every control record of the log below an offset."""
        found: list[tuple[int, object]] = []
        for entry in self.entries:
            batch: Batch = read_batch(entry.data, verify=False)
            if entry.end <= end_offset and batch.header.is_control:
                found += [(entry.epoch, record.message) for record in control_records(batch)]
        return found

    def _checkpoint(self, snapshot_id: OffsetAndEpoch) -> Path:
        return self.directory / PARTITION / f"{snapshot_id.offset:020}-{snapshot_id.epoch:010}.checkpoint"


def read_log(directory: Path) -> DirectoryLog:
    """The log in a formatted directory, up to its first incomplete batch.

    The node may run: if it removes a segment meanwhile, all is read again. Raises Broken if offsets or epochs
    go back.
    """
    for _ in range(_READS - 1):
        try:
            return _read_log(directory)
        except FileNotFoundError:
            continue
    return _read_log(directory)


def _read_log(directory: Path) -> DirectoryLog:
    partition = directory / PARTITION
    ids = [parse_checkpoint_name(path.name) for path in partition.glob("*.checkpoint")]
    snapshot = max((one for one in ids if one is not None and one.offset > 0), default=None)
    entries: list[Entry] = []
    for segment in sorted(partition.glob("*.log")):
        data, position = segment.read_bytes(), 0
        while position < len(data):
            try:
                header = read_batch(data, position).header
            except CorruptBatch:
                break
            entry = Entry(
                header.base_offset,
                header.next_offset,
                header.leader_epoch,
                data[position : position + header.size_bytes],
            )
            if entries and (entry.base != entries[-1].end or entry.epoch < entries[-1].epoch):
                raise Broken(f"S4: {segment}: {entry[:3]} after {entries[-1][:3]}")
            entries.append(entry)
            position += header.size_bytes
    start = entries[0].base if entries else (snapshot.offset if snapshot else 0)
    return DirectoryLog(directory, start, entries, snapshot)


def digest(image: Image) -> str:
    """A hash over the image as records: equal for equal images."""
    hashed = hashlib.sha256()
    for text in sorted(encode_record(record).hex() for record in image.records()):
        hashed.update(text.encode())
    return hashed.hexdigest()


class Ledger:
    """All records that were ever observed as committed, and the leader of each epoch.

    Tests keep it from one check to the next.
    """

    def __init__(self) -> None:
        self.committed: dict[int, Entry] = {}
        self.leaders: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"<Ledger of {len(self.committed)} batches, epochs {sorted(self.leaders)[-5:]}>"

    def check(self, logs: Iterable[DirectoryLog], high_watermark: int) -> Image:
        """Compare the logs of healed nodes, which have everything below the high watermark, with each other.

        They are also compared with earlier observations. Returns the image there. Raises Broken.
        """
        logs = list(logs)
        for log in logs:
            if log.end < high_watermark:
                raise Broken(f"S5: {log} lacks some of what is committed below {high_watermark}")
            self._check_committed(log, high_watermark)
            self._check_elections(log, high_watermark)
            check_voter_changes(log, high_watermark)
        for one, other in pairwise(logs):
            check_prefixes(one, other)
        images = [log.image(high_watermark) for log in logs]
        digests = {digest(image) for image in images}
        if len(digests) != 1:
            raise Broken(f"C1: images at {high_watermark} differ: {logs}")
        return images[0]

    def led(self, epoch: int, leader_id: int) -> None:
        """Note the leader of an epoch. Raises Broken if the epoch has another leader."""
        if leader_id >= 0 and self.leaders.setdefault(epoch, leader_id) != leader_id:
            raise Broken(f"S1: {self.leaders[epoch]} and {leader_id} lead epoch {epoch}")

    def _check_committed(self, log: DirectoryLog, high_watermark: int) -> None:
        entries = {entry.base: entry for entry in log.entries}
        for base, entry in self.committed.items():
            if base >= log.start and entries.get(base) != entry:
                raise Broken(f"S6: {log} holds {entries.get(base)} where {entry} was committed")
        for entry in log.entries:
            if entry.end <= high_watermark:
                self.committed.setdefault(entry.base, entry)

    def _check_elections(self, log: DirectoryLog, high_watermark: int) -> None:
        for epoch, message in log.control_messages(high_watermark):
            if isinstance(message, LeaderChangeMessage):
                self.led(epoch, message.leader_id)


def check_prefixes(one: DirectoryLog, other: DirectoryLog) -> None:
    """S4: if two logs have a batch of the same offset and epoch, all batches before it are equal."""
    ours = {entry.base: entry for entry in one.entries}
    shared = [(ours[entry.base], entry) for entry in other.entries if entry.base in ours]
    last = max((at for at, (first, second) in enumerate(shared) if first.epoch == second.epoch), default=-1)
    for first, second in shared[: last + 1]:
        if first != second:
            raise Broken(
                f"S4: {one} and {other} differ at {first[:3]} and {second[:3]}, then agree on an epoch"
            )


def check_voter_changes(log: DirectoryLog, high_watermark: int) -> None:
    """S13: from one voters record to the next, at most one voter is added or removed."""
    sets = [
        {(voter.voter_id, bytes(voter.voter_directory_id)) for voter in message.voters}
        for _, message in log.control_messages(high_watermark)
        if isinstance(message, VotersRecord)
    ]
    for before, after in pairwise(sets):
        if len(before ^ after) > 1:
            raise Broken(f"S13: {log}: the voters change from {before} to {after} at once")


class ElectionWatch(threading.Thread):
    """Reads the quorum-state of directories repeatedly: epochs never go back, no vote changes (S1-S3)."""

    def __init__(self, directories: Iterable[Path], ledger: Ledger) -> None:
        super().__init__(name="election-watch", daemon=True)
        self.directories, self._ledger = list(directories), ledger
        self.broken: list[str] = []
        self._last: dict[str, tuple[int, tuple[int, str]]] = {}
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.wait(0.02):
            self.poll()

    def stop(self) -> None:
        self._stopping.set()
        self.join(10)
        self.poll()

    def forget(self, directory: Path) -> None:
        """Note that the files of a directory were restored to an older state."""
        self._last.pop(_identity(directory) or "", None)

    def poll(self) -> None:
        for directory in self.directories:
            identity = _identity(directory)
            try:
                state = json.loads((directory / PARTITION / "quorum-state").read_text())
            except (OSError, ValueError):
                continue  # it is being formatted or wiped
            if identity is not None and identity == _identity(directory):
                try:
                    self._compare(identity, state)
                except Broken as error:
                    self.broken.append(str(error))

    def _compare(self, identity: str, state: dict[str, object]) -> None:
        epoch, voted_id, leader_id = state["leaderEpoch"], state["votedId"], state["leaderId"]
        assert isinstance(epoch, int) and isinstance(voted_id, int) and isinstance(leader_id, int)
        vote = voted_id, str(state.get("votedDirectoryId", ""))
        before = self._last.get(identity)
        if before is not None:
            if epoch < before[0]:
                raise Broken(f"S2: the epoch of {identity} goes back from {before[0]} to {epoch}")
            if epoch == before[0] and vote[0] >= 0 and before[1][0] >= 0 and vote != before[1]:
                raise Broken(f"S3: {identity} votes for {before[1]} and {vote} in epoch {epoch}")
        if before is None or epoch > before[0] or vote[0] >= 0:
            self._last[identity] = epoch, vote
        self._ledger.led(epoch, leader_id)


def _identity(directory: Path) -> str | None:
    """A directory's id."""
    try:
        lines = (directory / "meta.properties").read_text().splitlines()
    except OSError:
        return None
    found = [line.partition("=")[2] for line in lines if line.startswith("directory.id=")]
    return found[0].replace("\\", "") if found else None
