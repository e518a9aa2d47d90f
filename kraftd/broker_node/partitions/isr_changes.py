"""Keeps the ISRs of the partitions that this broker leads: what lags leaves, what has caught up joins
(KIP-497).

The rules are in `kraftd.partition.replication`; this module proposes the changes to the controller. As in
Kafka's AlterPartitionManager one request is under way at a time, and carries what waits, 1,000 proposals at
most.

A follower joins by its fetch. If it could not at that moment, it is looked at again every `REJOIN_MS`, for
its next fetches may change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kraftd.broker_node.partitions.replicas import Hosted
from kraftd.ground.effect import Effect
from kraftd.ground.pace import ROW_US, Pace
from kraftd.ground.ticks import earliest_ms
from kraftd.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kraftd.messages.alter_partition_response import AlterPartitionResponse
from kraftd.messages.alter_partition_response import PartitionData as Answered
from kraftd.partition.effects import ProposeIsr
from kraftd.partition.replication import isr_answered, may_lag, rejoin_isr, shrink_isr
from kraftd.types import Uuid
from kraftd.wire.error_code import error_name, known_error
from kraftd.wire.message import Message

PROPOSALS_A_REQUEST = 1_000
RETRY_MS = 50  # after a request that failed as a whole, or a proposal that is sent again
REJOIN_MS = 500  # as often as Kafka's followers fetch, and so ask to join
PARTITIONS_PER_CALLBACK = 500  # that are looked at for followers that are due to join
LAG_US = 20  # for a partition with a member that may lag, for the pace

Ask = Callable[[Message, Callable[[Message | None], None]], None]
Key = tuple[Uuid, int]
Proposal = tuple[Hosted, ProposeIsr]


class IsrChanges:
    """`ask` asks the controller, `identity` is this broker's id and epoch, `follow_up` performs a partition's
    effects.
    """

    def __init__(
        self,
        ask: Ask,
        identity: Callable[[], tuple[int, int]],
        follow_up: Callable[[Hosted, list[Effect]], None],
        warn: Callable[[str, str], None],
        now_ms: Callable[[], int],
        max_lag_ms: int,
    ) -> None:
        self._ask = ask
        self._identity = identity
        self._follow_up = follow_up
        self._warn = warn
        self._now_ms = now_ms
        self._every_ms = max(1, max_lag_ms // 2)
        self._waiting: dict[Key, Proposal] = {}
        self._is_asking = False
        self._send_ms = 0
        self._check_ms: int | None = None
        self._has_waited = False
        self._followed: dict[Key, Hosted] = {}  # led partitions with other replicas
        self._without_member: dict[Key, Hosted] = {}  # led partitions with a replica outside the ISR
        self._rejoin_ms: int | None = None
        self._is_rejoining = False
        self.shrinks = self.expansions = self.failures = 0  # of proposals, since the start

    def __repr__(self) -> str:
        return f"<IsrChanges, {len(self._waiting)} proposals wait>"

    # -- proposals

    def propose(self, hosted: Hosted, proposal: ProposeIsr) -> None:
        """Send a proposal with the next request; it replaces an older one of the partition."""
        self._waiting[hosted.topic_id, hosted.index] = hosted, proposal

    def send(self) -> None:
        """Send what waits, unless a request is under way, or failed just now."""
        if not self._waiting or self._is_asking or self._now_ms() < self._send_ms:
            return
        sent = self._take_waiting()
        if not sent:
            return
        topics: dict[Uuid, TopicData] = {}
        for (topic_id, index), (_, proposal) in sent.items():
            topic = topics.setdefault(topic_id, TopicData(topic_id, []))
            topic.partitions.append(
                PartitionData(
                    index,
                    proposal.leader_epoch,
                    new_isr_with_epochs=[
                        BrokerState(one.broker_id, one.broker_epoch) for one in proposal.members
                    ],
                    leader_recovery_state=proposal.leader_recovery_state,
                    partition_epoch=proposal.partition_epoch,
                )
            )
        self._is_asking = True
        request = AlterPartitionRequest(*self._identity(), list(topics.values()))
        self._ask(request, lambda answer: self._answered(sent, answer))

    def _take_waiting(self) -> dict[Key, Proposal]:
        """The proposals of the next request that are still current. Apache Kafka's controller resigns over a
        request with 10,000.
        """
        sent: dict[Key, Proposal] = {}
        while self._waiting and len(sent) < PROPOSALS_A_REQUEST:
            key = next(iter(self._waiting))
            one = self._waiting.pop(key)
            if _is_current(*one):
                sent[key] = one
        return sent

    def _answered(self, sent: dict[Key, Proposal], answer: Message | None) -> None:
        self._is_asking = False
        error = answer.error_code if isinstance(answer, AlterPartitionResponse) else None
        if not isinstance(answer, AlterPartitionResponse) or error:
            why = "no answer" if error is None else error_name(error)
            self._warn("changes of ISRs are sent again", why)
            self._send_again(sent)
            return
        answers = {
            (topic.topic_id, one.partition_index): one for topic in answer.topics for one in topic.partitions
        }
        self._send_again({key: one for key, one in sent.items() if key not in answers})
        for key, (hosted, proposal) in sent.items():
            if key in answers:
                self._partition_answered(hosted, proposal, answers[key])

    def _partition_answered(self, hosted: Hosted, proposal: ProposeIsr, answer: Answered) -> None:
        partition = hosted.partition
        if partition is None:
            return
        is_larger = len(proposal.members) > len(partition.isr.committed)
        effects = isr_answered(
            partition,
            proposal.number,
            known_error(answer.error_code),
            self._now_ms(),
            leader_epoch=answer.leader_epoch,
            partition_epoch=answer.partition_epoch,
            isr=answer.isr,
            leader_recovery_state=answer.leader_recovery_state,
        )
        if answer.error_code:
            self.failures += 1
        elif is_larger:
            self.expansions += 1
        else:
            self.shrinks += 1
        if any(isinstance(effect, ProposeIsr) for effect in effects):
            self._send_ms = self._now_ms() + RETRY_MS
        self._follow_up(hosted, effects)

    def _send_again(self, sent: dict[Key, Proposal]) -> None:
        if sent:
            self._waiting = sent | self._waiting  # what came meanwhile is newer
            self._send_ms = self._now_ms() + RETRY_MS

    # -- members that lag

    def deadline_ms(self) -> int | None:
        """When `send` or `check` has work; None for never."""
        waits = bool(self._waiting) and not self._is_asking
        return earliest_ms(self._send_ms if waits else None, self._check_ms, self._rejoin_ms)

    def start(self) -> None:
        """Begin to look for members that lag, every half of replica.lag.time.max.ms."""
        self._check_ms = self._now_ms() + self._every_ms

    def changed(self, hosted: Hosted) -> None:
        """The metadata of a partition changed: remember whether a follower may lag, or may join its ISR."""
        key, partition = (hosted.topic_id, hosted.index), hosted.partition
        if partition is None or not partition.followers:
            self._followed.pop(key, None)
        else:
            self._followed[key] = hosted
        if partition is None or not partition.lacks_member:
            self._without_member.pop(key, None)
            return
        self._without_member[key] = hosted
        if self._rejoin_ms is None and not self._is_rejoining:
            self._rejoin_ms = self._now_ms() + REJOIN_MS

    def rejoin(self) -> Iterator[None]:
        """Look for followers that are due to join, in slices, if that is due."""
        if self._rejoin_ms is None or self._now_ms() < self._rejoin_ms:
            return
        self._rejoin_ms, self._is_rejoining = None, True  # the next look begins after the end of this one
        for number, key in enumerate(list(self._without_member), 1):
            one = self._without_member.get(key)
            if one is None or one.partition is None or not one.partition.lacks_member:
                self._without_member.pop(key, None)
                continue
            local_epoch = self._identity()[1]
            self._follow_up(one, rejoin_isr(one.partition, self._now_ms(), local_broker_epoch=local_epoch))
            if not number % PARTITIONS_PER_CALLBACK:
                yield
        self._is_rejoining = False
        self._rejoin_ms = self._now_ms() + REJOIN_MS if self._without_member else None

    def check(self) -> Iterator[None]:
        """Look for members that lag, in slices, if that is due. A broker that was stalled itself looks at the
        next time: its followers could not show that they do not lag.
        """
        if self._check_ms is None or self._now_ms() < self._check_ms:
            return
        was_stalled = self._now_ms() - self._check_ms > self._every_ms // 2
        self.start()
        if was_stalled and not self._has_waited:
            self._has_waited = True  # once: fetches that came meanwhile are not read yet
            return
        self._has_waited = False
        pace = Pace()
        for one in list(self._followed.values()):
            partition = one.partition
            work_us = ROW_US
            if partition is not None and may_lag(partition):
                local_epoch, work_us = self._identity()[1], LAG_US
                self._follow_up(one, shrink_isr(partition, self._now_ms(), local_broker_epoch=local_epoch))
            if pace.spent(work_us):
                yield


def _is_current(hosted: Hosted, proposal: ProposeIsr) -> bool:
    partition = hosted.partition
    return partition is not None and partition.is_leader and partition.isr.is_current(proposal.number)
