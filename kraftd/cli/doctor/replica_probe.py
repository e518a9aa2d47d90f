"""Finds who is out of an ISR, since when by the metadata log, and how far by asking leaders and followers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence, Set
from statistics import median
from typing import TYPE_CHECKING

from kraftd.cli.doctor.judge_replicas import Behind, Ends, Seen, is_full
from kraftd.client.connection import Connection
from kraftd.client.failures import ClientFailure, Refused, Unreachable
from kraftd.messages.describe_log_dirs_request import DescribableLogDirTopic, DescribeLogDirsRequest
from kraftd.messages.describe_log_dirs_response import DescribeLogDirsResponse
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.fetch_response import FetchResponse
from kraftd.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kraftd.messages.list_offsets_response import ListOffsetsResponse
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.metrics.state.survey import Group
from kraftd.named_tuple import NamedTuple
from kraftd.wire.error_code import ErrorCode, error_name

if TYPE_CHECKING:
    from kraftd.cli.sources.source import Source
    from kraftd.metadata.image import Image
    from kraftd.metrics.state.survey import Example, Survey
    from kraftd.wire.message import Message

LOOPBACK = ("localhost", "127.0.0.1", "::1")
DEBUGGER = -2  # the replica id that asks any replica, a follower too, for its own log end offset
LATEST = -1
PAUSE_S = 1.0  # between the first look at a follower and the last one
LOOKS = 4  # after the first: a host may pause, and answer at once in between
FETCH_BY_NAME = 12  # the last version of Fetch with names of topics
BATCH_BYTES = 1  # the first batch is given whole
NO_ANSWER = (-1, int(ErrorCode.UNKNOWN_SERVER_ERROR))

Key = tuple[bytes, int]  # a topic id and a partition


class Look(NamedTuple):
    """How many records a follower lacks, the end of its log, and how long both brokers took to answer."""

    lack: int
    own_end: int
    leader_s: float
    follower_s: float


async def find_behind(source: Source, image: Image, found: Survey) -> list[Behind]:
    """The brokers that are out of an ISR, of the partitions that the survey names."""
    topic_ids = image.topic_names()
    lacking: dict[int, dict[Key, Example]] = {}
    for one in found.under_replicated.examples:
        key = topic_ids[one.topic], one.partition
        state = image.partition(*key)
        if state is None or one.leader < 0:
            continue
        for broker_id in set(state.replicas) - set(state.isr) - set(state.adding_replicas):
            lacking.setdefault(broker_id, {})[key] = one
    if not lacking:
        return []
    left_ms = await _left_at(source, {key for own in lacking.values() for key in own})
    behind = []
    for broker_id, own in sorted(lacking.items()):
        times = [left_ms[key].get(broker_id, 0) for key in own]
        partitions = Group(found.brokers[broker_id].lagging, list(own.values()))
        behind.append(Behind(broker_id, partitions, min(times) or None))
    return behind


async def _left_at(source: Source, keys: Set[Key]) -> dict[Key, dict[int, int]]:
    """By partition, when each broker that is out of its ISR left it, in ms, as far as the log tells."""
    from kraftd.cli.metadata.replaying import messages_of
    from kraftd.cli.sources.source import Limit

    beginning = await source.begin(Limit())
    isrs: dict[Key, Sequence[int]] = {}
    for run in beginning.runs:
        isrs.update(_isrs(run, keys))
    left_ms: dict[Key, dict[int, int]] = {key: {} for key in keys}
    async for batch in source.batches(beginning.next_offset):
        if batch.header.is_control:
            continue
        for key, isr in _isrs(messages_of(batch), keys):
            left = dict.fromkeys(set(isrs.get(key, ())).difference(isr), batch.header.max_timestamp_ms)
            left_ms[key] = {each: at for each, at in left_ms[key].items() if each not in isr} | left
            isrs[key] = isr
    return left_ms


def _isrs(messages: Iterable[Message], keys: Set[Key]) -> Iterator[tuple[Key, Sequence[int]]]:
    """The ISRs that records set, of the wanted partitions."""
    for one in messages:
        if isinstance(one, PartitionRecord | PartitionChangeRecord) and one.isr is not None:
            key = one.topic_id, one.partition_id
            if key in keys:
                yield key, one.isr


async def look_at(image: Image, behind: Iterable[Behind], near: bool, timeout_s: float) -> dict[int, Seen]:
    """What each running broker outside of ISRs answers about its disk and the end of its log.

    `near`: the brokers may be on this machine, so that their loopback addresses lead to them.
    """
    asked = [
        one for one in behind if one.broker_id in image.brokers and image.brokers[one.broker_id].is_active
    ]
    looks = await asyncio.gather(*(_look(image, one, near, timeout_s) for one in asked))
    return {one.broker_id: seen for one, seen in zip(asked, looks, strict=True)}


async def _look(image: Image, one: Behind, near: bool, timeout_s: float) -> Seen:
    """Find the partition in which a broker lacks most, and look at that again after a pause."""
    examples = one.partitions.examples
    try:
        async with await connected(image, one.broker_id, near, timeout_s) as follower:
            full = await _full_directories(follower, examples)
            lacks: dict[Example, Look] = {}
            failures: list[ClientFailure] = []
            for leader_id in dict.fromkeys(each.leader for each in examples):
                led = [each for each in examples if each.leader == leader_id]
                try:
                    async with await connected(image, leader_id, near, timeout_s) as leader:
                        lacks.update(await _lacks(leader, follower, led))
                except ClientFailure as failure:
                    failures.append(failure)
            if not lacks:
                return _without_leader(examples[0].leader, failures[0])
            worst = max(lacks, key=lambda each: lacks[each].lack)
            first = lacks[worst]
            began_s = time.monotonic()
            looks, reads_s = [first], []
            try:
                async with await connected(image, worst.leader, near, timeout_s) as leader:
                    for _ in range(LOOKS):
                        await asyncio.sleep(PAUSE_S / LOOKS)
                        looks.append((await _lacks(leader, follower, [worst]))[worst])
                        elapsed_s = time.monotonic() - began_s
                        reads_s.append(await _read_s(leader, worst, looks[-1].own_end))
                    leader_accepted_s = await _accepted_s(leader, timeout_s)
            except ClientFailure as failure:
                return _without_leader(worst.leader, failure)
            again = looks[-1]
            ends = Ends(
                worst,
                first.lack,
                again.lack,
                elapsed_s,
                len(lacks),
                again.own_end - first.own_end,
                median(each.follower_s for each in looks),
                median(each.leader_s for each in looks),
                await _accepted_s(follower, timeout_s),
                leader_accepted_s,
                median(reads_s),
            )
            return Seen(ends=ends, full_directories=full)
    except ClientFailure as failure:
        return Seen(" ".join(str(failure).split()))


def _without_leader(leader_id: int, failure: ClientFailure) -> Seen:
    """What is known of a follower whose leader could not be asked, or stopped to answer."""
    return Seen(" ".join(str(failure).split()), silent_leader=leader_id)


async def connected(image: Image, broker_id: int, near: bool, timeout_s: float) -> Connection:
    """A connection to a broker, by the first of its listeners that works."""
    failure: ClientFailure = Unreachable(f"node {broker_id} has no listener that is reached from here")
    broker = image.brokers.get(broker_id)
    for endpoint in () if broker is None else broker.listeners:
        if near or endpoint.host not in LOOPBACK:
            try:
                return await Connection.open(endpoint.host, endpoint.port, timeout_s)
            except ClientFailure as error:
                failure = error
    raise failure


async def _read_s(leader: Connection, one: Example, offset: int) -> float:
    """How long the leader takes to read the batch at an offset, as for a consumer: one batch, so that a link
    with little bandwidth does not count. 0 if it may not be read.
    """
    wanted = FetchPartition(one.partition, -1, offset, -1, -1, BATCH_BYTES)
    topics = [FetchTopic(one.topic, partitions=[wanted])]
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=BATCH_BYTES, topics=topics)
    began_s = time.monotonic()
    answer = await leader.ask(request, FetchResponse, max_version=FETCH_BY_NAME)
    data = [each for topic in answer.responses for each in topic.partitions]
    return time.monotonic() - began_s if data and not data[0].error_code else 0.0


async def _accepted_s(broker: Connection, timeout_s: float) -> float:
    """How long the broker's machine takes to accept a connection, for which the broker does nothing."""
    began_s = time.monotonic()
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(broker.host, broker.port)
    except OSError:  # TimeoutError among them
        return timeout_s
    writer.close()
    return time.monotonic() - began_s


