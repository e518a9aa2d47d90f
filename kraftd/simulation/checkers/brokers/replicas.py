"""P5-P7: the replicas of brokers' partitions, against what clients know and what is committed of ISRs.

A loss of power may cut a log's end, and a lost disk all of it. Records are lost by right only if that befell
every member of the ISR and of the ELR before it left them (a hollow member).
"""

from __future__ import annotations

from typing import Any

from kraftd.broker_node.partitions.replicas import Hosted
from kraftd.log.data.data_log import DataLog
from kraftd.metadata.state import RECOVERING, PartitionState
from kraftd.partition.effects import MarksMoved
from kraftd.partition.partition import FOLLOWER
from kraftd.simulation.checkers.brokers.partitions import PartitionChecker, PartitionKey
from kraftd.simulation.checkers.checker import Checker
from kraftd.simulation.processes.process import Process
from kraftd.wire.batch import iter_batches

_READ_BYTES = 1 << 20


class ReplicaChecker(Checker):
    """See the module. Partitions with one replica are not checked here. `topics`: names of the checked ones;
    those that `differ` are not equal byte for byte. `on_excuse` is called with a partition whose records were
    lost by right.
    """

    def __init__(
        self, world: Any, partitions: PartitionChecker, topics: tuple[str, ...], differ: tuple[str, ...]
    ) -> None:
        super().__init__(world)
        self.is_on = world.options.replica_count > 1
        self.on_excuse: Any = None
        self._partitions = partitions
        self._topics = topics
        self._differ = differ
        self._hollow: dict[PartitionKey, dict[int, int]] = {}  # ends of logs that were cut, by broker
        self._marks: dict[tuple[int, int, PartitionKey, int], int] = {}  # high watermarks of leaders

    # --- what is committed ---

    def committed(self) -> dict[PartitionKey, PartitionState]:
        """The checked partitions as the committed records have them."""
        newest, found = self.world.reference.newest, dict[PartitionKey, PartitionState]()
        for name in self._topics if newest is not None else ():
            topic = newest.image.topic_named(name)
            if topic is not None:
                found |= {(topic.id, index): state for index, state in topic.partitions.items()}
        return found

    def partition_changed(
        self, topic_id: bytes, index: int, before: PartitionState | None, after: PartitionState
    ) -> None:
        """A change is committed: every member of the ISR has all that clients know."""
        topic = self.world.reference.newest.image.topic(topic_id) if self.is_on else None
        if topic is None or topic.name not in self._topics:
            return
        key, kinds = (topic_id, index), self.world.trace.kinds
        if before is not None:
            kinds["isr shrank"] += not set(before.isr) <= set(after.isr)
            kinds["isr grew"] += not set(after.isr) <= set(before.isr)
            kinds["leader moved"] += before.leader != after.leader
            if after.leader_recovery_state == RECOVERING != before.leader_recovery_state:
                self._excuse(key, 0)
        self._consider(key, after)
        for member in after.isr:
            self._check_member(key, member, after)

    def _check_member(self, key: PartitionKey, member: int, state: PartitionState) -> None:
        hosted, known = self._hosted(member, key), self._partitions.of(key)
        if hosted is None or hosted.log is None or member in self._hollow.get(key, ()):
            return
        if hosted.log.log_end < known.end:
            self.fail("P5", f"{known!r}: {hosted!r} of {member} is in the ISR of {state!r}")

    # --- losses ---

    def lost_end(self, broker_id: int, key: PartitionKey, end: int) -> None:
        """The log of a broker was cut by a loss of power."""
        self._hollow.setdefault(key, {})[broker_id] = end
        state = self.committed().get(key)
        if state is not None:
            self._consider(key, state)

    def lost_disk(self, broker_id: int) -> None:
        """A broker has an empty disk from now on."""
        self._partitions.lost_disk(broker_id)
        for key, state in self.committed().items():
            if broker_id in state.replicas:
                self.lost_end(broker_id, key, 0)

    def _consider(self, key: PartitionKey, state: PartitionState) -> None:
        hollow, members = self._hollow.get(key), {*state.isr, *state.elr}
        if not hollow:
            return
        if members <= hollow.keys():
            self._excuse(key, min(hollow.values()))
        else:
            self._hollow[key] = {one: end for one, end in hollow.items() if one in members}

    def _excuse(self, key: PartitionKey, end: int) -> None:
        self.world.trace.kinds["records lost with all replicas"] += 1
        self._hollow.pop(key, None)
        self.on_excuse(key, end)

    def can_lose(self, broker_id: int) -> bool:
        """Return whether each partition of a broker has another member of its ISR that runs, with all
        records.
        """
        hosts = self.world.cluster.hosts
        return self.is_on and all(
            broker_id not in state.replicas
            or any(
                one != broker_id and hosts[one].process is not None and one not in self._hollow.get(key, ())
                for one in state.isr
            )
            for key, state in self.committed().items()
        )

    def joining(self) -> set[int]:
        """The brokers that some leader is about to let into an ISR."""
        found = set[int]()
        for hosted in [one for side in self.world.traffic.sides() for one in side.node.replicas]:
            isr = None if hosted.partition is None else hosted.partition.isr
            if isr is not None and isr.pending is not None:
                found |= set(isr.maximal) - set(isr.committed)
        return found

    # --- high watermarks ---

    def marks_moved(self, process: Process, hosted: Hosted, marks: MarksMoved) -> None:
        """P6 and P7 of a leader whose high watermark moves."""
        partition = hosted.partition
        if not self.is_on or partition is None or not partition.is_leader or hosted.topic not in self._topics:
            return
        key = hosted.topic_id, hosted.index
        run = process.id, process.host.starts, key, partition.leader_epoch
        if marks.high_watermark < self._marks.get(run, 0):
            self.fail("P6", f"{partition!r} of {process!r} goes back from {self._marks[run]}")
        self._marks[run] = marks.high_watermark
        for member in partition.isr.maximal:
            other = None if member == process.id else self._hosted(member, key)
            if other is None or other.partition is None or member in self._hollow.get(key, ()):
                continue
            is_of_epoch = other.partition.role is FOLLOWER and (
                other.partition.leader_epoch == partition.leader_epoch
            )
            if is_of_epoch and other.partition.log_end_offset < marks.high_watermark:
                self.fail("P7", f"{partition!r} of {process!r}, and {other.partition!r} of {member}")

    # --- at rest ---

    def are_in_sync(self) -> bool:
        """Return whether every replica is in its ISR, and no reassignment is under way that can end."""
        return not self.is_on or all(
            state.leader >= 0 and set(state.isr) == set(state.replicas) and not is_to_end(state)
            for state in self.committed().values()
        )

    def wait_for_last_leader(self) -> bool:
        """Return whether a partition may be led only by its last known leader (KIP-966). If that broker has
        another disk now, its return elects no leader, as at Apache Kafka: the next preferred election does.
        """
        return self.is_on and any(
            state.leader < 0 and not state.isr and not state.elr for state in self.committed().values()
        )

    def at_rest(self) -> None:
        """P7: the logs of an ISR are equal below the high watermark."""
        for key, state in self.committed().items() if self.is_on else ():
            leader = self._hosted(state.leader, key)
            if leader is None or leader.log is None or leader.partition is None:
                continue
            if leader.topic in self._differ:
                continue
            end = leader.partition.high_watermark
            logs = [hosted.log for one in state.isr if (hosted := self._hosted(one, key)) is not None]
            start = max(log.log_start for log in logs if log is not None)
            found = {_bytes_between(log, start, end) for log in logs if isinstance(log, DataLog)}
            if len(found) != 1:
                self.fail("P7", f"{leader!r}: the logs of {state!r} differ below {end}")

    def _hosted(self, broker_id: int, key: PartitionKey) -> Hosted | None:
        """A partition of a broker that runs, unless its log is not open or is truncated right now."""
        host = self.world.cluster.hosts.get(broker_id)
        topic = self.world.reference.newest.image.topic(key[0])
        if host is None or host.process is None or topic is None:
            return None
        hosted: Hosted | None = host.process.broker.node.replicas.get(topic.name, key[1])
        if hosted is None or hosted.topic_id != key[0] or hosted.is_truncating:
            return None
        return hosted


def is_to_end(state: PartitionState) -> bool:
    """Return whether a reassignment is under way that ends once all replicas are in sync.

    One that took the place of another may add and remove the same replica: it never ends, as at Apache Kafka.
    """
    adding, removing = set(state.adding_replicas), set(state.removing_replicas)
    return bool(adding or removing) and not adding & removing


def _bytes_between(log: DataLog, start: int, end: int) -> bytes:
    found, offset = b"", start
    while offset < end:
        data = bytes(log.read(offset, _READ_BYTES, end) or b"")
        if not data:
            break
        found += data
        offset = [batch.header.next_offset for batch in iter_batches(data)][-1]
    return found
