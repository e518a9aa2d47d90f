"""A log of what Apache Kafka's own controller decides.

Its ReplicationControlManager decides (`tests/controller/java`), and the log has its records as its
QuorumController appends them: 10,000 at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.metadata.metadata_version import record_version
from kraftd.wire.codec import encode_bytes
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord
from tests.controller.oracle import ControllerOracle
from tests.spark.logs import LogDirectory

LEVEL = 30
MAX_RECORDS = 10_000


class KafkaLog:
    """A log of Kafka's decisions, and why each changed the leader of a partition."""

    def __init__(self, oracle: ControllerOracle, directory: LogDirectory) -> None:
        self.oracle = oracle
        self.directory = directory
        self.directory.elect(1, 1)
        self.causes: dict[int, str] = {}  # by offset
        self.epochs: Counter[tuple[bytes, int, str]] = Counter()  # leader and partition epoch of partitions
        oracle.start(1)

    def write(self, *messages: Message) -> None:
        """Records that Kafka is given, and takes as they are."""
        for part in in_batches(messages):
            self.oracle.replay([VersionedRecord(one, record_version(type(one), LEVEL)) for one in part])
            self.append(part)

    def decide(self, line: str, cause: str = "", moves: int = 0) -> None:
        """Append what Kafka decides, which changes so many leaders for this cause."""
        answer = self.oracle.run(line)
        assert answer.error is None, answer.error
        for part in in_batches([record.message for record in answer.records]):
            for offset, one in enumerate(part, self.append(part)):
                if isinstance(one, PartitionChangeRecord) and one.leader != -2:
                    self.causes[offset] = cause
                    moves -= 1
        assert moves == 0, f"{-moves} more than expected"

    def request(self, name: str, message: Message, version: int, cause: str = "", moves: int = 0) -> None:
        self.decide(f"{name} {version} {encode_bytes(message, version).hex()}", cause, moves)

    def append(self, messages: Sequence[Message]) -> int:
        """Append records that Kafka is not given; return the offset of the first."""
        for one in messages:
            if isinstance(one, PartitionChangeRecord):
                self.epochs[one.topic_id, one.partition_id, "partition"] += 1
                self.epochs[one.topic_id, one.partition_id, "leader"] += one.leader != -2
        return self.directory.append(messages)


def in_batches(messages: Sequence[Message]) -> Iterable[Sequence[Message]]:
    return (messages[at : at + MAX_RECORDS] for at in range(0, len(messages), MAX_RECORDS))


def registered(broker: int, epoch: int, rack: str | None = None) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker, broker_epoch=epoch, incarnation_id=bytes([broker]) * 16, fenced=False, rack=rack,
        log_dirs=(bytes([broker]) * 16,),
    )  # fmt: skip
