"""DeleteTopics: topics removed by name or by id (KIP-516)."""

from __future__ import annotations

from collections.abc import Set

from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.quotas.mutation import UNLIMITED, Charge
from kraftd.controller.record_limit import check_record_count
from kraftd.controller.topics.work import DELETED_US
from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.metadata.image import Image
from kraftd.types import ZERO_UUID
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord


@Sliced
def delete_topics(
    ctx: Context,
    request: DeleteTopicsRequest,
    version: int,
    *,
    refused_ids: Set[bytes] = frozenset(),
    charge: Charge = UNLIMITED,
) -> Slices[Decision[DeleteTopicsResponse]]:
    """Remove topics, named by name or by id (KIP-516); per topic its error.

    The request's `topics` have no name and no id twice. A topic that is named by name as well as by id, maybe
    by one of the `refused_ids`, is not deleted. Raises Refusal(POLICY_VIOLATION) for more than 10,000 topics.
    """
    image, pace = ctx.image, Pace()
    answer = DeleteTopicsResponse(responses=[])
    doomed = yield from _doomed(answer, image, request.topics, refused_ids, pace)
    records = []
    for topic_id, name in doomed.items():
        partition_count = len(image.topics[topic_id].partitions)
        if pace.spent(DELETED_US + partition_count):
            yield  # so that many deletions are also applied in slices
        try:
            charge.take(partition_count)
        except Refusal as refusal:
            _refuse(answer, name, topic_id, refusal.code, refusal.message)
            continue
        records.append(VersionedRecord(RemoveTopicRecord(topic_id), 0))
        answer.responses.append(DeletableTopicResult(name, topic_id))
    answer.throttle_time_ms = charge.throttle_ms
    return Decision(answer, records, after=charge.commit)


def check_deletion_is_enabled(ctx: Context, version: int) -> None:
    """Raise Refusal if delete.topic.enable is false: TOPIC_DELETION_DISABLED, INVALID_REQUEST before
    version 3.
    """
    if ctx.settings.delete_topic_enable:
        return
    if version < 3:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Topics cannot be deleted: delete.topic.enable is false.")
    raise Refusal(ErrorCode.TOPIC_DELETION_DISABLED)


def _doomed(
    answer: DeleteTopicsResponse,
    image: Image,
    topics: list[DeleteTopicState],
    refused_ids: Set[bytes],
    pace: Pace,
) -> Slices[dict[bytes, str]]:
    """The names of the topics to delete, by id; the others are refused."""
    doomed: dict[bytes, str] = {}
    for topic in topics:
        if pace.spent(DELETED_US):
            yield
        if topic.name is None:
            found = image.topic(topic.topic_id)
            if found is None:
                _refuse(answer, None, topic.topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
            else:
                doomed[topic.topic_id] = found.name
                check_record_count(len(doomed))
    twice = set(refused_ids)
    for topic in topics:
        if pace.spent(DELETED_US):
            yield
        if topic.name is None:
            continue
        named = image.topic_named(topic.name)
        if named is None:
            _refuse(answer, topic.name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif named.id in doomed or named.id in twice:
            # Named twice, once by its id: an ambiguous request deletes nothing.
            twice.add(named.id)
            doomed.pop(named.id, None)
            _refuse(
                answer,
                topic.name,
                named.id,
                ErrorCode.INVALID_REQUEST,
                "This topic was also given by its id.",
            )
        else:
            doomed[named.id] = topic.name
            check_record_count(len(doomed))
    return doomed


def _refuse(
    answer: DeleteTopicsResponse,
    name: str | None,
    topic_id: bytes,
    code: ErrorCode,
    message: str | None = None,
) -> None:
    answer.responses.append(DeletableTopicResult(name, topic_id, code, message or code.message))
