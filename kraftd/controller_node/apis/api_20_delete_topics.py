"""DeleteTopics (20), v1-6: delete topics by name or id (KIP-516).

Authorization: DELETE on the cluster or the topic. Sent by: admin clients. Answered after commit. Errors, per
topic: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_REQUEST, THROTTLING_QUOTA_EXCEEDED (v5 and
later); TOPIC_DELETION_DISABLED and REQUEST_TIMED_OUT (no time left) for the whole.
Differs from Apache Kafka: answers come in order, not shuffled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import structs

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller.time_left import check_time_left
from kraftd.controller.topics.delete_topics import check_deletion_is_enabled, delete_topics
from kraftd.controller_node.apis.mutation_quota import charge_of
from kraftd.controller_node.apis.permissions import ELEMENT_US, TopicPermission, allows_no_topic
from kraftd.ground.occurrences import count_in_slices
from kraftd.ground.pace import Pace, Slices
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from kraftd.requests.refused_rows import ROW_US, RefusedRows
from kraftd.requests.unread_refusals import UnreadRefusal
from kraftd.types import ZERO_UUID
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call

NEITHER = "Neither a name nor an id was given."
BOTH = "Either a name or an id can be given, not both."
NAME_REPEATED = "The request has this name more than once."
ID_REPEATED = "The request has this id more than once."
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
UNREAD = UnreadRefusal(
    ("topics",),
    "name",
    lambda name: DeleteTopicsRequest([DeleteTopicState(name)]),
    DeleteTopicsResponse,
    "responses",
    lambda name: DeletableTopicResult(name, ZERO_UUID, _DENIED, _DENIED.message),
    _DENIED,
    AclOperation.DELETE,
    AclResourceType.TOPIC,
    checked="topic_id",
)
UNREAD_NAMES = UNREAD._replace(
    elements=("topic_names",),
    copied="",
    request=lambda name: DeleteTopicsRequest(topic_names=(name,)),
    checked="",
)
_FIRST_WITH_IDS = 6


def handle(node: Node, call: Call) -> Slices[None]:
    node.decision_rights.check_may_decide()
    sorting = _Sorting(node, call)
    yield from sorting.run(call.message)
    left, refused = sorting.left, sorting.refused

    def decide(ctx: Any, request: DeleteTopicsRequest, version: int) -> Any:
        check_deletion_is_enabled(ctx, version)
        if sorting.names_one_once:
            check_time_left(request.timeout_ms)
        request = structs.replace(request, topics=left, topic_names=())
        charge = charge_of(ctx, call)
        return delete_topics.begin(ctx, request, version, refused_ids=sorting.refused_ids, charge=charge)

    node.decisions.decide(call, decide, refused=refused)


def unread(node: Node, call: Call) -> UnreadRefusal | None:
    """How to refuse all topics that are named by a sender that may delete none, and learns of none."""
    denied = (
        node.active
        and node.context.settings.delete_topic_enable
        and allows_no_topic(node, call, AclOperation.DELETE, or_on_cluster=True)
        and allows_no_topic(node, call, AclOperation.DESCRIBE)
    )
    if not denied:
        return None
    return UNREAD if call.version >= _FIRST_WITH_IDS else UNREAD_NAMES


class _Sorting:
    """Sorts out the topics that are named once and that the sender may delete (`left`).

    A sender that may not describe a topic learns nothing of it, neither its name from its id nor whether it
    exists. `refused_ids` are of topics named by id more than once. `names_one_once` says whether the request
    has a name or an id once.
    """

    def __init__(self, node: Node, call: Call) -> None:
        self.left: list[DeleteTopicState] = []
        self.refused = RefusedRows(call, DeleteTopicsResponse, "responses")
        self.refused_ids: set[bytes] = set()
        self.names_one_once = False
        self._image = node.image
        self._deleting = TopicPermission(node, call, AclOperation.DELETE, or_on_cluster=True)
        self._describing = self._deleting
        if not self._deleting.is_on_cluster:
            self._describing = TopicPermission(node, call, AclOperation.DESCRIBE, quietly=True)
        self._pace = Pace()

    def run(self, request: DeleteTopicsRequest) -> Slices[None]:
        """Sort the topics of a request."""
        topics: Sequence[Any] = request.topic_names or request.topics
        times = yield from count_in_slices(topics, _key, self._pace)
        for topic in topics:
            key = _key(topic)
            count = 1 if key is None else times.take(key)
            if not count:
                continue  # answered at its first place
            if self._pace.spent(self._sort(topic, key, count)):
                yield
        self._deleting.end()
        self.refused.end()

    def _sort(self, topic: Any, key: str | bytes | None, count: int) -> int:
        """Sort one topic; returns what it has cost, in microseconds."""
        if key is None:
            self._refuse(topic.name, topic.topic_id, _INVALID, NEITHER if topic.name is None else BOTH)
        elif isinstance(key, bytes):
            return self._sort_id(topic, key, count)
        elif count > 1:
            self._refuse(key, ZERO_UUID, _INVALID, NAME_REPEATED)
        else:
            return self._sort_name(key)
        return ROW_US

    def _sort_id(self, topic: DeleteTopicState, topic_id: bytes, count: int) -> int:
        found = self._image.topic(topic_id)
        if count > 1:
            if found is not None:
                self.refused_ids.add(topic_id)
            self._refuse(None, topic_id, _INVALID, ID_REPEATED)
            return ROW_US
        self.names_one_once = True
        if found is None:
            self._refuse(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
            return ROW_US
        if self._deleting.allows(found.name):
            self.left.append(topic)
            return ELEMENT_US + self._deleting.cost_us
        shown = found.name if self._describing.allows(found.name) else None
        self._refuse(shown, topic_id, _DENIED)
        return ROW_US + self._deleting.cost_us + self._describing.cost_us

    def _sort_name(self, name: str) -> int:
        self.names_one_once = True
        may_delete, may_describe = self._deleting.allows(name), self._describing.allows(name)
        if may_delete and may_describe:
            self.left.append(DeleteTopicState(name))
            return ELEMENT_US + self._deleting.cost_us + self._describing.cost_us
        is_unknown = may_describe and self._image.topic_named(name) is None
        self._refuse(name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_unknown else _DENIED)
        return ROW_US + self._deleting.cost_us + self._describing.cost_us

    def _refuse(self, name: str | None, topic_id: bytes, code: ErrorCode, message: str | None = None) -> None:
        self.refused.add(DeletableTopicResult(name, topic_id, code, message or code.message))


_INVALID = ErrorCode.INVALID_REQUEST


def _key(topic: str | DeleteTopicState) -> str | bytes | None:
    """The name or the id of a topic; None if the request gives neither or both."""
    if isinstance(topic, str):
        return topic
    if topic.name is None:
        return None if topic.topic_id == ZERO_UUID else topic.topic_id
    return topic.name if topic.topic_id == ZERO_UUID else None
