"""Fetches of very many partitions: never parked, answered in several event loop callbacks, without a session.

A client node serves one partition, so nearly all of such a fetch are refusals. Slots, watchers and a
session for them would cost an event loop callback of many milliseconds. KIP-227 lets a server give no
session. The answer has the metadata log's offsets but not its records: a client that fetches from the right
node asks for this log alone.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from kraftd.answers.log_source import LogSource
from kraftd.fetch.session_cache import FINAL_EPOCH, INITIAL_EPOCH
from kraftd.fetch.sessions import names_more_than
from kraftd.fetch.slots import Slot
from kraftd.fetch.source import Reader
from kraftd.fetch.subscription import unknown_id
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraftd.types import Uuid

if TYPE_CHECKING:
    from kraftd.requests.call import Call

MAX_PARTITIONS = 1_000  # of a fetch that is answered in one event loop callback, and of a session
PARTITIONS_PER_CALLBACK = 100  # each is authorized, looked up and answered


def is_large(request: FetchRequest) -> bool:
    """Return whether a full fetch is answered in several event loop callbacks."""
    return request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH) and names_more_than(request, MAX_PARTITIONS)


def in_slices(source: LogSource, call: Call, reader: Reader) -> Generator[None, None, FetchResponse]:
    """The answer to a large fetch; no entry of a topic has more than PARTITIONS_PER_CALLBACK partitions."""
    response, done = FetchResponse(), 0
    for topic in call.message.topics:
        done += 1
        if done >= PARTITIONS_PER_CALLBACK:
            done = 0
            yield
        name = topic.topic if call.version < 13 else source.topic_name(topic.topic_id)
        for first in range(0, len(topic.partitions), PARTITIONS_PER_CALLBACK):
            some = topic.partitions[first : first + PARTITIONS_PER_CALLBACK]
            answers = [_answer(source, reader, name, topic, one) for one in some]
            response.responses.append(FetchableTopicResponse(name or "", topic.topic_id, answers))
            done += len(some)
            if done >= PARTITIONS_PER_CALLBACK:
                done = 0
                yield
    return response


def _answer(
    source: LogSource, reader: Reader, name: str | None, topic: FetchTopic, requested: FetchPartition
) -> PartitionData:
    if name is None:
        return unknown_id(requested.partition)
    key: Uuid | str = topic.topic_id or name
    slot = Slot(NO_SUBSCRIPTION, (key, requested.partition), name, topic.topic_id, requested, 0)
    return source.read(slot, reader, 0, False)[0]


class _NoSubscription:
    """The subscriber of slots that watch nothing."""

    last_fetch_ms = -1
    reads_to_log_end = False
    parked = None

    def __len__(self) -> int:
        return 0

    def partition_changed(self, _slot: Slot) -> int | None:
        return None

    def note_change(self, _slot: Slot) -> None: ...

    def marks_moved(self, _slot: Slot) -> bool:
        return False


NO_SUBSCRIPTION = _NoSubscription()
