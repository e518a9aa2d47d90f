"""C1, C2, C3, C6: the answers of controllers, and their final images of the log."""

from __future__ import annotations

from typing import Any

from kraftd.log.errors import CorruptStorage
from kraftd.named_tuple import NamedTuple
from kraftd.simulation.checkers.checker import Checker
from kraftd.simulation.checkers.control.records import RecordChecker
from kraftd.simulation.checkers.linearizability import History, linearizable
from kraftd.simulation.cluster import Cluster
from kraftd.simulation.processes.controller_process import ControllerProcess
from kraftd.simulation.processes.process import Process
from kraftd.simulation.processes.state import Metadata, image_values
from kraftd.simulation.protocols import World
from kraftd.wire.error_code import ErrorCode

NOT_DECIDED = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_SERVER_ERROR)


class Registered(NamedTuple):
    """A registration that a broker got as an answer."""

    broker_id: int
    incarnation: bytes
    epoch: int


class TopicOperation:
    """A topic created or deleted, with its times and its answer (None: unknown)."""

    __slots__ = ("code", "creates", "done_us", "name", "requested_us", "topic_id")

    def __init__(self, creates: bool, name: str, requested_us: int) -> None:
        self.creates = creates
        self.name = name
        self.requested_us = requested_us
        self.done_us: int | None = None
        self.code: int | None = None
        self.topic_id = b""

    def __repr__(self) -> str:
        what = "create" if self.creates else "delete"
        return f"<{what} {self.name} {self.requested_us}..{self.done_us}: {self.code}>"


class ConfigOperation:
    """A config of the whole cluster written or read. Each value is written once; "" is none."""

    __slots__ = ("done_us", "key", "requested_us", "value", "writes")

    def __init__(self, key: str, value: str | None, requested_us: int) -> None:
        self.writes = value is not None
        self.key = key
        self.value = value or ""
        self.requested_us = requested_us
        self.done_us: int | None = None

    def __repr__(self) -> str:
        what = "write" if self.writes else "read"
        return f"<{what} {self.key}={self.value} {self.requested_us}..{self.done_us}>"


