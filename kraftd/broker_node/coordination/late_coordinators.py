"""A broker's coordinators, made when something is first asked of them.

They are a quarter of the modules of a whole Kafka. A broker that leads no partition of their topics starts
without them, and its process loads them a little later (`runtime.late_code`). What needs them before waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kraftd.broker_node.effects import LoadCoordinators
from kraftd.broker_node.events import CoordinatorsLoaded, PartitionRead, SharesRead
from kraftd.types import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    from kraftd.broker_node.coordination.coordination import Coordination
    from kraftd.broker_node.coordination.coordinators import BrokersNode, Coordinators
    from kraftd.broker_node.coordination.group_coordination import GroupCoordination
    from kraftd.broker_node.coordination.share_coordination import ShareCoordination
    from kraftd.broker_node.coordination.transaction_coordination import TransactionCoordination
    from kraftd.broker_node.partitions.replicas import Hosted
    from kraftd.broker_node.share_groups.share_groups import ShareGroups
    from kraftd.configdef.node import NodeConfig
    from kraftd.ground.event import Event
    from kraftd.groups.consumer.assignors.spec import Assignor
    from kraftd.requests.call import Call
    from kraftd.requests.holds import Hold

TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC})


class LateCoordinators:
    """What `Coordinators` does, which exist from the first need on: a request, or a partition of `TOPICS`.

    `are_loaded` is false while their code is not: a process may load it once it serves.
    """

    def __init__(self, node: BrokersNode, static: NodeConfig, new_uuid: Callable[[], str]) -> None:
        self._node = node
        self._static = static
        self._new_uuid = new_uuid
        self._assignors: Mapping[str, Assignor] | None = None
        self._made: Coordinators | None = None
        self.are_loaded = True
        self._is_asked_for = False
        self._changed: dict[tuple[str, int], Hosted] = {}  # partitions that wait for the code
        self._waiting: list[tuple[Call, Hold]] = []  # so do these

    def __repr__(self) -> str:
        return "<LateCoordinators, none yet>" if self._made is None else repr(self._made)

    @property
    def made(self) -> Coordinators:
        """The coordinators, made now if they are not yet."""
        if self._made is None:
            from kraftd.broker_node.coordination.coordinators import Coordinators

            self._made = Coordinators(self._node, self._static, self._new_uuid)
            if self._assignors is not None:
                self._made.groups.coordinator.use_assignors(self._assignors)
        return self._made

    @property
    def groups(self) -> GroupCoordination:
        return self.made.groups

    @property
    def transactions(self) -> TransactionCoordination:
        return self.made.transactions

    @property
    def share_states(self) -> ShareCoordination:
        return self.made.share_states

    @property
    def shares(self) -> ShareGroups:
        return self.made.shares

    def handlers(self) -> dict[type, Callable[..., None]]:
        """Of events, which only coordinators cause."""
        return {
            CoordinatorsLoaded: lambda _: self._on_loaded(),
            PartitionRead: lambda event: self.made.partition_read(event),
            SharesRead: lambda event: self.made.shares.fetches.shares_read(event),
        }

    def use_assignors(self, assignors: Mapping[str, Assignor]) -> None:
        """Have consumer groups use these, by name."""
        self._assignors = assignors

    # -- until their code is loaded

    def can_take(self, call: Call) -> bool:
        """Return whether the code is loaded; if not, the call is handled again once it is, and its connection
        is held.
        """
        if self.are_loaded:
            return True
        self._waiting.append((call, self._node.boundary.holds.hold(call.connection_id)))
        self._ask_for_code()
        return False

    def _ask_for_code(self) -> None:
        if not self._is_asked_for:
            self._is_asked_for = True
            self._node.outbox.emit(LoadCoordinators())

    def _on_loaded(self) -> None:
        self.are_loaded = True
        changed, self._changed = self._changed, {}
        for key, one in changed.items():
            self.leadership_changed(one, self._node.replicas.get(*key))
        waiting, self._waiting = self._waiting, []
        for call, hold in waiting:
            self._node.boundary.handle(call)
            hold.end()

    def serve_consumer_groups(self) -> bool:
        """Return whether it is known that consumer groups are served."""
        return self.are_loaded and self.groups.coordinator.consumer.is_served()

    def serve_share_groups(self) -> bool:
        """Return whether it is known that share groups are served."""
        return self.are_loaded and self.shares.is_enabled()

    # -- driving

    def follow_clock(self, wall_ahead_ms: int) -> None:
        if self._made is not None:
            self._made.follow_clock(wall_ahead_ms)

    def end_step(self, event: Event, now_ms: int, call_again: Callable[[], None]) -> None:
        if self._made is not None:
            self._made.end_step(event, now_ms, call_again)

    def took(self, elapsed_ns: int) -> None:
        if self._made is not None:
            self._made.took(elapsed_ns)

    def deadline_ms(self) -> int | None:
        return None if self._made is None else self._made.deadline_ms()

    def run_due(self) -> None:
        if self._made is not None:
            self._made.run_due()

    # -- what happens to partitions

    def has_begun(self, topic: str, index: int) -> bool:
        return self._made is not None and self._made.has_begun(topic, index)

    def topics_deleted(self, topics: list[tuple[str, bytes]]) -> None:
        if self._made is not None:
            self._made.topics_deleted(topics)

    def leadership_changed(self, changed: Hosted, hosted: Hosted | None) -> None:
        if not self.are_loaded:
            if changed.topic in TOPICS:
                self._changed[changed.topic, changed.index] = changed
                self._ask_for_code()
        elif self._made is not None or changed.topic in TOPICS:
            self.made.leadership_changed(changed, hosted)

    def marks_moved(self, hosted: Hosted, high_watermark: int) -> None:
        if self._made is not None:
            self._made.marks_moved(hosted, high_watermark)

    def of_topic(self, topic: str) -> Coordination | None:
        return None if self._made is None else self._made.of_topic(topic)

    def connection_closed(self, connection_id: int) -> None:
        for one in [one for one in self._waiting if one[0].connection_id == connection_id]:
            self._waiting.remove(one)
            one[1].end()
        if self._made is not None:
            self._made.shares.connection_closed(connection_id)
