"""The answer that refuses a whole request, for every API: where each response carries its errors.

A response with an `error_code` of its own carries it there. Any other carries it in every element that
corresponds to one of the request (a topic, a partition, a resource). The shapes are derived from the message
classes, once per API.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.wire.api import ApiKey, response_class
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from kraftd.wire.table import table_of

Builder = Callable[[Any, int, str | None], Any]

NOTHING = -1  # an offset or an epoch that there is not

# Fields of both request and answer elements that do not identify them.
_NOT_NAMES = frozenset(
    {
        "unknown_tags",
        "num_partitions",
        "replication_factor",
        "leader_epoch",
        "leader_id",
        "partition_epoch",
        "leader_recovery_state",
    }
)
# Kafka repeats the error in the elements of these, beside the top-level one.
_ERRORS_EVERYWHERE = frozenset({ApiKey.METADATA, ApiKey.ELECT_LEADERS, ApiKey.ALTER_PARTITION_REASSIGNMENTS})
_BY_THEMSELVES = frozenset(
    {
        ApiKey.FETCH,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    }
)
NO_PROTOCOL_VERSION = 7  # of JoinGroup: a refused member has no protocol


def refuse(
    key: int, version: int, request: Message | None, code: ErrorCode | int, message: str | None = None
) -> Message:
    """The response of API `key` in a version, with `code` for every element of `request`.

    `request` is None if it could not be decoded: then only a top-level error is possible. `message` is
    dropped if the response has no field for it.
    """
    if request is not None and key in _BY_THEMSELVES:
        return _refuse_by_itself(key, version, request, int(code), message)
    if key == ApiKey.DELETE_TOPICS and request is not None:
        request = _by_topic(request)
    response = response_class(key)
    answer = response()
    fields = _types(response)
    whole = "error_code" in fields and _has(response, "error_code", version)
    if whole:
        answer.error_code = int(code)  # type: ignore[attr-defined]
        if "error_message" in fields:
            answer.error_message = message  # type: ignore[attr-defined]
    has_elements = key in _ERRORS_EVERYWHERE or (not whole and key != ApiKey.DESCRIBE_LOG_DIRS)
    if request is not None and has_elements:
        build = _elements(type(request), response)
        if build is not None:
            name, builder = build
            setattr(answer, name, builder(request, int(code), message))
    if key == ApiKey.DESCRIBE_CLIENT_QUOTAS:
        answer.entries = None  # type: ignore[attr-defined]
    if key == ApiKey.JOIN_GROUP and version >= NO_PROTOCOL_VERSION:
        answer.protocol_name = None  # type: ignore[attr-defined]
    if key == ApiKey.INIT_PRODUCER_ID:
        answer.producer_epoch = NOTHING  # type: ignore[attr-defined]
    if key == ApiKey.PRODUCE:
        for topic in answer.responses:  # type: ignore[attr-defined]
            for partition in topic.partition_responses:
                partition.base_offset = NOTHING
    if key == ApiKey.METADATA:
        for topic in answer.topics:  # type: ignore[attr-defined]
            topic.name = topic.name or ""  # as in Kafka: below v12 an answer cannot hold null
    return answer


def has_one_error(key: int, version: int) -> bool:
    """Return whether one error refuses a whole request, whatever its elements are."""
    if key in _ERRORS_EVERYWHERE or key in _BY_THEMSELVES:
        return False
    response = response_class(key)
    return "error_code" in _types(response) and _has(response, "error_code", version)


def _refuse_by_itself(key: int, version: int, request: Message, code: int, message: str | None) -> Message:
    from kraftd.requests import refused_elements as elements

    if key == ApiKey.FETCH:
        return elements.refused_fetch(request, version, code)
    if key == ApiKey.LIST_PARTITION_REASSIGNMENTS:
        return elements.refused_listing(request, code, message)
    if key == ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
        return elements.refused_scram(request, code, message)
    if key == ApiKey.ALTER_REPLICA_LOG_DIRS:
        return elements.refused_log_dirs(request, code)
    if key == ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS:
        return elements.refused_users(request, code, message)
    return elements.refused_quotas(request, code, message)


def _by_topic(request: Any) -> Any:
    """A DeleteTopics request in the form of v6: earlier, topics were a list of names."""
    if request.topics:
        return request
    return DeleteTopicsRequest([DeleteTopicState(name) for name in request.topic_names])


@cache
def _has(response: type[Message], field: str, version: int) -> bool:
    """Return whether a version of a response has one of its fields."""
    rows = table_of(response).root.fields
    first, last = next(row.versions for row in rows if row.attribute == field)
    return first <= version <= last


@cache
def _types(message_class: type) -> dict[str, Any]:
    return typing.get_type_hints(message_class)


def _element_class(annotation: Any) -> type | None:
    """The struct class of `list[X]` or `list[X] | None`."""
    for option in typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,):
        if typing.get_origin(option) is list:
            (element,) = typing.get_args(option)
            return element if isinstance(element, type) and issubclass(element, Message) else None
    return None


def element_class(message: type[Message], field: str) -> type | None:
    """The class of the elements of a field; None if they are no structs."""
    return _element_class(_types(message)[field])


def _may_be_none(annotation: Any) -> bool:
    return types.NoneType in typing.get_args(annotation)


def _primitive_array(annotation: Any) -> bool:
    options = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    return any(typing.get_origin(option) is tuple for option in options)


@cache
def _elements(request: type, response: type) -> tuple[str, Builder] | None:
    """The response's field of refused elements, and its construction from the request."""
    target = next(
        (
            (name, element)
            for name, annotation in _types(response).items()
            if (element := _element_class(annotation)) is not None
            and ("error_code" in _types(element) or any(map(_element_class, _types(element).values())))
        ),
        None,
    )
    source = next(
        (
            (name, _element_class(annotation))
            for name, annotation in _types(request).items()
            if name != "unknown_tags" and (_element_class(annotation) or _primitive_array(annotation))
        ),
        None,
    )
    if target is None or source is None:
        return None
    target_name, target_class = target
    source_name, source_class = source
    copied = _copied_fields(source_class, target_class)
    own_error = "error_code" in _types(target_class)
    own_message = "error_message" in _types(target_class)
    no_text = own_message and _may_be_none(_types(target_class)["error_message"])
    inner = None if own_error or source_class is None else _elements(source_class, target_class)
    only = next(iter(msgspec.structs.fields(target_class))).name if source_class is None else None

    def build(requested: Any, code: int, message: str | None) -> list[Any]:
        built = []
        for item in getattr(requested, source_name) or ():
            element = target_class()
            if only is not None:
                setattr(
                    element, only if not own_error or only != "error_code" else _first_key(target_class), item
                )
            for name in copied:
                setattr(element, name, getattr(item, name))
            if own_error:
                element.error_code = code
                if own_message and (message is not None or no_text):
                    element.error_message = message
            elif inner is not None:
                setattr(element, inner[0], inner[1](item, code, message))
            built.append(element)
        return built

    return target_name, build


def _first_key(element: type) -> str:
    return next(
        field.name
        for field in msgspec.structs.fields(element)
        if field.name not in ("error_code", "error_message")
    )


def _copied_fields(source: type | None, target: type) -> tuple[str, ...]:
    """Names, ids and indexes that both elements have."""
    if source is None:
        return ()
    theirs = _types(source)
    return tuple(
        name
        for name, annotation in _types(target).items()
        if name in theirs and name not in _NOT_NAMES and annotation in (theirs[name], theirs[name] | None)
    )
