"""Counts the records that answers to fetches carry: for metrics by topic, and for replication quotas."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kraftd.broker_node.partitions.replicas import Replicas
from kraftd.broker_node.replication_quotas import ReplicationQuotas
from kraftd.fetch.sessions import replica_of
from kraftd.requests.call import Call
from kraftd.requests.effects import RecordsOf
from kraftd.types import Uuid
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.primitives import Buffer


class SentRecords:
    """`topic_name` finds the topic of an id; None while it is unknown."""

    def __init__(
        self, replicas: Replicas, quotas: ReplicationQuotas, topic_name: Callable[[Uuid], str | None]
    ) -> None:
        self._replicas = replicas
        self._quotas = quotas
        self._topic_name = topic_name

    def __repr__(self) -> str:
        return f"<SentRecords of {self._replicas!r}>"

    def count(self, call: Call, reads: Sequence[RecordsOf], records: Sequence[Buffer]) -> None:
        """Count what an answer to a fetch carries."""
        traffic, follower_id = self._replicas.traffic, replica_of(call.message, call.version).replica_id
        for read, data in zip(reads, records, strict=True):
            name = self._topic_name(read.topic_id)
            if name is None:
                continue
            hosted = self._replicas.get(name, read.partition.partition_index)
            of_topic, size_bytes = traffic.of(name) if hosted is None else hosted.traffic, len(data)
            if read.partition.error_code == ErrorCode.CORRUPT_MESSAGE:
                of_topic.failed_fetches += 1
            if follower_id < 0:
                of_topic.bytes_out += size_bytes
                continue
            of_topic.replication_bytes_out += size_bytes
            if hosted is not None:
                self._quotas.leader.record(hosted, size_bytes)
                if follower_id in hosted.state.adding_replicas:
                    traffic.reassignment_bytes_out += size_bytes
