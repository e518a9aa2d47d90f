"""Performs what a node of the metadata topic reads from the log: records without secrets, and times."""

from __future__ import annotations

from kraftd.host.cluster_view import NodeView
from kraftd.host.executors.answer_reads import UNREADABLE, read_records, respond_filled
from kraftd.host.executors.answering_executor import AnsweringExecutor, Around, at_once
from kraftd.host.executors.paced_reads import PacedReads, Rest
from kraftd.host.ports import AnswerWire, Ports
from kraftd.log.errors import StorageFailure
from kraftd.log.partition_log import OffsetOutOfRange, PartitionLog
from kraftd.log.timestamps import max_timestamp, offset_for_timestamp
from kraftd.metadata_topic_node.effects import LookUpTimes, TimesLookedUp
from kraftd.metadata_topic_node.node import MetadataTopicNode
from kraftd.redaction.batches import redacted_batches
from kraftd.requests.effects import AnswerRecords
from kraftd.wire.batch import CorruptBatch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.primitives import Buffer

_DONE = object()


class MetadataTopicExecutor(AnsweringExecutor):
    """One node of the metadata topic beside a replica, whose log it reads."""

    node: MetadataTopicNode

    def __init__(
        self,
        node: MetadataTopicNode,
        view: NodeView,
        log: PartitionLog,
        ports: Ports,
        wire: AnswerWire,
        around: Around = at_once,
    ) -> None:
        super().__init__(node, view, ports, wire, around)
        self.reads = PacedReads(
            self._read, lambda reads: self.around(self.reads, reads), ports.timer.call_soon
        )
        self._log = log
        self.performers |= {AnswerRecords: self.reads.begin, LookUpTimes: self._look_up_times}

    def connection_lost(self, connection_id: int) -> None:
        self.reads.forget(connection_id)
        super().connection_lost(connection_id)

    def _read(self, effect: AnswerRecords) -> int | Rest:
        """Read and answer; return the bytes read, or the rest of the work. The answer is OFFSET_OUT_OF_RANGE
        if a snapshot has replaced the records meanwhile.
        """
        connection_id = effect.call.connection_id
        if not self.wire.is_open(connection_id):
            return 0
        (read,) = effect.reads
        try:
            data = read_records(self._log, read, self.lines)
        except OffsetOutOfRange:
            read.partition.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
            data = b""
        if data is None:
            self.wire.close(connection_id, UNREADABLE)
            return 0
        rest = self._respond_redacted(effect, data)
        return len(data) if next(rest, _DONE) is _DONE else rest

    def _respond_redacted(self, effect: AnswerRecords, data: Buffer) -> Rest:
        """Answer with the records, without their secrets; yields between slices."""
        connection_id = effect.call.connection_id
        try:
            data = yield from redacted_batches(data)
        except CorruptBatch as error:
            self.lines.error(UNREADABLE, error=str(error))
            self.wire.close(connection_id, UNREADABLE)
            return
        except Exception as error:
            self.answer_failed(effect.call, error)
            return
        if self.wire.is_open(connection_id):
            respond_filled(effect.call, lambda: effect.fill((data,)), self.wire.respond, self.answer_failed)

    def _look_up_times(self, effect: LookUpTimes) -> None:
        found: list[tuple[int, int] | None] = []
        try:
            for time_ms in effect.times_ms:
                if time_ms is None:
                    found.append(max_timestamp(self._log, effect.end_offset))
                else:
                    found.append(offset_for_timestamp(self._log, time_ms, effect.end_offset))
        except StorageFailure:
            raise
        except Exception as error:
            self.answer_failed(effect.call, error)
        else:
            self.timer.call_soon(self.step, TimesLookedUp(effect.call, found))