class ControllerChecker(Checker):
    """The workload reports its clients' answers to it."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.records = RecordChecker(world)
        world.reference.follow(self.records)
        self.operations: list[TopicOperation] = []
        self.config_operations: list[ConfigOperation] = []
        self._epochs: dict[int, Registered] = {}
        self._blocks: list[tuple[int, int]] = []

    # --- answers ---

    def topic_answered(self, process: Process, operation: TopicOperation, code: int | None) -> None:
        """C2: an answered change is in the committed log."""
        if code is None or code in NOT_DECIDED:
            return
        operation.done_us, operation.code = self.world.schedule.now_us, code
        state = process.state
        if code or process.ended or not isinstance(state, Metadata):
            return
        self.world.trace.kinds["topic created" if operation.creates else "topic deleted"] += 1
        mark = min(self.world.committed.end, process.core.high_watermark)
        state.catch_up(mark)
        if operation.creates and state.next_offset == mark and operation.topic_id not in state.created:
            self.fail("C2", f"{operation!r} is acknowledged by {process!r}, and not committed to {mark}")

    def config_written(self, operation: ConfigOperation, code: int | None) -> None:
        """C2: an acknowledged write is committed."""
        if code is None or code in NOT_DECIDED:
            return
        operation.done_us = self.world.schedule.now_us
        if operation.value not in self.records.configs.get(operation.key, ()):
            self.fail("C2", f"{operation!r} is answered {code}, and not committed")

    def config_read(self, process: Process, operation: ConfigOperation, value: str) -> None:
        """C2: no client sees a value that could still be undone.

        A leader that does not know its successor yet may answer with an old value, as in Apache Kafka. So may
        a node that takes no decisions. A value from the newest active controller must fit the order.
        """
        operation.value = value
        if value and value not in self.records.configs.get(operation.key, ()):
            self.fail("C2", f"{operation!r} of {process!r} is not committed")
        assert isinstance(process, ControllerProcess)
        if process.node.decision_rights.active_epoch == max(self.world.epoch_starts):
            operation.done_us = self.world.schedule.now_us
            self.world.trace.kinds["config read"] += 1

    def isr_altered(self, topic_id: bytes, index: int, partition_epoch: int) -> None:
        """C2: a partition's leader only gets committed state as an answer."""
        state = self.records.image.partition(topic_id, index)
        if state is not None and state.partition_epoch < partition_epoch and not self._in_transaction:
            self.fail(
                "C2", f"an ISR of partition epoch {partition_epoch} is acknowledged, committed is {state!r}"
            )

    def upgraded(self, level: int) -> None:
        """C2, of metadata.version."""
        if (self.records.level or 0) < level:
            self.fail("C2", f"metadata.version {level} is acknowledged, committed is {self.records.level}")

    @property
    def _in_transaction(self) -> bool:
        """Return whether committed records take no effect yet."""
        newest = self.world.reference.newest
        return newest is not None and newest.waiting is not None

    def registered(self, one: Registered) -> None:
        """C2 and C3: an answered epoch is committed. A broker's epochs only grow, but the same incarnation
        may get its own again.
        """
        if self.records.broker_epochs.get(one.broker_id, -1) < one.epoch and not self._in_transaction:
            self.fail("C2", f"{one} is acknowledged, and not committed")
        before = self._epochs.get(one.broker_id)
        if before is not None and (one.epoch < before.epoch or (one.epoch == before.epoch and one != before)):
            self.fail("C3", f"{one} after {before}")
        self._epochs[one.broker_id] = one

    def refused(self, was_stale: bool, answer: Any, what: str) -> None:
        """C3: a request with a broker epoch that was over when it was sent is refused."""
        if not was_stale or answer is None:
            return
        if not answer.error_code:
            self.fail("C3", f"{what} of a stale broker epoch is granted: {answer!r}")
        self.world.trace.kinds["stale epoch refused"] += 1

    def allocated(self, start: int, length: int) -> None:
        """C2 and C6: the block is committed, and overlaps no other."""
        if self.records.next_producer_id < start + length and not self._in_transaction:
            self.fail("C2", f"producer ids [{start}, {start + length}) are handed out, and not committed")
        for first, after in self._blocks:
            if start < after and first < start + length:
                self.fail("C6", f"producer ids [{start}, {start + length}) overlap [{first}, {after})")
        self._blocks.append((start, start + length))

    # --- at rest ---

    def at_rest(self) -> None:
        """All images are equal; the history of each topic name fits one order."""
        committed = self.world.committed.end
        first: list[bytes] | None = None
        cluster: Cluster = self.world.cluster
        for host in cluster.hosts.values():
            process = host.process
            assert isinstance(process, ControllerProcess)
            if not process.node.following.replay.complete or process.core.high_watermark < committed:
                continue
            if process.node.decisions.appends.next_offset > committed and process.node.active:
                continue  # its image already has a later, uncommitted decision
            try:
                process.state.catch_up(committed)
            except CorruptStorage:
                continue
            values = image_values(process.node.image)
            if values != process.state.values() or (first is not None and values != first):
                self.fail("C1", f"{process!r} has another image than its log")
            first = values
        for name in {operation.name for operation in self.operations}:
            history = [one for one in self.operations if one.name == name]
            if not linearizable(_history(history)):
                self.fail("C2", f"no order explains what was answered of {name}: {history[-12:]}")
        for key in {one.key for one in self.config_operations}:
            of_key = [one for one in self.config_operations if one.key == key]
            if not linearizable(_config_history(of_key), ""):
                self.fail("C2", f"no order explains what was answered of {key}: {of_key[-12:]}")


def _history(operations: list[TopicOperation]) -> History:
    """The possible observation and effect of each operation (see linearizability)."""
    history: History = []
    for one in operations:
        if one.code is None:
            history.append((one.requested_us, None, None, one.creates))
        elif one.code == ErrorCode.NONE:
            history.append((one.requested_us, one.done_us, not one.creates, one.creates))
        elif one.code == ErrorCode.TOPIC_ALREADY_EXISTS:
            history.append((one.requested_us, one.done_us, True, True))
        elif one.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            history.append((one.requested_us, one.done_us, False, False))
        # every other error is about the request itself, and says nothing of the topic
    return history


def _config_history(operations: list[ConfigOperation]) -> History:
    """Operations of unknown outcome matter only if their value has been read since."""
    read = {one.value for one in operations if not one.writes and one.done_us is not None}
    return [
        (one.requested_us, one.done_us, None if one.writes else one.value, one.value)
        for one in operations
        if one.done_us is not None or (one.writes and one.value in read)
    ]
