"""A fetch session with a leader, as its follower sees it (KIP-227)."""

from __future__ import annotations

from collections.abc import Mapping

from kraftd.messages.fetch_request import FetchPartition, FetchTopic, ForgottenTopic
from kraftd.types import Uuid

NO_SESSION = 0
FIRST_EPOCH = 0
LAST_EPOCH = (1 << 31) - 1  # 1 follows

Key = tuple[Uuid, int]  # topic id and index


class LeaderSession:
    """`named` are the partitions that the leader knows of, as they were requested last."""

    def __init__(self) -> None:
        self.id = NO_SESSION
        self.epoch = FIRST_EPOCH
        self.named: dict[Key, FetchPartition] = {}

    def __repr__(self) -> str:
        return f"<LeaderSession {self.id} at epoch {self.epoch} of {len(self.named)} partitions>"

    @property
    def is_new(self) -> bool:
        """Return whether the next request is to name all partitions."""
        return self.epoch == FIRST_EPOCH

    def request(
        self, changed: Mapping[Key, FetchPartition | None]
    ) -> tuple[list[FetchTopic], list[ForgottenTopic]]:
        """The partitions that a request names, and those that the leader forgets; None is no longer fetched.

        `changed` are all partitions if the session is new.
        """
        topics: dict[Uuid, FetchTopic] = {}
        forgotten: dict[Uuid, list[int]] = {}
        if self.is_new:
            self.named = {}
        for key, wanted in changed.items():
            topic_id, index = key
            if wanted is None:
                if self.named.pop(key, None) is not None:
                    forgotten.setdefault(topic_id, []).append(index)
            elif wanted != self.named.get(key):
                self.name(key, wanted, topics)
        if not forgotten:
            return list(topics.values()), []
        gone = [ForgottenTopic("", topic_id, tuple(indexes)) for topic_id, indexes in forgotten.items()]
        return list(topics.values()), gone

    def name(self, key: Key, wanted: FetchPartition, topics: dict[Uuid, FetchTopic]) -> None:
        """Name what is wanted of a partition in the topics of the next request, which are by id."""
        self.named[key] = wanted
        topic = topics.get(key[0])
        if topic is None:
            topics[key[0]] = FetchTopic(topic_id=key[0], partitions=[wanted])
        else:
            topic.partitions.append(wanted)

    def answered(self, session_id: int) -> None:
        """Note an answer without an error; the id is 0 if the leader has made no session."""
        self.id = session_id
        if session_id == NO_SESSION:
            self.epoch = FIRST_EPOCH
        else:
            self.epoch = 1 if self.epoch == LAST_EPOCH else self.epoch + 1

    def failed(self, *, is_unknown: bool = False) -> None:
        """Begin anew: the next request closes the session, unless the leader does not know it any more."""
        if is_unknown:
            self.id = NO_SESSION
        self.epoch = FIRST_EPOCH
        self.named = {}
