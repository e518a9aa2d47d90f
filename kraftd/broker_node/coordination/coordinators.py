"""The coordinators of a broker, each beside the partitions of its topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from kraftd.broker_node.coordination.coordination import Coordination
from kraftd.broker_node.coordination.group_coordination import GroupCoordination
from kraftd.broker_node.coordination.markers import MarkingNode
from kraftd.broker_node.coordination.persister import Persister
from kraftd.broker_node.coordination.share_coordination import ShareCoordination
from kraftd.broker_node.coordination.transaction_coordination import TransactionCoordination
from kraftd.broker_node.fetching.ports import inter_broker_listener
from kraftd.broker_node.share_groups.led_partitions import LeadingNode
from kraftd.broker_node.share_groups.share_groups import ShareGroups
from kraftd.configdef.node import NodeConfig
from kraftd.ground.event import Event
from kraftd.ground.ticks import earliest_ms
from kraftd.groups.config import GroupConfig
from kraftd.groups.share_state.config import ShareStateConfig
from kraftd.groups.transactions.config import TransactionConfig
from kraftd.requests.events import FramesReceived

if TYPE_CHECKING:
    from kraftd.broker_node.events import PartitionRead
    from kraftd.broker_node.partitions.replicas import Hosted


JUMP_MS = 1_000  # of the wall clock; less is not followed until it is as much
SHARED_MS = 1  # of pause between requests whose records are appended together
NS_PER_MS = 1_000_000


class BrokersNode(MarkingNode, LeadingNode, Protocol):
    """What all of them use of the node."""


class Coordinators:
    """Hands what happens to partitions of internal topics to their coordinators. `shares` is what leaders of
    any topic's partitions do for share groups.
    """

    def __init__(self, node: BrokersNode, static: NodeConfig, new_uuid: Callable[[], str]) -> None:
        self.share_states = ShareCoordination(node, static.settings(ShareStateConfig))
        listener = inter_broker_listener(static)
        self.persister = Persister(node, self.share_states, listener)
        config = static.settings(GroupConfig)
        self.groups = GroupCoordination(node, config, self.persister, listener, new_uuid)
        self.transactions = TransactionCoordination(
            node,
            static.settings(TransactionConfig),
            self.groups.coordinator.partition_for,
            listener,
        )
        self.shares = ShareGroups(node, static, self.persister)
        self._every: tuple[Coordination, ...] = self.groups, self.transactions, self.share_states
        self._unsent = tuple(each.unsent for each in self._every)
        self._by_topic = {each.topic: each for each in self._every}
        self._asked_ms = -1 - SHARED_MS  # when requests came last
        self._asker = -1  # the connection that they came on
        self._wall_ahead_ms = node.wall_ms - node.now_ms

    def __repr__(self) -> str:
        return f"<Coordinators {list(self._by_topic.values())!r}>"

    @property
    def have_unsent(self) -> bool:
        """Return whether a coordinator has written what is not appended yet."""
        return any(self._unsent)

    def follow_clock(self, wall_ahead_ms: int) -> None:
        """Let what waits wait for as long as before, also when the wall clock was set."""
        moved_ms = wall_ahead_ms - self._wall_ahead_ms
        if abs(moved_ms) >= JUMP_MS:
            self._wall_ahead_ms = wall_ahead_ms
            for one in self._every:
                one.clock_moved(moved_ms)

    def end_step(self, event: Event, now_ms: int, call_again: Callable[[], None]) -> None:
        """Append what the event has written. Requests of several connections that follow one another closely
        leave it to the end of another step, for which they ask: what they write is appended together. On one
        connection the next request may come only after this one's answer, as in a transaction.
        """
        if type(event) is FramesReceived:
            asked_ms, self._asked_ms = self._asked_ms, now_ms
            asker, self._asker = self._asker, event.connection_id
            if now_ms - asked_ms <= SHARED_MS and asker != event.connection_id:
                if self.have_unsent:
                    call_again()
                return
        self.flush()

    def took(self, elapsed_ns: int) -> None:
        """Note that a step has taken time: it was no pause between requests."""
        self._asked_ms += elapsed_ns // NS_PER_MS

    def flush(self) -> None:
        """Append what the coordinators have written. One may lead to more of the other."""
        while self.have_unsent:
            for each in self._every:
                each.flush()

    def deadline_ms(self) -> int | None:
        """When `run_due` has work; None for never."""
        of_each = [each.deadline_ms() for each in self._every]
        return earliest_ms(self.persister.deadline_ms(), self.shares.deadline_ms(), *of_each)

    def run_due(self) -> None:
        for each in self._every:
            each.run_due()
        self.persister.run_due()
        self.shares.run_due()

    def has_begun(self, topic: str, index: int) -> bool:
        """Return whether this broker's coordinator of a topic has a partition, loaded or not yet."""
        return self._by_topic[topic].has_begun(index)

    def topics_deleted(self, topics: list[tuple[str, bytes]]) -> None:
        """Forget what is kept of topics that are gone, by name and id; a name may be there repeatedly."""
        self.groups.topics_deleted(topics)
        self.share_states.topics_deleted(topics)

    def partition_read(self, event: PartitionRead) -> None:
        self._by_topic[event.topic].partition_read(event)

    def leadership_changed(self, changed: Hosted, hosted: Hosted | None) -> None:
        """A partition may have another leader, or be gone."""
        self.shares.leadership_changed(changed, hosted)
        coordinator = self._by_topic.get(changed.topic)
        if coordinator is not None:
            coordinator.leadership_changed(changed.index, hosted)

    def marks_moved(self, hosted: Hosted, high_watermark: int) -> None:
        """The high watermark or the last stable offset of a partition moved."""
        self.shares.marks_moved(hosted)
        coordinator = self._by_topic.get(hosted.topic)
        if coordinator is not None:
            coordinator.high_watermark_moved(hosted.index, high_watermark)

    def of_topic(self, topic: str) -> Coordination | None:
        """The coordinator whose records a topic has, if there is one."""
        return self._by_topic.get(topic)
