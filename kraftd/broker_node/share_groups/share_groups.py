"""What a broker keeps of share groups beside its partitions: sessions, share partitions, fetches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kraftd.broker_node.coordination.persister import Persister
from kraftd.broker_node.coordination.share_coordination import SHARE_VERSION
from kraftd.broker_node.share_groups.fetches import ShareFetches
from kraftd.broker_node.share_groups.led_partitions import LeadingNode, LedSharePartitions
from kraftd.broker_node.share_groups.settings import ShareConfig
from kraftd.broker_node.share_groups.share_states import ShareStates
from kraftd.fetch.share_sessions import EndedSession, Member, ShareSessions
from kraftd.ground.ticks import earliest_ms
from kraftd.groups.deadlines import Deadlines
from kraftd.groups.share_state.key import SharePartitionKey
from kraftd.partition.share.acknowledging import release_all
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.partitions.replicas import Hosted
    from kraftd.configdef.node import NodeConfig


class ShareGroups:
    """Drives share groups at the leaders of their partitions."""

    def __init__(self, node: LeadingNode, static: NodeConfig, persister: Persister) -> None:
        config = static.settings(ShareConfig)
        self._node = node
        self._limit = config.group_share_max_share_sessions
        self._later = Deadlines()  # of answers without a session
        self.sessions = ShareSessions(self._limit)
        self.fetches = ShareFetches(node)
        self.partitions = LedSharePartitions(node, config, ShareStates(persister), self.fetches.wake)
        self.fetches.partitions = self.partitions

    def __repr__(self) -> str:
        return f"<ShareGroups {self.sessions!r}, {self.partitions!r}, {self.fetches!r}>"

    def is_enabled(self) -> bool:
        """Return whether the cluster has share groups; if it does not, nothing is kept of them."""
        levels, _ = self._node.view.finalized_features
        if levels.get(SHARE_VERSION, 0) >= 1:
            return True
        if len(self.sessions) or len(self.partitions):
            self.sessions = ShareSessions(self._limit)
            self.partitions.clear()
        return False

    # -- driving

    def deadline_ms(self) -> int | None:
        """When `run_due` has work; None for never."""
        return earliest_ms(self._later.next_ms(), self.fetches.deadline_ms(), self.partitions.deadline_ms())

    def run_due(self) -> None:
        now_ms = self._node.now_ms
        while (action := self._later.take(now_ms)) is not None:
            action()
        self.partitions.run_due(now_ms)
        self.fetches.run_due(now_ms)

    def answer_later(self, token: object, wait_ms: int, answer: Callable[[], None]) -> None:
        """Answer a member that cannot be served after the time that it would have waited."""
        self._later.schedule(id(token), self._node.now_ms + wait_ms, answer)

    def marks_moved(self, hosted: Hosted) -> None:
        """Members may read further into a partition."""
        self.fetches.wake((hosted.topic, hosted.index))

    def leadership_changed(self, changed: Hosted, hosted: Hosted | None) -> None:
        """A partition may have another leader, or be gone."""
        self.partitions.leadership_changed(changed, hosted)

    # -- sessions

    def end_session(self, member: Member) -> None:
        """A member has sent its last request."""
        ended = self.sessions.end(member)
        if ended is not None:
            self._release(ended)

    def connection_closed(self, connection_id: int) -> None:
        """A connection is lost, with the session that it began."""
        self.fetches.connection_closed(connection_id)
        ended = self.sessions.connection_closed(connection_id)
        if ended is not None:
            self._release(ended)
            if ended.is_group_empty:
                self.partitions.remove_group(ended.member.group_id)

    def _release(self, ended: EndedSession) -> None:
        """What the member holds is available to others."""
        for place in ended.partitions:
            led = self.partitions.get(SharePartitionKey(ended.member.group_id, *place))
            if led is not None:
                answered: Callable[[ErrorCode], None] = partial(self.partitions.acknowledged, led)
                release_all(led.share, ended.member.member_id, self._node.now_ms, answered)
                self.partitions.settle(led)
                self.fetches.wake(led.key)
