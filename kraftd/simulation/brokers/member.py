"""A member of a group, of either protocol: reads the partitions that it owns, and commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraftd.simulation.brokers.broker_side import BrokerSide
from kraftd.simulation.checkers.brokers.partitions import PartitionKey
from kraftd.simulation.schedule import MS
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable

GAP_US = 100 * MS


class Member:
    """See the module. One request is under way at a time; a commit is never sent again.

    `epoch`: its generation, or the epoch of a member of a consumer group.
    """

    def __init__(self, traffic: Any, number: int, group: str) -> None:
        self.traffic = traffic
        self.world = traffic.world
        self.group = group
        self.number = number
        self.rng = self.world.rng("member", number)
        self.member_id = ""
        self.epoch = -1
        self.positions: dict[int, int] = {}  # by index; empty while it is not assigned any
        self._key_of: dict[int, PartitionKey] = {}
        self._turn = 0
        self._asked: BrokerSide | None = None  # by the last request

    def start(self) -> None:
        self._later(self.rng.between(1, 10) * 200 * MS, self._join)

    def has_all(self) -> bool:
        """Return whether the group has committed all of every partition that no damage cuts."""
        traffic = self.traffic
        topic_id = traffic.topic_id(traffic.steady)
        if topic_id is None:
            return False
        for index in range(traffic.partition_count):
            key, found = (topic_id, index), traffic.leader_of(traffic.steady, index)
            if traffic.partitions.is_damaged(key):
                continue
            log = None if found is None else found[0].logs.directories.logs.get((traffic.steady, index))
            if log is None or (
                log.log_end and traffic.groups.committed_offset(self.group, key) < log.log_end
            ):
                return False
        return True

    # --- requests ---

    def _later(self, delay_us: int, action: Callable[[], None]) -> None:
        self.world.schedule.after(self.rng.between(1, 2 * delay_us), action)

    def _ask(
        self, again: Callable[[], None], message: Message, then: Callable[[Any], None], wait_us: int = 0
    ) -> None:
        """Ask the coordinator; without one, or without an answer, do that again."""
        if not self.traffic.running:
            return
        side = self.traffic.coordinator_of(self.group)
        if side is None:
            self._later(GAP_US, again)
            return

        def answered(answer: Any) -> None:
            if answer is None:
                self._later(GAP_US, again)
            else:
                then(answer)

        self._asked = side
        waiting = {"wait_us": wait_us} if wait_us else {}
        self.traffic.ask(side, [(message, answered)], **waiting)

    # --- membership, as the kind of group has it ---

    def _join(self) -> None:
        raise NotImplementedError

    def _again(self) -> None:
        """Go on after a request of an owner without an answer."""
        raise NotImplementedError

    def _rejoin(self, code: int) -> None:
        """Go on after a request of an owner that was refused."""
        raise NotImplementedError

    def _beat(self) -> None:
        raise NotImplementedError

    def _has_committed(self, epoch: int, offsets: dict[PartitionKey, int], latest: int) -> None:
        """Let the checker judge an acknowledged commit; `latest` as `_latest` had it when that was sent."""
        raise NotImplementedError

    def _latest(self) -> int:
        raise NotImplementedError

    def _fetch_offsets(self) -> None:
        groups, steady = self.traffic.groups, self.traffic.steady
        floors = {index: groups.committed_offset(self.group, key) for index, key in self._key_of.items()}
        topic = OffsetFetchRequestTopics(steady, partition_indexes=tuple(self._key_of))
        message = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(self.group, None, -1, [topic])])

        def then(answer: Any) -> None:
            found = answer.groups[0]
            if found.error_code or any(one.error_code for one in found.topics[0].partitions):
                self._rejoin(found.error_code)
                return
            partitions = found.topics[0].partitions
            went_back = any(one.committed_offset < floors[one.partition_index] for one in partitions)
            if went_back and not self.traffic.leads_group(self._asked, self.group):
                self._later(GAP_US, self._again)  # a coordinator that was cut off knows no better; as Kafka's
                return
            for one in partitions:
                key, offset = self._key_of[one.partition_index], one.committed_offset
                groups.fetched(self.group, key, offset, floors[one.partition_index])
                self.positions[one.partition_index] = max(0, offset)
            self._later(GAP_US, self._read)

        self._ask(self._again, message, then)

    # --- records ---

    def _read(self) -> None:
        traffic = self.traffic
        if not traffic.running or not self.positions:
            return
        indexes = sorted(self.positions)
        self._turn += 1
        index = indexes[self._turn % len(indexes)]
        found = traffic.leader_of(traffic.steady, index)
        if found is None:
            self._later(GAP_US, self._beat)
            return
        side, key = found
        offset = self.positions[index]
        part = FetchPartition(index, -1, offset, partition_max_bytes=1 << 20 if self.rng.chance(0.7) else 100)
        request = FetchRequest(
            max_wait_ms=self.rng.choice((0, 100, 400)),
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[FetchTopic("", key[0], [part])],
        )
        traffic.ask(side, [(request, lambda answer: self._fetched(side, key, offset, answer))])

    def _fetched(self, side: BrokerSide, key: PartitionKey, offset: int, answer: Any) -> None:
        index, log_of = key[1], side.logs.directories.logs.get
        traffic, kinds = self.traffic, self.world.trace.kinds
        checks = traffic.partitions
        topics = [] if answer is None or answer.error_code else answer.responses
        for part in [one for topic in topics for one in topic.partitions]:
            if part.error_code == ErrorCode.NONE:
                after = checks.read(key, offset, part.records)
                kinds["records consumed"] += after > offset
                self.positions[index] = after
                self._turn -= self.world.healed and after > offset  # it catches up with this partition first
            elif part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and not traffic.leads(side, key):
                pass  # a follower that lags, or a former leader
            elif part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self.positions[index] = checks.out_of_range(key, offset, log_of((self.traffic.steady, index)))
                self.traffic.groups.lost_end(key, self.positions[index])
            elif part.error_code == ErrorCode.CORRUPT_MESSAGE:
                if not checks.is_damaged(key):
                    checks.fail("P4", f"{self!r}: {key[1]} is called damaged at {offset}, which it is not")
                kinds["damaged records refused"] += 1
                self.positions[index] = offset + 1
        position, committed = self.positions.get(index, offset), self.traffic.groups.committed_offset
        if position != offset or (self.world.healed and committed(self.group, key) < position):
            self._commit()
        else:
            self._later(GAP_US, self._beat)

    def _commit(self) -> None:
        sent, epoch, latest = dict(self.positions), self.epoch, self._latest()
        parts = [OffsetCommitRequestPartition(index, offset) for index, offset in sent.items()]
        message = OffsetCommitRequest(
            self.group,
            epoch,
            self.member_id,
            topics=[OffsetCommitRequestTopic(self.traffic.steady, partitions=parts)],
        )

        def then(answer: Any) -> None:
            code = max(one.error_code for one in answer.topics[0].partitions)
            if code:
                self._rejoin(code)
                return
            offsets = {self._key_of[index]: offset for index, offset in sent.items()}
            self._has_committed(epoch, offsets, latest)
            self._later(GAP_US // 8 if self.world.healed else GAP_US, self._beat)

        self._ask(self._again, message, then)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.number} of {self.group}, epoch {self.epoch}, at {self.positions}>"
        )
