"""The group coordinator beside this broker's partitions of ``__consumer_offsets``."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from msgspec.structs import replace

from kraftd.acl import AclResourceType
from kraftd.answers.operations import allowed_operations
from kraftd.broker_node.audit import audit
from kraftd.broker_node.coordination.coordination import CoordinatingNode, Coordination
from kraftd.broker_node.coordination.group_pieces import joined, pieces_of
from kraftd.broker_node.coordination.known_topics import KnownTopics
from kraftd.broker_node.coordination.latest_offsets import find_latest_offsets
from kraftd.broker_node.coordination.persister import Persister
from kraftd.broker_node.coordination.share_coordination import SHARE_VERSION
from kraftd.groups.answers import refused_transactional_commit
from kraftd.groups.batches import Producer
from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer.heartbeat import has_many
from kraftd.groups.coordinator import GroupCoordinator
from kraftd.groups.events import TopicsDeleted
from kraftd.groups.gathered import Gathered
from kraftd.groups.shard import ShardStatus
from kraftd.groups.share.asking import Offsets
from kraftd.groups.share.effects import (
    AskShareCoordinators,
    FindLatestOffsets,
    LatestOffsetsFound,
    ShareCoordinatorsAnswered,
)
from kraftd.groups.topics import known_transactional_commit, merge_by_name
from kraftd.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from kraftd.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kraftd.messages.describe_groups_response import DescribeGroupsResponse
from kraftd.messages.offset_commit_request import OffsetCommitRequest
from kraftd.messages.share_group_describe_response import ShareGroupDescribeResponse
from kraftd.types import OFFSETS_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

if TYPE_CHECKING:
    from kraftd.messages.write_txn_markers_request import WritableTxnMarker
    from kraftd.metadata.image import Image
    from kraftd.requests.call import Call
    from kraftd.requests.holds import Work


HEARTBEATS = ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_HEARTBEAT
GROUP_VERSION = "group.version"  # the feature that allows consumer groups

Described = DescribeGroupsResponse | ConsumerGroupDescribeResponse | ShareGroupDescribeResponse
DESCRIBED = frozenset(get_args(Described))


class GroupCoordination(Coordination):
    """Drives the group coordinator. `listener` is the one among brokers."""

    topic = OFFSETS_TOPIC
    content = "groups"

    def __init__(
        self,
        node: CoordinatingNode,
        config: GroupConfig,
        persister: Persister,
        listener: str,
        new_uuid: Callable[[], str],
    ) -> None:
        self._topics = KnownTopics(node.view, node.go_on)
        self.coordinator = GroupCoordinator(config, self._topics, new_uuid)
        super().__init__(node, self.coordinator, config.offsets_topic_compression_codec)
        # Pieces of large requests, with the whole ones and where their answers go.
        self._pieces: dict[Call, tuple[Call, Callable[[Any], None]]] = {}
        self._setting_back: set[Call] = set()  # commits of an offset before that of the group
        self._persister = persister
        self._listener = listener
        self._performers |= {
            AskShareCoordinators: self._ask_share_coordinators,
            FindLatestOffsets: self._find_latest_offsets,
        }

    def _find_latest_offsets(self, effect: FindLatestOffsets) -> None:
        def then(offsets: Offsets) -> None:
            self.step(LatestOffsetsFound(effect.number, offsets))

        find_latest_offsets(self._node, effect.places, self._listener, then)

    def _ask_share_coordinators(self, effect: AskShareCoordinators) -> None:
        def then(response: Message) -> None:
            self.step(ShareCoordinatorsAnswered(effect.number, response))

        self._persister.ask(effect.request, then)

    def handle(self, call: Call, guard: int = 0, divided: object = None) -> None:
        """Take a request of a group; `guard` is that of a verified part of a transaction."""
        group_call = self.new_call(call)
        group_call.divided = divided
        if isinstance(call.message, OffsetCommitRequest) and self.coordinator.sets_back(call.message):
            self._setting_back.add(call)
        group_call.guard = guard
        try:
            effects = self.coordinator.handle(group_call, call.message, self._node.wall_ms)
        except Exception:
            call.settled = False  # nothing else answers it
            raise
        self.perform(effects)

    def refuse_commit(self, call: Call, error: ErrorCode) -> None:
        """Refuse a commit whose transaction was not verified: each partition that could be committed."""
        group_call, coordinator = self.new_call(call), self.coordinator
        part, answered = known_transactional_commit(coordinator.topics, group_call, call.message)
        coordinator.respond(group_call, merge_by_name(answered, refused_transactional_commit(part, error)))
        self.perform(coordinator.take_effects())

    def unhashed(self, call: Call) -> list[str]:
        """The topics of a member's subscription whose hash must be computed in slices first."""
        if call.key not in HEARTBEATS:
            return []
        return [name for name in call.message.subscribed_topic_names or () if self._topics.lacks_hash(name)]

    def prepared(self, call: Call) -> Work | None:
        """Take a heartbeat after what it needs, in slices; None if it needs nothing."""
        if call.key not in HEARTBEATS:
            return None
        if (
            self.unhashed(call)
            or self.coordinator.hash_first(call.message)
            or self.coordinator.divide_first(self.new_call(call), call.message)
        ):
            return self._handle_prepared(call)
        return None

    def _handle_prepared(self, call: Call) -> Work:
        divided = yield from self._prepare(call)
        self.handle(call, divided=divided)

    def _prepare(self, call: Call) -> Generator[None, None, object]:
        """Hashes of large topics, and the division of a member's very many partitions."""
        call.settled = True
        for name in self.unhashed(call):
            yield from self._topics.hash_in_slices(name)
        hashing = self.coordinator.hash_first(call.message)
        if hashing is not None:
            yield from hashing
        dividing = self.coordinator.divide_first(self.new_call(call), call.message)
        return None if dividing is None else (yield from dividing)

    def handle_in_pieces(self, call: Call, guard: int = 0) -> Work:
        """Take a large request, a piece in each callback; its connection's next request waits. The guard is
        as in `handle`: with the first piece the transaction is ongoing.
        """
        divided = yield from self._prepare(call)
        pieces = pieces_of(call.message)

        def finish(answers: list[Any]) -> None:
            self._node.guarded(call, lambda: self._answer_whole(call, joined(answers)))

        gathered = Gathered(len(pieces), finish)
        for number, message in enumerate(pieces):
            if number:
                yield
            piece = replace(call, message=message)
            self._pieces[piece] = call, partial(gathered.put, number)
            try:
                self.handle(piece, guard, divided)
            except Exception:
                del self._pieces[piece]
                call.settled = False
                raise

    def image_changed(self, image: Image, levels: Mapping[str, int]) -> None:
        super().image_changed(image, levels)
        self.coordinator.group_version = levels.get(GROUP_VERSION, 0)
        self.coordinator.share.version = levels.get(SHARE_VERSION, 0)

    def list_in_slices(self, call: Call) -> Work:
        """Answer a ListGroups."""
        listing = self.coordinator.listing(self.new_call(call), call.message, self._node.wall_ms)
        response = yield from listing
        call.settled = False
        yield from self._node.boundary.answer_in_slices(call, response)

    def describe_in_slices(self, call: Call) -> Work:
        """Answer a ConsumerGroupDescribe or a ShareGroupDescribe."""
        response: Any = yield from self.coordinator.describing(
            self.new_call(call), call.message, self._node.wall_ms
        )
        self._add_operations(call, response)
        call.settled = False
        yield from self._node.boundary.answer_in_slices(call, response)

    def serves(self, group_id: str) -> bool:
        """Return whether a group's partition is led here, and loaded."""
        self.follow_image()
        shard = self.coordinator.shards.get(self.coordinator.partition_for(group_id))
        return shard is not None and shard.status is ShardStatus.ACTIVE

    def answer(self, call: Call, response: Any) -> None:
        if type(response) in DESCRIBED:
            self._add_operations(call, response)
        if call in self._pieces:
            whole, put = self._pieces.pop(call)
            if call in self._setting_back:
                self._setting_back.remove(call)
                self._setting_back.add(whole)
            put(response)
        else:
            self._audit(call, response)
            if isinstance(response, ConsumerGroupHeartbeatResponse) and has_many(response):
                self._node.boundary.large.begin(call, self._answer_later(call, response))
            else:
                super().answer(call, response)

    def _answer_later(self, call: Call, response: Message) -> Work:
        """Answer after a pause: the record of what it says was appended just now."""
        yield
        call.settled = False
        yield from self._node.boundary.answer_in_slices(call, response)

    def _answer_whole(self, call: Call, response: Any) -> None:
        self._audit(call, response)
        call.settled = False
        boundary = self._node.boundary
        boundary.large.begin(call, boundary.answer_in_slices(call, response))

    def _audit(self, call: Call, response: Any) -> None:
        audit(self._node.outbox, call, response, sets_back=call in self._setting_back)
        self._setting_back.discard(call)

    def _add_operations(self, call: Call, response: Described) -> None:
        """Add what the client may do with each group, if it asks for that."""
        if call.message.include_authorized_operations:
            for group in response.groups:
                if not group.error_code:
                    type = AclResourceType.GROUP
                    group.authorized_operations = allowed_operations(self._node, call, type, group.group_id)

    def end_transaction(
        self, index: int, marker: WritableTxnMarker, answer: Callable[[ErrorCode], None]
    ) -> None:
        """Write the end of a transaction that has committed offsets into a partition of the topic."""
        self.perform(
            self.coordinator.end_transaction(
                index,
                Producer(marker.producer_id, marker.producer_epoch),
                marker.coordinator_epoch,
                marker.transaction_result,
                marker.transaction_version,
                answer,
                self._node.wall_ms,
            )
        )

    def topics_deleted(self, topics: list[tuple[str, bytes]]) -> None:
        """Forget the offsets of topics that are gone, by name and id; a name may be there repeatedly."""
        while topics:
            latest = dict(topics)
            self.step(TopicsDeleted(latest))
            topics = [one for one in topics if latest[one[0]] != one[1]]
