"""What admin clients change at a broker, for the audit stream and the log.

They delete groups, offsets and records, and set offsets back. The controller audits what changes the
metadata. Produced records and the commits of members are no events.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kraftd.messages.delete_groups_response import DeleteGroupsResponse
from kraftd.messages.delete_records_response import DeleteRecordsResponse
from kraftd.messages.offset_commit_response import OffsetCommitResponse
from kraftd.messages.offset_delete_response import OffsetDeleteResponse
from kraftd.requests.effects import AuditLine, Caller
from kraftd.types import uuid_text

if TYPE_CHECKING:
    from kraftd.requests.call import Call
    from kraftd.requests.outbox import Outbox
    from kraftd.wire.message import Message

MAX_NAMES = 10


def audit(outbox: Outbox, call: Call, response: Message, *, sets_back: bool = False) -> None:
    """Audit and log what an answered call has changed; nothing for most APIs, or if it was refused.

    sets_back: the call commits an offset that is before the one that its group has.
    """
    found: tuple[str, dict[str, Any]] | None = None
    if isinstance(response, DeleteGroupsResponse):
        groups = [one.group_id for one in response.results if not one.error_code]
        found = ("groups deleted", _named("groups", groups)) if groups else None
    elif isinstance(response, OffsetDeleteResponse):
        found = None if response.error_code else _of_group("offsets deleted", call, response.topics)
    elif isinstance(response, DeleteRecordsResponse):
        topics = [one for one in response.topics if _count(one)]
        found = ("records deleted", _of_topics(topics)) if topics else None
    elif sets_back and isinstance(response, OffsetCommitResponse):
        found = _of_group("offsets set back", call, response.topics)
    if found is not None:
        event, fields = found
        caller = Caller(call.principal, call.client_id, call.host, call.key)
        outbox.emit(AuditLine(event, -1, fields, caller))
        outbox.log("info", event, **fields, **caller.fields())


def _of_group(event: str, call: Call, topics: Iterable[Any]) -> tuple[str, dict[str, Any]] | None:
    done = [one for one in topics if _count(one)]
    return (event, {"group": call.message.group_id, **_of_topics(done)}) if done else None


def _of_topics(topics: list[Any]) -> dict[str, Any]:
    fields = _named("topics", [one.name or uuid_text(one.topic_id) for one in topics])
    return {**fields, "count": sum(map(_count, topics))}


def _named(what: str, names: list[str]) -> dict[str, Any]:
    more = ", …" if len(names) > MAX_NAMES else ""
    return {"count": len(names), what: ", ".join(names[:MAX_NAMES]) + more}


def _count(topic: Any) -> int:
    """The partitions of a topic for which the answer names no error."""
    return sum(not one.error_code for one in topic.partitions)
