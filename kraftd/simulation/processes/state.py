"""The state machines: registers that the log's records set, or the image of the metadata.

A snapshot of either is read back into the same state.
"""

from __future__ import annotations

from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import LATEST_PRODUCTION, METADATA_VERSION
from kraftd.metadata.state import BROKER_RESOURCE
from kraftd.simulation.processes.files import Files
from kraftd.wire.batch import values as batch_values
from kraftd.wire.record_frame import VersionedRecord, decode_record, encode_record


def register_value(key: str, value: str) -> bytes:
    """The record that sets a register: a dynamic default of all brokers."""
    return encode_record(VersionedRecord(ConfigRecord(BROKER_RESOURCE, "", key, value), 0))


def first_value() -> bytes:
    """The record of metadata.version, which determines the versions of all others; without it there are no
    snapshots.
    """
    return encode_record(VersionedRecord(FeatureLevelRecord(METADATA_VERSION, LATEST_PRODUCTION), 0))


class Registers:
    """Registers as the committed log sets them, read on demand."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.next_offset = 0
        self.registers: dict[str, str | None] = {}
        self.first: list[bytes] = []

    def apply(self, value: bytes | memoryview) -> None:
        message = decode_record(memoryview(value)).message
        if isinstance(message, ConfigRecord):
            self.registers[message.name] = message.value
        else:
            self.first = [first_value()]

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
                    self.apply(value)
        self.next_offset = end_offset

    def values(self) -> list[bytes]:
        """The registers as records, in the order of their keys."""
        found = sorted(self.registers.items())
        return [*self.first, *(register_value(key, value or "") for key, value in found)]

    def __repr__(self) -> str:
        return f"<Registers {len(self.registers)} to {self.next_offset}>"


class Metadata:
    """The state machine of worlds with controllers: an image of its own, replayed from the same log.

    `created` are the ids of all topics that the log ever created, as far as it was read.
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self.next_offset = 0
        self.image = Image()
        self.created: dict[bytes, str] = {}

    def catch_up(self, end_offset: int) -> None:
        """Read the log, or the newest snapshot first where the log does not reach back."""
        log = self.files.log
        if self.next_offset < log.log_start:
            snapshot_id = log.snapshots[0]
            self.image = Image()
            for record in self.files.snapshot_values(snapshot_id):
                self._apply(record, snapshot_id.offset - 1, snapshot_id.epoch)
            self.next_offset = snapshot_id.offset
        for batch in self.files.batches(self.next_offset, end_offset):
            if not batch.header.is_control:
                offset = batch.header.base_offset
                for value in batch_values(batch):
                    self._apply(value, offset, batch.header.leader_epoch)
                    offset += 1
            self.next_offset = batch.header.next_offset  # damage may follow, which is tried again
        self.next_offset = max(self.next_offset, end_offset)

    def _apply(self, value: bytes | memoryview, offset: int, epoch: int) -> None:
        message = decode_record(memoryview(value)).message
        self.image.apply(message, offset, epoch)
        if isinstance(message, TopicRecord):
            self.created[message.topic_id] = message.name

    def values(self) -> list[bytes]:
        """The image written back as records."""
        return image_values(self.image)

    def __repr__(self) -> str:
        return f"<Metadata to {self.next_offset}, {self.image!r}>"


def image_values(image: Image) -> list[bytes]:
    """An image as a snapshot's records."""
    return [encode_record(record) for record in image.records()]
