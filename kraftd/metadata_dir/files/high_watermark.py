"""`high-watermark`: up to where this replica knew its log as committed, one line of JSON.

The file is written now and then, at a clean stop, and when a truncation below the high watermark is refused.
Thus it may be behind, and then it protects fewer records, but it is never ahead of what is committed and
synced. Apache Kafka ignores the file; its controllers keep the high watermark in memory only.
"""

from __future__ import annotations

import threading
from typing import Any

import msgspec
from msgspec import Struct

from kraftd.log.disk import Disk, write_atomically
from kraftd.log.errors import DirectoryProblem

FILE_NAME = "high-watermark"
VERSION = 0


class Refusal(Struct, frozen=True, rename="camel"):
    """A leader's demand that this replica has refused: to drop the records from `offset` on, some of which it
    knows as committed.

    `snapshot_offset` is the end of the leader's snapshot that was to replace the log, -1 for a truncation.
    """

    leader_id: int
    leader_epoch: int
    offset: int
    log_end_offset: int
    snapshot_offset: int = -1


class Mark(Struct, frozen=True, rename="camel"):
    """All records below `high_watermark` are committed; `epoch` is that of the last of them."""

    high_watermark: int = 0
    epoch: int = 0
    refused: Refusal | None = None


class HighWatermarkFile:
    """The file in a partition's directory, and the mark in it. Any thread may call its methods."""

    def __init__(self, disk: Disk, directory: str, mark: Mark) -> None:
        self.path = f"{directory}/{FILE_NAME}"
        self.mark = mark
        self._disk = disk
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<HighWatermarkFile {self.path} {self.mark}>"

    def advance(self, high_watermark: int, epoch: int) -> None:
        """Raise the mark, durably on return; a lower one changes nothing. Blocks. Raises StorageError.

        A refusal is over then: a quorum has committed more behind the records that it concerned.
        """
        with self._lock:
            if high_watermark > self.mark.high_watermark:
                self._write(Mark(high_watermark, epoch))

    def write(self, mark: Mark) -> None:
        """Replace the mark, durably on return. Blocks. Raises StorageError."""
        with self._lock:
            self._write(mark)

    def _write(self, mark: Mark) -> None:
        write_atomically(self._disk, self.path, encode_mark(mark))
        self.mark = mark


def read_mark(disk: Disk, directory: str) -> Mark:
    """The mark in a partition's directory; one of 0 without a file. Raises DirectoryProblem."""
    path = f"{directory}/{FILE_NAME}"
    try:
        data = disk.read_bytes(path)
    except FileNotFoundError:
        return Mark()
    try:
        return decode_mark(data)
    except ValueError as error:
        raise DirectoryProblem(
            f"{path} cannot be read: {error}. It keeps records that were committed from being truncated. "
            "Restore it; or move it aside, and only what is committed from now on is protected"
        ) from None


def encode_mark(mark: Mark) -> bytes:
    """The content of the file."""
    return msgspec.json.encode(msgspec.to_builtins(mark) | {"data_version": VERSION})


def decode_mark(data: bytes) -> Mark:
    """The mark in the content of a file. Raises ValueError with the fault."""
    try:
        fields: Any = msgspec.json.decode(data.split(b"\n", 1)[0])
        mark = msgspec.convert(fields, Mark)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error) if data else "it is empty") from None
    if fields.get("data_version") != VERSION:
        raise ValueError(f"data_version is {fields.get('data_version', 'missing')}; {VERSION} is known")
    if mark.high_watermark < 0 or mark.epoch < 0:
        raise ValueError(f"high watermark {mark.high_watermark} of epoch {mark.epoch} is none")
    return mark
