"""DeleteTopics: topics removed by name or by id (KIP-516)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from kraftd.controller.context import Context
from kraftd.controller.decision import Decision, Refusal
from kraftd.controller.quotas.mutation import UNLIMITED, Charge
from kraftd.controller.record_limit import check_record_count
from kraftd.controller.slices import Pace, Sliced, Slices
from kraftd.controller.time_left import check_time_left
from kraftd.controller.topics.names import NameFilter, everything
from kraftd.controller.topics.work import DELETED_US
from kraftd.messages.delete_topics_request import DeleteTopicsRequest
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
    deletable: NameFilter = everything,
    describable: NameFilter = everything,
    charge: Charge = UNLIMITED,
) -> Slices[Decision[DeleteTopicsResponse]]:
    """Remove topics, named by name or by id (KIP-516); per topic its error.

    deletable and describable filter the names that the sender may delete, and may know of.  Raises Refusal:
    TOPIC_DELETION_DISABLED (INVALID_REQUEST before version 3) if delete.topic.enable is false,
    REQUEST_TIMED_OUT, POLICY_VIOLATION for more than 10,000 topics.
    """
    _check_deletion_is_enabled(ctx, version)
    image, pace = ctx.image, Pace()
    answer = DeleteTopicsResponse(responses=[])
    names, ids = _requested(request, answer)
    by_id = {id_: image.topics[id_].name for id_, count in ids.items() if count == 1 and id_ in image.topics}
    single_names = [name for name, count in names.items() if count == 1]
    if single_names or 1 in ids.values():
        check_time_left(request.timeout_ms)
    requested = {*single_names, *by_id.values()}
    allowed = _Allowed(deletable(requested), describable(requested))

    if pace.spent(len(requested)):
        yield
    doomed = yield from _by_id(answer, ids, by_id, allowed, pace)
    repeated_ids = {topic_id for topic_id, count in ids.items() if count > 1}
    yield from _add_named(answer, image, single_names, doomed, repeated_ids, allowed, pace)
    check_record_count(len(doomed))
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


class _Allowed(NamedTuple):
    """The names that the sender may delete, and those that it may know of."""

    delete: Collection[str]
    describe: Collection[str]


def _check_deletion_is_enabled(ctx: Context, version: int) -> None:
    if ctx.settings.topic_deletion:
        return
    if version < 3:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Topics cannot be deleted: delete.topic.enable is false.")
    raise Refusal(ErrorCode.TOPIC_DELETION_DISABLED)


def _by_id(
    answer: DeleteTopicsResponse, ids: Counter[bytes], by_id: dict[bytes, str], allowed: _Allowed, pace: Pace
) -> Slices[dict[bytes, str]]:
    """The topics to delete, by id, of those that the request names once by their id; others are refused."""
    doomed: dict[bytes, str] = {}
    for topic_id, count in ids.items():
        if pace.spent(DELETED_US):
            yield
        found = by_id.get(topic_id)
        if count > 1:
            continue
        if found is None:
            _refuse(answer, None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
        elif found not in allowed.delete:
            shown = found if found in allowed.describe else None
            _refuse(answer, shown, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        else:
            doomed[topic_id] = found
    return doomed


def _add_named(
    answer: DeleteTopicsResponse,
    image: Image,
    names: list[str],
    doomed: dict[bytes, str],
    refused_ids: set[bytes],
    allowed: _Allowed,
    pace: Pace,
) -> Slices[None]:
    """Add the topics of these names to `doomed`, or refuse them."""
    for name in names:
        if pace.spent(DELETED_US):
            yield
        named = image.topic_named(name)
        if name not in allowed.describe:
            _refuse(answer, name, ZERO_UUID, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif named is None:
            _refuse(answer, name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif name not in allowed.delete:
            _refuse(answer, name, ZERO_UUID, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif named.id in refused_ids or named.id in doomed:
            # Named twice, once by its id: an ambiguous request deletes nothing.
            refused_ids.add(named.id)
            doomed.pop(named.id, None)
            _refuse(answer, name, named.id, ErrorCode.INVALID_REQUEST, "This topic was also given by its id.")
        else:
            doomed[named.id] = name


def _requested(
    request: DeleteTopicsRequest, answer: DeleteTopicsResponse
) -> tuple[Counter[str], Counter[bytes]]:
    """How often the request has each name and id; invalid elements are refused."""
    names: Counter[str] = Counter(request.topic_names)
    ids: Counter[bytes] = Counter()
    invalid = ErrorCode.INVALID_REQUEST
    for topic in request.topics:
        if topic.name is None and topic.topic_id == ZERO_UUID:
            _refuse(answer, None, ZERO_UUID, invalid, "Neither a name nor an id was given.")
        elif topic.name is None:
            ids[topic.topic_id] += 1
        elif topic.topic_id == ZERO_UUID:
            names[topic.name] += 1
        else:
            message = "Either a name or an id can be given, not both."
            _refuse(answer, topic.name, topic.topic_id, invalid, message)
    for name, count in names.items():
        if count > 1:
            _refuse(answer, name, ZERO_UUID, invalid, "The request has this name more than once.")
    for topic_id, count in ids.items():
        if count > 1:
            _refuse(answer, None, topic_id, invalid, "The request has this id more than once.")
    return names, ids


def _refuse(
    answer: DeleteTopicsResponse,
    name: str | None,
    topic_id: bytes,
    code: ErrorCode,
    message: str | None = None,
) -> None:
    answer.responses.append(DeletableTopicResult(name, topic_id, code, message or code.message))
