"""One member of a share group (KIP-932): heartbeats, and one session after the other with leaders.

In a session it reads one partition, and accepts, releases or rejects what it has acquired, or keeps it until
its lock ends. A session ends as it should, or with its connection.
"""

from __future__ import annotations

from typing import Any

from kraftd.controller.configs.resources import ResourceType
from kraftd.messages import share_fetch_request as fetching
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftd.partition.share.states import ACCEPT, REJECT, RELEASE
from kraftd.simulation.brokers.broker_side import BrokerSide
from kraftd.simulation.checkers.brokers.partitions import PartitionKey
from kraftd.simulation.checkers.brokers.shares import Held
from kraftd.simulation.schedule import MS, SECOND
from kraftd.wire.error_code import ErrorCode

SHARE_GROUP = "share-group"
GAP_US = 100 * MS
MOST_RECORDS = 20
_JOINING, _LEAVING, _FINAL = 0, -1, -1
_KEEP = -1  # acknowledges nothing


class ShareConsumer:
    """See the module. One request is under way at a time."""

    def __init__(self, traffic: Any, number: int) -> None:
        self.traffic = traffic
        self.world = traffic.world
        self.rng = self.world.rng("share consumer", number)
        self.member_id = f"share-consumer-{number}"
        self.epoch = _JOINING
        self._tells_all = True  # after a lost answer, too: without its topics an answer has only what is new
        self._indexes: tuple[int, ...] = ()  # of the partitions that it is assigned
        self._session: Session | None = None

    def start(self) -> None:
        self._later(self._go_on)

    def _later(self, action: Any, delay_us: int = GAP_US) -> None:
        self.world.schedule.after(self.rng.between(1, 2 * delay_us), action)

    def _go_on(self) -> None:
        traffic = self.traffic
        if not traffic.running:
            return
        configs = [one.view.image.config(ResourceType.GROUP, SHARE_GROUP) for one in traffic.sides()]
        if self.epoch == _JOINING and not (configs and all(configs)):
            self._later(self._go_on)  # until the group is to begin at the first record
        else:
            self._beat()

    # --- membership ---

    def _beat(self) -> None:
        traffic, side = self.traffic, self.traffic.coordinator_of(SHARE_GROUP)
        if side is None:
            self._later(self._go_on)
            return
        if not self.world.healed and self.epoch > _JOINING and self.rng.chance(0.03):
            self.world.trace.kinds["member leaves"] += 1
            self.epoch = _LEAVING
        message = ShareGroupHeartbeatRequest(
            SHARE_GROUP,
            self.member_id,
            self.epoch,
            None,
            (traffic.steady,) if self._tells_all or self.epoch == _JOINING else None,
        )
        self._tells_all = True  # until there is an answer
        traffic.ask(side, [(message, self._beaten)])

    def _beaten(self, answer: Any) -> None:
        if answer is not None and not answer.error_code and self.epoch != _LEAVING:
            self.epoch, self._tells_all = answer.member_epoch, False
            if answer.assignment is not None:
                topics = answer.assignment.topic_partitions
                self._indexes = tuple(index for topic in topics for index in topic.partitions)
        elif self.epoch == _LEAVING or (
            answer is not None
            and answer.error_code
            in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)
        ):
            self.epoch, self._indexes = _JOINING, ()
        found = None
        if self._indexes:
            index = self.rng.choice(self._indexes)
            found = self.traffic.leader_of(self.traffic.steady, index)
        if found is None:
            self._later(self._go_on)
        else:
            self._session = Session(self.traffic, *found)
            self._fetch(self._session)

    # --- sessions ---

    def _fetch(self, session: Session) -> None:
        """Fetch, with what is acknowledged; the last time, only that."""
        traffic, rng = self.traffic, self.rng
        if not traffic.running:
            session.hang_up()
            return
        if session.side.process.ended or (not self.world.healed and rng.chance(0.04)):
            session.hang_up()
            self._later(self._go_on, rng.choice((GAP_US, 3 * SECOND)))
            return
        is_last = session.epoch > 0 and rng.chance(0.25)
        acknowledged = self._acknowledged(session)
        rows = [
            fetching.AcknowledgementBatch(offset, offset, (kind,))
            for offset, kind in sorted(acknowledged.items())
        ]
        part = fetching.FetchPartition(session.key[1], acknowledgement_batches=rows)
        topics = [fetching.FetchTopic(session.key[0], [part])] if rows or session.epoch == 0 else []
        request = fetching.ShareFetchRequest(
            SHARE_GROUP,
            self.member_id,
            _FINAL if is_last else session.epoch,
            max_wait_ms=rng.choice((0, 100, 300)),
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=rng.choice((1, 5, MOST_RECORDS)) if not self.world.healed else 500,
            batch_size=500,
            topics=topics,
        )
        checks, sent_us, leader_epoch = traffic.shares, self.world.schedule.now_us, session.leader_epoch()
        checks.acknowledging(session.held, acknowledged)
        if is_last:
            checks.gave_up(session.held)

        def then(answer: Any) -> None:
            if answer is None:
                checks.unanswered(session.key)
                session.hang_up()
                self._later(self._go_on)
            elif answer.error_code or leader_epoch < 0 or session.leader_epoch() != leader_epoch:
                checks.unanswered(session.key)  # it may be another partition's leader by now
                session.hang_up()
                self._later(self._go_on)
            else:
                session.epoch += 1
                self._take(session, acknowledged, sent_us, answer)
                if is_last:
                    session.hang_up()
                self._later(self._go_on if is_last else lambda: self._fetch(session))

        traffic.ask(session.side, [(request, then)], connection_id=session.connection_id)

    def _acknowledged(self, session: Session) -> dict[int, int]:
        """What becomes of the records that it holds, by offset."""
        if self.world.healed:
            return dict.fromkeys(session.held.offsets, ACCEPT)
        kinds = self.rng.choice(((ACCEPT,), (ACCEPT,), (ACCEPT, RELEASE), (REJECT,), (_KEEP, ACCEPT)))
        drawn = {offset: self.rng.choice(kinds) for offset in sorted(session.held.offsets)}
        return {offset: kind for offset, kind in drawn.items() if kind != _KEEP}

    def _take(self, session: Session, acknowledged: dict[int, int], sent_us: int, answer: Any) -> None:
        checks = self.traffic.shares
        is_leader = self.traffic.leads(session.side, session.key)
        for part in [one for topic in answer.responses for one in topic.partitions]:
            if acknowledged and not part.acknowledge_error_code:
                checks.acknowledged(session.key, acknowledged)
            if part.error_code == ErrorCode.NONE:
                for one in part.acquired_records:
                    checks.acquired(session.held, one, sent_us, is_leader=is_leader)
        if session.held.offsets:
            self.world.trace.kinds["records of a share group acquired"] += 1

    def __repr__(self) -> str:
        return f"<ShareConsumer {self.member_id}, epoch {self.epoch}, {self._session!r}>"


class Session:
    """A session with the leader of a partition, over a connection of its own."""

    def __init__(self, traffic: Any, side: BrokerSide, key: PartitionKey) -> None:
        self.traffic = traffic
        self.side = side
        self.key = key
        self.epoch = 0
        self.connection_id: int = traffic.connect()
        self.held = Held(key, (side.process.id, side.process.host.starts, self.leader_epoch()))

    def leader_epoch(self) -> int:
        """The epoch in which the broker leads the partition; -1 if it does not."""
        hosted = self.side.node.replicas.get(self.traffic.steady, self.key[1])
        if hosted is None or hosted.partition is None or not hosted.partition.is_leader:
            return -1
        return hosted.partition.leader_epoch

    def hang_up(self) -> None:
        """Close the connection, and hold nothing any more."""
        self.traffic.shares.gave_up(self.held)
        self.traffic.hang_up(self.side, self.connection_id)

    def __repr__(self) -> str:
        return f"<Session of {self.key[1]}, epoch {self.epoch}, {self.held!r}>"
