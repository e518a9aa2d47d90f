"""A fetch session with one node, as its client sees it (KIP-227). No IO.

    FULL         the request names every partition; the node may open a session (epoch 0)
    INCREMENTAL  the request names what has changed since the last one, and what to forget

A node without sessions, with a full cache, or of a version without them answers with session id 0: then each
request is a full one. After an error of the session, the next request is full and closes the old one.
"""

from __future__ import annotations

from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kraftd.messages.fetch_response import FetchResponse, PartitionData
from kraftd.named_tuple import NamedTuple
from kraftd.types import ZERO_UUID
from kraftd.wire.error_code import ErrorCode

NO_SESSION = 0
FIRST_EPOCH = 0  # of a full request
LAST_EPOCH = (1 << 31) - 1  # 1 follows

# After these errors of a whole answer, the next fetch opens another session.
SESSION_ERRORS = frozenset(
    (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    )
)


class Key(NamedTuple):
    """A partition, by its topic's name and id; the id is zero if the node is too old for ids."""

    topic: str
    topic_id: bytes
    partition: int


class FetchSession:
    """The session with one node. After each `request` comes `answered` or `failed`."""

    def __init__(self) -> None:
        self.id = NO_SESSION
        self.epoch = FIRST_EPOCH  # of the next request
        self._sent: dict[Key, FetchPartition] = {}
        self._data: dict[Key, PartitionData] = {}

    def __repr__(self) -> str:
        return f"<FetchSession {self.id} at epoch {self.epoch} of {len(self._sent)} partitions>"

    def request(self, wanted: dict[Key, FetchPartition], wait_ms: int, max_bytes: int) -> FetchRequest:
        """The next request for these partitions: it names all of them, or those that have changed.

        A session has topics with ids, or topics without: another kind begins a new one.
        """
        if {key.topic_id == ZERO_UUID for key in wanted} != {key.topic_id == ZERO_UUID for key in self._sent}:
            self.epoch = FIRST_EPOCH
        forgotten: dict[tuple[str, bytes], list[int]] = {}
        if self.epoch == FIRST_EPOCH:
            self._data.clear()
            named = wanted
        else:
            named = {key: one for key, one in wanted.items() if self._sent.get(key) != one}
            for key in self._sent.keys() - wanted.keys():
                forgotten.setdefault((key.topic, key.topic_id), []).append(key.partition)
                self._data.pop(key, None)
        self._sent = dict(wanted)
        topics: dict[tuple[str, bytes], FetchTopic] = {}
        for key, partition in named.items():
            topic = topics.setdefault((key.topic, key.topic_id), FetchTopic(key.topic, key.topic_id, []))
            topic.partitions.append(partition)
        gone = [ForgottenTopic(*of, tuple(sorted(indexes))) for of, indexes in forgotten.items()]
        return FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            session_id=self.id,
            session_epoch=self.epoch,
            topics=list(topics.values()),
            forgotten_topics_data=gone,
        )

    def answered(self, answer: FetchResponse) -> dict[Key, PartitionData] | None:
        """The data of the partitions in an answer; None if the request must be made anew.

        A partition that an incremental answer leaves out has no news: its data is that of the last answer,
        without the records.
        """
        if answer.error_code:
            if answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self.id = NO_SESSION
            self.epoch = FIRST_EPOCH
            return None
        found = dict[Key, PartitionData]()
        for topic in answer.responses:
            for data in topic.partitions:
                key = self._key(topic.topic, topic.topic_id, data.partition_index)
                if key is None:
                    self.failed()
                    return None
                found[key] = data
        is_full = self.epoch == FIRST_EPOCH
        if is_full and found.keys() != self._sent.keys():
            self.failed()
            return None
        self.id = answer.session_id
        self.epoch = (
            FIRST_EPOCH if self.id == NO_SESSION else 1 if self.epoch == LAST_EPOCH else self.epoch + 1
        )
        news = {**self._data, **found}
        for key, data in found.items():
            self._data.pop(key, None)
            if not data.error_code:
                self._data[key] = PartitionData(
                    data.partition_index,
                    high_watermark=data.high_watermark,
                    log_start_offset=data.log_start_offset,
                    records=b"",
                )
        return news

    def failed(self) -> None:
        """Begin anew: the node closes the former session with the next request, if it still has it."""
        self.epoch = FIRST_EPOCH

    def _key(self, topic: str, topic_id: bytes, index: int) -> Key | None:
        """The requested partition that an answer names by its topic's id or name."""
        for key in self._sent:
            same = key.topic_id == topic_id if topic_id != ZERO_UUID else key.topic == topic
            if same and key.partition == index:
                return key
        return None
