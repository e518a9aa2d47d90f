"""The decisions of kraftd's group coordinator that ``test_kafkas_decisions`` holds beside Kafka's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

import msgspec

from kraftd.ground.pace import at_once
from kraftd.ground.refusal import Refusal
from kraftd.groups.call import Call
from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.classic.join import Joining
from kraftd.groups.classic.membership import described, heartbeat, leave, sync, unload
from kraftd.groups.classic.rebalance import heard, prepare
from kraftd.groups.consumer.describing import described_consumer_group
from kraftd.groups.consumer.fencing import leave as leave_consumer_group
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.heartbeat import Heartbeat
from kraftd.groups.consumer.patterns import RESOLVING
from kraftd.groups.consumer.sessions import watch
from kraftd.groups.listing import listed_groups
from kraftd.groups.offsets.commit import commit, commit_in_transaction, delete_offsets
from kraftd.groups.offsets.fetch import fetch_offsets
from kraftd.groups.offsets.removal import delete_groups, expire_of_group, remove_topics
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord, decode_record, encode_record
from kraftd.groups.share.describing import described_share_group
from kraftd.groups.share.group import ShareGroup
from kraftd.groups.share.heartbeat import ShareHeartbeat
from kraftd.groups.share.initializing import note
from kraftd.groups.share.sessions import leave as leave_share_group
from kraftd.groups.share.sessions import watch as watch_share_group
from kraftd.groups.share.topics import remove_state_of_topics
from kraftd.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kraftd.messages.describe_groups_response import DescribeGroupsResponse
from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.messages.heartbeat_response import HeartbeatResponse
from kraftd.messages.join_group_request import JoinGroupRequest
from kraftd.messages.join_group_response import JoinGroupResponse
from kraftd.messages.leave_group_request import LeaveGroupRequest
from kraftd.messages.leave_group_response import LeaveGroupResponse
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.list_groups_response import ListGroupsResponse
from kraftd.messages.offset_commit_key import OffsetCommitKey
from kraftd.messages.offset_commit_request import OffsetCommitRequest
from kraftd.messages.offset_commit_response import OffsetCommitResponse
from kraftd.messages.offset_delete_request import OffsetDeleteRequest
from kraftd.messages.offset_delete_response import OffsetDeleteResponse
from kraftd.messages.offset_fetch_request import OffsetFetchRequest
from kraftd.messages.offset_fetch_response import OffsetFetchResponse
from kraftd.messages.share_group_describe_response import ShareGroupDescribeResponse
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftd.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from kraftd.messages.sync_group_request import SyncGroupRequest
from kraftd.messages.sync_group_response import SyncGroupResponse
from kraftd.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from kraftd.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from kraftd.types import parse_uuid, uuid_text
from kraftd.wire.codec import encode_bytes
from kraftd.wire.error_code import ErrorCode
from tests.groups.kafkas_world import (
    MAX_LONG,
    NAMED_VERSION,
    Columns,
    Otherwise,
    World,
    newest,
    partitions_of,
    read,
    shown,
)


def shown_record(text: str) -> str:
    key, _, value = text.partition(":")
    record = decode_record(bytes.fromhex(key), bytes.fromhex(value) if value else None)[1]
    return f"{type(record.key).__name__} {shown(record.key)} {record.value and shown(record.value)}"


def ordered(records: Iterable[str]) -> list[str]:
    """Records in a form that is compared: those of one kind that follow each other in any order.

    So may members follow each other whose records are removed, but not the records of one of them.
    """
    rows: list[str] = []
    for (kind, is_value), run in groupby(map(shown_record, records), run_of):
        by = None if is_value or not kind else member_of
        rows += sorted(run, key=by)
    return rows


def run_of(record: str) -> tuple[str, bool]:
    kind, is_tombstone = record.split()[0], record.endswith(" None")
    return ("member" if is_tombstone and "'member_id'" in record else kind), not is_tombstone


def member_of(record: str) -> str:
    return record.partition(" ")[2]


# --- the decisions of kraftd ----------------------------------------------------------------------


class Asked(msgspec.Struct):
    """A decision of Kafka's test: what was asked, in columns."""

    number: str
    name: str
    now_ms: int
    arguments: Columns

    def call(self, world: World) -> Call:
        version, client_id, host = self.arguments[:3]
        return Call(self.number, int(version), client_id, host, lambda _, __, name: name not in world.denied)


def joined(world: World, asked: Asked) -> Outcome:
    return Joining(world.state, asked.call(world), read(JoinGroupRequest, asked.arguments[3])).run()


def synced(world: World, asked: Asked) -> Outcome:
    return sync(world.state, asked.call(world), read(SyncGroupRequest, asked.arguments[3]))


