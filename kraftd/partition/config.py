"""What the configuration of a topic, of its broker and of the group of replicas demands of one partition."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import force_setattr

from kraftd.wire.compression import CODEC_NAMES
from kraftd.wire.records import Options

PRODUCERS_CODEC = -1  # compression.type=producer
UNLIMITED_MS = (1 << 63) - 1


class PartitionConfig(Struct, frozen=True, gc=False):
    """The keys that a partition's rules read, with Kafka's defaults. All partitions of a topic share one."""

    is_compacted: bool = False  # cleanup.policy has compact
    is_deleted: bool = True  # cleanup.policy has delete
    max_message_bytes: int = 1_048_588
    segment_bytes: int = 1 << 30
    sets_append_time: bool = False  # message.timestamp.type=LogAppendTime
    timestamp_before_max_ms: int = UNLIMITED_MS
    timestamp_after_max_ms: int = 3_600_000
    compression: int = PRODUCERS_CODEC  # the codec's number, or PRODUCERS_CODEC
    compression_level: int | None = None
    min_insync_replicas: int = 1
    replica_lag_time_max_ms: int = 30_000
    producer_id_expiration_ms: int = 86_400_000
    transaction_max_timeout_ms: int = 900_000
    verifies_transactions: bool = True  # transaction.partition.verification.enable
    options: int = 0  # of the judgement of a batch, as they follow from the others

    def __post_init__(self) -> None:
        compacted = Options.COMPACTED if self.is_compacted else 0
        append_time = Options.SET_APPEND_TIME if self.sets_append_time else 0
        force_setattr(self, "options", int(compacted | append_time))

    def __repr__(self) -> str:
        policy = ",".join(
            name for name, on in (("compact", self.is_compacted), ("delete", self.is_deleted)) if on
        )
        codec = "producer" if self.compression == PRODUCERS_CODEC else CODEC_NAMES[self.compression]
        return f"<PartitionConfig {policy}, codec {codec}, min ISR {self.min_insync_replicas}>"
