"""One member of a consumer group (KIP-848): tells all that it owns in each heartbeat, and leaves at times."""

from __future__ import annotations

from typing import Any

from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from kraftd.simulation.brokers.member import GAP_US, Member
from kraftd.simulation.checkers.brokers.partitions import PartitionKey
from kraftd.simulation.schedule import SECOND
from kraftd.wire.error_code import ErrorCode

REBALANCE_MS = 3_000
_JOINING, _LEAVING = 0, -1
_FENCED = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND}


class ConsumerMember(Member):
    """See the module. After it was fenced it is another member for the checker (`identity`)."""

    def __init__(self, traffic: Any, number: int, group: str) -> None:
        super().__init__(traffic, number, group)
        self.member_id = f"consumer-{number}"
        self.epoch = _JOINING
        self._incarnation = 0

    @property
    def identity(self) -> str:
        return f"{self.member_id} of incarnation {self._incarnation}"

    def owned(self) -> set[int]:
        """The indexes of the partitions that it owns."""
        return set(self._key_of)

    # --- membership ---

    def _join(self) -> None:
        self._abandon()
        self._beat()

    def _again(self) -> None:
        self._beat()

    def _rejoin(self, code: int) -> None:
        self._later(GAP_US, self._join if code in _FENCED else self._beat)

    def _abandon(self) -> None:
        """Own nothing, and be a new member."""
        self.traffic.owners.gone(self.group, self.identity)
        self.positions, self._key_of = {}, {}
        self.epoch = _JOINING
        self._incarnation += 1

    def _beat(self) -> None:
        topic_id = self.traffic.topic_id(self.traffic.steady)
        if topic_id is None:
            self._later(GAP_US, self._beat)
            return
        owners, owned = self.traffic.owners, tuple(sorted(self._key_of))
        owners.reports(self.group, self.identity, set(self._key_of.values()))
        is_taken = owners.is_taken(self.group, self.identity)
        message = ConsumerGroupHeartbeatRequest(
            self.group,
            self.member_id,
            self.epoch,
            rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=(self.traffic.steady,),
            topic_partitions=[TopicPartitions(topic_id, owned)] if owned else [],
        )
        self._ask(self._beat, message, lambda answer: self._beaten(is_taken, answer))

    def _beaten(self, is_taken: bool, answer: Any) -> None:
        if answer.error_code:
            self._rejoin(answer.error_code)
            return
        if is_taken and self.traffic.leads_group(self._asked, self.group):
            self.traffic.owners.outlived(self.group, self.identity)
        self.epoch = answer.member_epoch
        assigned = answer.assignment.topic_partitions if answer.assignment is not None else []
        keys: dict[int, PartitionKey] = {
            index: (topic.topic_id, index) for topic in assigned for index in topic.partitions
        }
        added = {key for index, key in keys.items() if self._key_of.get(index) != key}
        self._key_of = keys
        self.positions = {index: at for index, at in self.positions.items() if keys.keys() >= {index}}
        self.traffic.owners.took(self.group, self.identity, self.epoch, added)
        if keys.keys() - self.positions.keys():
            self._fetch_offsets()
        else:
            self._go_on()

    def _go_on(self) -> None:
        if not self.world.healed and self.rng.chance(0.02):
            self._leave()
        elif not self.world.healed and self.rng.chance(0.02):
            self.world.trace.kinds["member stays away"] += 1
            self._later(3 * SECOND, self._read if self.positions else self._beat)
        else:
            self._later(GAP_US, self._read if self.positions else self._beat)

    def _leave(self) -> None:
        self.world.trace.kinds["member leaves"] += 1
        message = ConsumerGroupHeartbeatRequest(self.group, self.member_id, _LEAVING)
        self._ask(self._join, message, lambda _: self._later(GAP_US, self._join))
        self._abandon()

    # --- commits ---

    def _latest(self) -> int:
        return int(self.traffic.owners.is_taken(self.group, self.identity))

    def _has_committed(self, epoch: int, offsets: dict[PartitionKey, int], latest: int) -> None:
        self.traffic.owners.committed(self.group, self.identity, bool(latest))
        self.traffic.groups.has_committed(self.group, offsets)