def beat(world: World, asked: Asked) -> Outcome:
    return Outcome(response=heartbeat(world.state, read(HeartbeatRequest, asked.arguments[3])))


def left(world: World, asked: Asked) -> Outcome:
    return leave(world.state, read(LeaveGroupRequest, asked.arguments[3]))


def consumer_beat(world: World, asked: Asked) -> Outcome:
    request = read(ConsumerGroupHeartbeatRequest, asked.arguments[3])
    if request.member_epoch < 0:
        return leave_consumer_group(world.state, request)
    return Heartbeat(world.state, asked.call(world), request).run()


def share_beat(world: World, asked: Asked) -> Outcome:
    request = read(ShareGroupHeartbeatRequest, asked.arguments[3])
    if request.member_epoch < 0:
        outcome = leave_share_group(world.state, request)
        outcome.response = shown(outcome.response) + " "
        return outcome
    one = ShareHeartbeat(world.state, asked.call(world), request)
    outcome = one.run()
    rows = sorted((uuid_text(topic_id), sorted(named.indexes)) for topic_id, named in one.begun.items())
    begun = [f"{topic}:{'.'.join(sorted(f'{index}@{one.epoch}' for index in some))}" for topic, some in rows]
    outcome.response = shown(outcome.response) + " " + ",".join(begun)
    return outcome


def listed(world: World, asked: Asked) -> Outcome:
    states, types = ([one for one in text.split(",") if one] for text in asked.arguments[:2])
    rows = at_once(listed_groups([world.state], ListGroupsRequest(states, types)))
    return Outcome(response=ListGroupsResponse(groups=rows) if rows else "[]")


def groups_described(world: World, asked: Asked) -> Outcome:
    ids = asked.arguments[3].split(",")
    rows = [described(world.state, one, int(asked.arguments[0])) for one in ids]
    return Outcome(response=DescribeGroupsResponse(groups=rows))


ANY_CALL = Call("any", 0)


def consumer_groups_described(world: World, asked: Asked) -> Outcome:
    rows = [
        at_once(described_consumer_group(world.state, ANY_CALL, one)) for one in asked.arguments[0].split(",")
    ]
    return Outcome(response=ConsumerGroupDescribeResponse(groups=rows))


def share_groups_described(world: World, asked: Asked) -> Outcome:
    rows = [
        at_once(described_share_group(world.state, ANY_CALL, one))
        for one in asked.arguments[0].split(",")
        if one
    ]
    return Outcome(response=ShareGroupDescribeResponse(groups=rows) if rows else "[]")


def expired(world: World, asked: Asked) -> Outcome:
    """What is due by now, but for what Kafka has tasks for."""
    deadlines = world.state.deadlines
    tasks = {key: one for key, one in deadlines._entries.items() if key[0] == RESOLVING}  # type: ignore[index]
    for key in tasks:
        deadlines.cancel(key)
    outcome = performed(lambda: deadlines.take(asked.now_ms))
    for key, one in tasks.items():
        deadlines.schedule(key, one.due_ms, one.action)
    return outcome


def looked_up(world: World, asked: Asked) -> Outcome:
    """The topics of patterns, for which Kafka has a task, and kraftd a deadline."""
    deadlines = world.state.deadlines

    def take() -> Callable[[], Outcome] | None:
        key = next((key for key in deadlines._entries if key[0] == RESOLVING), None)  # type: ignore[index]
        if key is None:
            return None
        action = deadlines._entries[key].action
        deadlines.cancel(key)
        return action

    return performed(take)


def performed(take: Callable[[], Callable[[], Outcome] | None]) -> Outcome:
    """What several actions want written; what follows, of one of them."""
    outcomes = []
    while (action := take()) is not None:
        outcomes.append(action())
    after = [one.after for one in outcomes if one.after is not None]
    if len(after) > 1:
        after = after[:0]
    records = [record for one in outcomes for record in one.records]
    return Outcome(records, after=after[0] if after else None)


def loaded(world: World, asked: Asked) -> Outcome:
    for group in world.state.groups.values():
        if isinstance(group, ConsumerGroup):
            watch(world.state, group)
        elif isinstance(group, ShareGroup):
            watch_share_group(world.state, group)
        elif isinstance(group, ClassicGroup):
            for member in group.members.values():
                heard(world.state, group, member)
            if len(group.members) > world.state.config.group_max_size:
                prepare(world.state, group)
    return Outcome()


def unloaded(world: World, asked: Asked) -> Outcome:
    for group in world.state.groups.values():
        if isinstance(group, ClassicGroup):
            unload(world.state, group)
    return Outcome()


def deleted(world: World, asked: Asked) -> Outcome:
    outcome = delete_groups(world.state, asked.arguments[:1])
    outcome.response = None
    return outcome


