"""What this broker asks the share coordinators for: the state of share partitions, each of its coordinator.

A coordinator may be this broker, or another one. Those that do not serve now are asked again for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from kraftd.broker_node.coordination.coordination import NO_LEADER, CoordinatingNode, leader_of
from kraftd.ground.pace import Pace, Slices
from kraftd.groups.deadlines import Deadlines
from kraftd.groups.share_state.coordinator import APIS, Api
from kraftd.groups.share_state.key import SharePartitionKey
from kraftd.types import SHARE_STATE_TOPIC
from kraftd.wire.error_code import ErrorCode, error_of
from kraftd.wire.message import Message

if TYPE_CHECKING:
    from kraftd.broker_node.coordination.share_coordination import ShareCoordination

FIRST_RETRY_MS, MAX_RETRY_MS = 100, 5_000
PATIENCE_MS = 30_000  # about as long as Apache Kafka's brokers try
PARTITION_US = 10  # of work: to find the coordinator of a share partition
PARTITIONS_A_REQUEST = 300  # each request and each answer is handled in one callback

Place = tuple[bytes, int]  # a topic id and a partition
# What the next attempt may not meet any more; Apache Kafka's brokers retry these as well.
_PASSING = frozenset(
    (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
    )
)


class Persister:
    """Asks share coordinators. `listener` is the one among brokers."""

    def __init__(self, node: CoordinatingNode, share_states: ShareCoordination, listener: str) -> None:
        self._node = node
        self._share_states = share_states
        self._listener = listener
        self._deadlines = Deadlines()
        self._retry_count = 0

    def __repr__(self) -> str:
        return f"<Persister with {len(self._deadlines)} retries>"

    def ask(self, request: Any, then: Callable[[Any], None]) -> None:
        """Ask for a ReadShareGroupState, or any request of a share coordinator; `then` gets one answer.

        That has a result of each partition, in the order of the request.
        """
        asking = _Asking(request, self._node.now_ms, then)
        if not asking.rows:
            then(asking.response())
            return
        self._node.go_on(self._attempt(asking, list(asking.rows), FIRST_RETRY_MS))

    def deadline_ms(self) -> int | None:
        """When `run_due` has work; None for never."""
        return self._deadlines.next_ms()

    def run_due(self) -> None:
        """Ask again what is to be asked again now."""
        while (action := self._deadlines.take(self._node.now_ms)) is not None:
            action()

    def _attempt(self, asking: _Asking, places: list[Place], retry_ms: int) -> Slices[None]:
        """Ask the coordinators of some share partitions, each coordinator once."""
        self._share_states.follow_image()
        coordinator = self._share_states.coordinator
        pace, leaders = Pace(), dict[int, int | None]()
        by_leader: dict[int | None, list[Place]] = {}
        for topic_id, index in places:
            key = SharePartitionKey(asking.request.group_id, topic_id, index).text
            partition = coordinator.partition_for(key)
            if partition not in leaders:
                leaders[partition] = leader_of(self._node.view, SHARE_STATE_TOPIC, partition)
            by_leader.setdefault(leaders[partition], []).append((topic_id, index))
            if pace.spent(PARTITION_US):
                yield
        for leader, all_of_leader in by_leader.items():
            for first in range(0, len(all_of_leader), PARTITIONS_A_REQUEST):
                if len(all_of_leader) > PARTITIONS_A_REQUEST:
                    yield
                self._ask_one(asking, leader, all_of_leader[first : first + PARTITIONS_A_REQUEST], retry_ms)

    def _ask_one(self, asking: _Asking, leader: int | None, places: list[Place], retry_ms: int) -> None:
        def then(response: Any) -> None:
            self._answered(asking, places, response, retry_ms)

        if leader is None:
            self._node.topic_creation.create(SHARE_STATE_TOPIC)
        if leader in (None, NO_LEADER):
            refused = asking.refused(places, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            self._later(asking, places, refused, retry_ms)
        elif leader == self._node.view.node_id:
            self._share_states.ask(asking.part(places), then)
        else:
            assert leader is not None
            message = asking.part(places)
            self._node.own_requests.ask_node(leader, self._listener, "share-states", message, None, then)

    def _answered(self, asking: _Asking, places: list[Place], response: Any, retry_ms: int) -> None:
        found = {
            (topic.topic_id, row.partition): row
            for topic in getattr(response, "results", ())
            for row in topic.partitions
        }
        passing = []
        for place in places:
            row = found.get(place)
            if row is None:
                row = found[place] = asking.refusal(place, ErrorCode.NETWORK_EXCEPTION)
            if self._is_passing(place, error_of(row.error_code)):
                passing.append(place)
            else:
                asking.take(place, row)
        if passing:
            self._later(asking, passing, {place: found[place] for place in passing}, retry_ms)
        asking.finish()

    def _is_passing(self, place: Place, error: ErrorCode) -> bool:
        """Return whether another attempt may do better; another broker may not know a new partition yet."""
        if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return self._node.view.image.partition(*place) is not None
        return error in _PASSING

    def _later(self, asking: _Asking, places: list[Place], refused: dict[Place, Any], retry_ms: int) -> None:
        """Ask again after a while; if that has been long enough, the refusals are the results."""
        now_ms = self._node.now_ms
        if now_ms + retry_ms > asking.begun_ms + PATIENCE_MS:
            for place, row in refused.items():
                asking.take(place, row)
            asking.finish()
            return

        def again() -> None:
            next_ms = min(2 * retry_ms, MAX_RETRY_MS)
            self._node.go_on(self._attempt(asking, places, next_ms))

        self._retry_count += 1
        self._deadlines.schedule(self._retry_count, now_ms + retry_ms, again)


class _Asking:
    """One request with the results that have come; rows: by partition, None until there is one."""

    def __init__(self, request: Any, begun_ms: int, then: Callable[[Any], None]) -> None:
        self.request = request
        self.begun_ms = begun_ms
        self.then = then
        self.api: Api = APIS[type(request)]
        self.asked = {
            (topic.topic_id, row.partition): row for topic in request.topics for row in topic.partitions
        }
        self.rows: dict[Place, Any] = dict.fromkeys(self.asked)
        self.left = len(self.rows)

    def part(self, places: list[Place]) -> Message:
        """The request for some of its partitions."""
        topics = {topic.topic_id: topic for topic in self.request.topics}
        rows: dict[bytes, list[Any]] = {}
        for place in places:
            rows.setdefault(place[0], []).append(self.asked[place])
        parts = [replace(topics[topic_id], partitions=some) for topic_id, some in rows.items()]
        part: Message = replace(self.request, topics=parts)
        return part

    def refusal(self, place: Place, error: ErrorCode) -> Any:
        return self.api.result(place[1], error, error.message)

    def refused(self, places: list[Place], error: ErrorCode) -> dict[Place, Any]:
        return {place: self.refusal(place, error) for place in places}

    def take(self, place: Place, row: Any) -> None:
        """Note a result."""
        self.left -= self.rows[place] is None
        self.rows[place] = row

    def finish(self) -> None:
        """Answer, once every result is there."""
        if self.left == 0:
            self.left = -1
            self.then(self.response())

    def response(self) -> Message:
        return self.api.response(list(self._topics()))

    def _topics(self) -> Iterator[Any]:
        by_topic: dict[bytes, list[Any]] = {}
        for (topic_id, _), row in self.rows.items():
            by_topic.setdefault(topic_id, []).append(row)
        for topic_id, rows in by_topic.items():
            yield self.api.topic(topic_id, rows)