async def _full_directories(follower: Connection, examples: Sequence[Example]) -> tuple[str, ...]:
    """The follower's directories that have one of the partitions and hardly any room."""
    wanted = [DescribableLogDirTopic(name, indexes) for name, indexes in _by_topic(examples).items()]
    answer = await follower.ask(DescribeLogDirsRequest(wanted), DescribeLogDirsResponse)
    holding = (one for one in answer.results if one.topics)
    return tuple(one.log_dir for one in holding if is_full(one.total_bytes, one.usable_bytes))


async def _lacks(
    leader: Connection, follower: Connection, examples: Sequence[Example]
) -> dict[Example, Look]:
    """How many records the follower's logs lack, where both answer. The leader is asked first.

    Raises Refused if there is no such partition.
    """
    began_s = time.monotonic()
    ends = await _log_ends(leader, examples)
    asked_s = time.monotonic()
    own = await _log_ends(follower, examples)
    leader_s, follower_s = asked_s - began_s, time.monotonic() - asked_s
    lacks: dict[Example, Look] = {}
    for one in examples:
        (end, leader_error), (own_end, error) = (
            found.get((one.topic, one.partition), NO_ANSWER) for found in (ends, own)
        )
        if not leader_error and not error:
            lacks[one] = Look(end - own_end, own_end, leader_s, follower_s)
    if not lacks:
        broker, code = (leader, leader_error) if leader_error else (follower, error)
        raise Refused(f"{broker.address} answers {error_name(code)}", code)
    return lacks


async def _log_ends(
    broker: Connection, examples: Sequence[Example]
) -> dict[tuple[str, int], tuple[int, int]]:
    """The end of each log, and an error code."""
    wanted = [
        ListOffsetsTopic(name, [ListOffsetsPartition(index, timestamp=LATEST) for index in indexes])
        for name, indexes in _by_topic(examples).items()
    ]
    answer = await broker.ask(ListOffsetsRequest(DEBUGGER, 0, wanted), ListOffsetsResponse)
    return {
        (topic.name, one.partition_index): (one.offset, one.error_code)
        for topic in answer.topics
        for one in topic.partitions
    }


def _by_topic(examples: Iterable[Example]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for one in examples:
        found[one.topic] = (*found.get(one.topic, ()), one.partition)
    return found
