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
            if name is not None and read.partition.error_code == ErrorCode.CORRUPT_MESSAGE:
                traffic.of(name).failed_fetches += 1
            if name is not None and follower_id >= 0:
                traffic.of(name).replication_bytes_out += len(data)
                hosted = self._replicas.get(name, read.partition.partition_index)
                if hosted is not None:
                    self._quotas.leader.record(hosted, len(data))
                    if follower_id in hosted.state.adding_replicas:
                        traffic.reassignment_bytes_out += len(data)
            elif name is not None:
                traffic.of(name).bytes_out += len(data)