def begun(has_failed: bool) -> Callable[[World, Asked], Outcome]:
    """The share coordinator has begun partitions of a group, or not."""

    def decide(world: World, asked: Asked) -> Outcome:
        group_id, text = asked.arguments
        partitions = {} if text == "null" else partitions_of(text)
        return note(world.state, group_id, partitions, has_failed)

    return decide


def topics_deleted(world: World, asked: Asked) -> Outcome:
    topic_ids = frozenset(parse_uuid(one) for one in asked.arguments[0].split(",") if one)
    return remove_state_of_topics(world.state, topic_ids, list(world.state.groups))


def offsets_committed(world: World, asked: Asked) -> Outcome:
    request = read(OffsetCommitRequest, asked.arguments[3])
    return commit(world.state, request, int(asked.arguments[0]))


def offsets_sent(world: World, asked: Asked) -> Outcome:
    request = read(TxnOffsetCommitRequest, asked.arguments[3])
    return commit_in_transaction(world.state, request, int(asked.arguments[0]))


def offsets_deleted(world: World, asked: Asked) -> Outcome:
    return delete_offsets(world.state, read(OffsetDeleteRequest, asked.arguments[0]))


def offsets_fetched(world: World, asked: Asked) -> Outcome:
    """As of an offset, or of the newest one, which is the largest number of all."""
    committed = int(asked.arguments[1])
    is_newest = committed == MAX_LONG
    if not is_newest:
        if committed + 1 < world.state.timeline.committed:
            raise Otherwise("an earlier state is asked for")
        world.state.timeline.commit(committed + 1)
    request = read(OffsetFetchRequest, asked.arguments[0]).groups[0]
    if asked.name == "fetchAllOffsets":
        request.topics = None
    return Outcome(response=OffsetFetchResponse(groups=[fetch_offsets(world.state, request, is_newest)]))


def all_offsets_deleted(world: World, asked: Asked) -> Outcome:
    records = delete_groups(world.state, asked.arguments[:1]).records
    kept = [record for record in records if isinstance(record.key, OffsetCommitKey)]
    return Outcome(kept, response=str(len(kept)))


def offsets_expired(world: World, asked: Asked) -> Outcome:
    records: list[CoordinatorRecord] = []
    group = world.state.groups.get(asked.arguments[0])
    is_over = group is None or expire_of_group(world.state, group, records)
    return Outcome(records, response=str(is_over).lower())


def offsets_of_topics_deleted(world: World, asked: Asked) -> Outcome:
    named = (one.split("=", 1) for one in asked.arguments[0].split(",") if one)
    topics = {name: parse_uuid(topic_id) for name, topic_id in named}
    groups = [*world.state.offsets.by_group, *world.state.offsets.open_producers]
    return remove_topics(world.state, topics, dict.fromkeys(groups))


def prepared(world: World, asked: Asked) -> Outcome:
    group: Any = next(iter(world.state.groups.values()))
    return prepare(world.state, group)


DECISIONS: dict[str, tuple[Callable[[World, Asked], Outcome], type[Any] | None]] = {
    "classicGroupJoin": (joined, JoinGroupResponse),
    "classicGroupSync": (synced, SyncGroupResponse),
    "classicGroupHeartbeat": (beat, HeartbeatResponse),
    "classicGroupLeave": (left, LeaveGroupResponse),
    "consumerGroupHeartbeat": (consumer_beat, ConsumerGroupHeartbeatResponse),
    "shareGroupHeartbeat": (share_beat, ShareGroupHeartbeatResponse),
    "listGroups": (listed, ListGroupsResponse),
    "describeGroups": (groups_described, DescribeGroupsResponse),
    "consumerGroupDescribe": (consumer_groups_described, ConsumerGroupDescribeResponse),
    "shareGroupDescribe": (share_groups_described, ShareGroupDescribeResponse),
    "timers": (expired, None),
    "tasks": (looked_up, None),
    "onLoaded": (loaded, None),
    "onUnloaded": (unloaded, None),
    "maybeDeleteGroup": (deleted, None),
    "createGroupTombstoneRecordsAndCancelTimers": (deleted, None),
    "prepareRebalance": (prepared, None),
    "commitOffset": (offsets_committed, OffsetCommitResponse),
    "commitTransactionalOffset": (offsets_sent, TxnOffsetCommitResponse),
    "deleteOffsets": (offsets_deleted, OffsetDeleteResponse),
    "fetchOffsets": (offsets_fetched, OffsetFetchResponse),
    "fetchAllOffsets": (offsets_fetched, OffsetFetchResponse),
    "deleteAllOffsets": (all_offsets_deleted, str),
    "cleanupExpiredOffsets": (offsets_expired, str),
    "onTopicsDeleted": (offsets_of_topics_deleted, None),
    "initializeShareGroupState": (begun(has_failed=False), None),
    "uninitializeShareGroupState": (begun(has_failed=True), None),
    "maybeCleanupShareGroupState": (topics_deleted, None),
}


