"""Controllers' directories for tests: records in batches, segments with their indexes, checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from kraftd.log.segment import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, SegmentIndex, segment_name
from kraftd.messages.leader_change_message import LeaderChangeMessage, Voter
from kraftd.messages.snapshot_footer_record import SnapshotFooterRecord
from kraftd.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftd.messages.voters_record import Voter as QuorumVoter
from kraftd.messages.voters_record import VotersRecord
from kraftd.metadata.metadata_version import record_version
from kraftd.metadata_dir.files.checkpoint import checkpoint_name
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import ControlRecordType, build_batch, build_control_batch, iter_batches
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord, encode_record

CLUSTER_ID = "J8qXRwI-Qyi2G0guFTiuYw"
MS_PER_RECORD = 1000
START_MS = 1_700_000_000_000


def framed(message: Message, level: int = 30) -> bytes:
    """A record as the log of that metadata version contains it."""
    return encode_record(VersionedRecord(message, record_version(type(message), level)))


class LogDirectory:
    """A node's directory: `append` writes a batch, `roll` begins a segment, `snapshot` a checkpoint."""

    def __init__(self, path: Path, *, node_id: int = 1, voters: Sequence[int] = (1,), start: int = 0) -> None:
        self.path = path
        self.partition = path / "__cluster_metadata-0"
        self.partition.mkdir(parents=True)
        (path / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER_ID}\nnode.id={node_id}\n")
        self.voters = voters
        self.end_offset = start
        self.epoch = 0
        self.segment = start
        self.roll()

    @property
    def log(self) -> Path:
        """The current segment."""
        return self.partition / segment_name(self.segment, LOG_SUFFIX)

    def roll(self) -> None:
        """Begin a segment."""
        self.segment = self.end_offset
        self.log.touch()

    def elect(self, leader_id: int, epoch: int) -> None:
        """Write the first record of a leader."""
        self.epoch = epoch
        voters = [Voter(voter_id=voter) for voter in self.voters]
        message = LeaderChangeMessage(version=1, leader_id=leader_id, voters=voters, granting_voters=voters)
        record = (ControlRecordType.LEADER_CHANGE, message, 1)
        self.write(build_control_batch([record], self.end_offset, epoch, self.timestamp_ms()))

    def set_voters(self, *voters: int) -> None:
        """Write a voter set, as a leader does after a change since its election."""
        message = VotersRecord(voters=[QuorumVoter(voter_id=voter) for voter in voters])
        record = (ControlRecordType.KRAFT_VOTERS, message, 0)
        self.write(build_control_batch([record], self.end_offset, self.epoch, self.timestamp_ms()))

    def append(self, messages: Iterable[Message]) -> int:
        """Write one batch; return the offset of its first record."""
        first = self.end_offset
        self.write(build_batch([framed(each) for each in messages], first, self.epoch, self.timestamp_ms()))
        return first

    def write(self, batch: bytes) -> None:
        """Write a batch unchanged."""
        with self.log.open("ab") as file:
            file.write(batch)
        self.end_offset = [each.header.next_offset for each in iter_batches(batch)][-1]

    def timestamp_ms(self) -> int:
        return START_MS + MS_PER_RECORD * self.end_offset

    def index(self) -> None:
        """Write the index files of every segment."""
        for path in self.partition.glob("*.log"):
            base = int(path.stem)
            index = SegmentIndex(base, 200)
            for batch in iter_batches(path.read_bytes()):
                index.note(batch.header.last_offset, batch.header.max_timestamp_ms, batch.position)
            for suffix, content in (
                (OFFSET_INDEX_SUFFIX, index.offset_index_bytes()),
                (TIME_INDEX_SUFFIX, index.time_index_bytes()),
            ):
                (self.partition / segment_name(base, suffix)).write_bytes(content)

    def snapshot(self, end_offset: int, records: Sequence[VersionedRecord]) -> Path:
        """Write a checkpoint of these records."""
        path = self.partition / checkpoint_name(OffsetAndEpoch(end_offset, self.epoch))
        now = self.timestamp_ms()
        header = SnapshotHeaderRecord(last_contained_log_timestamp=now)
        data = build_control_batch([(ControlRecordType.SNAPSHOT_HEADER, header, 0)], 0, self.epoch, now)
        values = [encode_record(record) for record in records]
        if values:
            data += build_batch(values, 1, self.epoch, now)
        footer = (ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(), 0)
        data += build_control_batch([footer], 1 + len(values), self.epoch, now)
        path.write_bytes(data)
        return path