HAS_MESSAGES = ("consumerGroupHeartbeat", "shareGroupHeartbeat")  # that a client sees

# --- comparison -----------------------------------------------------------------------------------


def answer_of(kind: type[Any] | None, text: str) -> str:
    """Kafka's answer in a form that is compared."""
    if kind is None or not text.startswith("x"):
        return text
    message, _, rest = text.partition(" ")
    return shown(read(kind, message)) + (" " + rest if kind is ShareGroupHeartbeatResponse else "")


def own_answer(response: Any) -> str:
    if response is None or isinstance(response, str):
        return str(response).replace("None", "null") if response is None else response
    kind = type(response)
    text = "x" + encode_bytes(response, newest(kind)).hex()
    if kind in (OffsetCommitResponse, OffsetFetchResponse):
        text += "," + encode_bytes(response, NAMED_VERSION).hex()
    return shown(read(kind, text))


def error_answer(kind: type[Any] | None, code: ErrorCode) -> str:
    assert kind is not None
    return shown(kind(error_code=code))


def decided(world: World, asked: Asked) -> tuple[Outcome, Refusal | None]:
    state = world.state
    state.now_ms = asked.now_ms
    state.timeline.offset = world.written
    try:
        return DECISIONS[asked.name][0](world, asked), None
    except Refusal as refusal:
        return Outcome(), refusal


def decision_differs(world: World, asked: Asked, end: Columns) -> str | None:
    """How kraftd's decision differs from Kafka's; None if it does not."""
    outcome, refusal = decided(world, asked)
    kind = DECISIONS[asked.name][1]
    if refusal is not None and asked.name not in ("classicGroupJoin", "classicGroupSync"):
        if end[0] != "refused":
            return f"refused {refusal.code.name} {refusal.message}"
        expected = (end[2], end[3])
        is_seen = asked.name in HAS_MESSAGES and refusal.code is not ErrorCode.UNKNOWN_SERVER_ERROR
        message = refusal.message if is_seen else end[3]
        return None if (refusal.code.name, message) == expected else f"{refusal.code.name} {refusal.message}"
    if asked.name in ("classicGroupJoin", "classicGroupSync"):
        if refusal is not None:
            world.answers.append((asked.number, refusal.code.name))
        if end[0] == "refused":
            at = next((one for one in world.answers if one[0] == asked.number), None)
            if at is None:
                return f"not refused: {outcome}"
            world.answers.remove(at)
            code = ErrorCode[end[2]]
            is_same = at[1] == code.name or f"'error_code': {int(code)}," in at[1]
            return None if is_same else f"answered {at[1]}"
    elif end[0] == "refused":
        return f"not refused: {outcome}"
    if end[0] == "done":
        return done_differs(world, asked, outcome, kind, end)
    return None


def done_differs(
    world: World, asked: Asked, outcome: Outcome, kind: type[Any] | None, end: Columns
) -> str | None:
    answer, records, waits = end[2:5]
    made = []
    for record in outcome.records:
        key, value = encode_record(record)
        made.append(f"{key.hex()}:{'' if value is None else value.hex()}")
    own, kafkas = ordered(made), ordered(records.split())
    if asked.name == "timers":
        own, kafkas = sorted(own), sorted(kafkas)  # of several groups
    if own != kafkas:
        return f"records {own}\n    Kafka's: {kafkas}"
    if waits == "true" and (outcome.records or outcome.after is not None):
        is_late = asked.name in ("classicGroupJoin", "classicGroupSync")
        world.waiting[asked.number] = outcome if is_late else msgspec.structs.replace(outcome, response=None)
    elif asked.name in ("classicGroupJoin", "classicGroupSync"):
        if outcome.response is not None:
            world.answers.append((asked.number, own_answer(outcome.response)))
        return None
    if kind is None or asked.name in ("classicGroupJoin", "classicGroupSync"):
        return None
    expected, shown_answer = answer_of(kind, answer), own_answer(outcome.response)
    return None if expected == shown_answer else f"answer {shown_answer}\n    Kafka's: {expected}"


def appended(world: World, number: str, error: str, now_ms: str) -> str | None:
    """The test says that the records of a decision are written, or not."""
    outcome = world.waiting.pop(number, None)
    if outcome is None:
        return None
    code = None if error == "NONE" else ErrorCode[error]
    world.state.now_ms = int(now_ms)
    world.state.timeline.offset = world.written
    followed = None if outcome.after is None else outcome.after(code)
    if outcome.response is not None and code is None:
        world.answers.append((number, own_answer(outcome.response)))
    return f"followed by {followed}" if followed is not None and followed.records else None
