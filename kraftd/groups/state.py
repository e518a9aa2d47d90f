"""The state of one shard: its groups and offsets, its deadlines, and what a step needs to change them."""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct

from kraftd.ground.pace import Slices, at_once
from kraftd.ground.refusal import Refusal
from kraftd.groups.call import Call, Metadata
from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.classic.memory import MemberMemory
from kraftd.groups.classic.states import EMPTY
from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer.metadata_hash import group_hash
from kraftd.groups.group import Group
from kraftd.groups.offsets.store import OffsetStore
from kraftd.groups.shard import CoordinatorState
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

Respond = Callable[[Call, Message], None]

FEW_TOPICS = 1000  # their hash is computed each time, at once
TOPICS_A_SLICE = 500
KEPT_HASHES = 4
ATTEMPTS = 3


class Counts(Struct):
    """Totals since the coordinator started, for Kafka's metrics."""

    offset_commits: int = 0
    offset_expirations: int = 0
    offset_deletions: int = 0
    completed_rebalances: int = 0
    consumer_rebalances: int = 0
    share_rebalances: int = 0
    refused_members: int = 0


class ShardState(CoordinatorState):
    """State and tools of a shard of groups."""

    def __init__(
        self,
        config: GroupConfig,
        respond: Respond,
        new_uuid: Callable[[], str],
        counts: Counts,
        memory: MemberMemory,
        metadata: Metadata,
    ) -> None:
        super().__init__()
        self.config = config
        self.max_batch_bytes = config.max_batch_bytes
        self.respond = respond
        self.new_uuid = new_uuid
        self.counts = counts
        self.memory = memory
        self.metadata = metadata
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore(self.timeline)
        self.hashing: set[str] = set()  # groups with many topics whose hash is being computed in slices
        self._hashes: dict[Collection[str], tuple[int, int]] = {}  # of many topics: their version, and it

    def __repr__(self) -> str:
        return f"<ShardState of {len(self.groups)} groups, {self.offsets!r}>"

    def group(self, group_id: str) -> Group:
        """A group of any kind; Refusal if there is none."""
        group = self.groups.get(group_id)
        if group is None:
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def committed_group(self, group_id: str) -> Group:
        """A group as of the high watermark; Refusal if there was none."""
        group = self.timeline.committed_value(self.groups, group_id)
        if group is None:
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def metadata_hash(self, topics: Collection[str]) -> int:
        """What those of the topics that exist are like, in a number."""
        if len(topics) <= FEW_TOPICS:
            return at_once(self._hash(topics))
        names = frozenset(topics)
        return at_once(self._hash(names)) if self.lacks_hash(names) else self._hashes[names][1]

    def lacks_hash(self, names: frozenset[str]) -> bool:
        """Return whether the hash of many topics is not known; `hash_in_slices` should come first then."""
        known = self._hashes.get(names)
        return known is None or known[0] != self.metadata.hashes_version()

    def hash_in_slices(self, names: frozenset[str]) -> Slices[None]:
        """Compute the hash of many topics, for `metadata_hash`, anew if the metadata changes meanwhile."""
        for _ in range(ATTEMPTS):
            version = self.metadata.hashes_version()
            yield from self._hash(names)
            if version == self.metadata.hashes_version():
                break
            yield

    def _hash(self, topics: Collection[str]) -> Slices[int]:
        version = self.metadata.hashes_version()
        found: dict[str, int] = {}
        for number, name in enumerate(topics, 1):
            value = self.metadata.topic_hash(name)
            if value is not None:
                found[name] = value
            if number % TOPICS_A_SLICE == 0:
                yield
        if len(topics) > FEW_TOPICS:
            yield
        value = group_hash(found)
        if len(topics) > FEW_TOPICS and version == self.metadata.hashes_version():
            self._hashes.pop(topics, None)
            self._hashes[topics] = version, value
            while len(self._hashes) > KEPT_HASHES:
                del self._hashes[next(iter(self._hashes))]
        return value

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        """A classic group; None if there is none, or one of another kind."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def new_classic_group(self, group_id: str) -> ClassicGroup:
        """Create an empty classic group. Its record, or that of its first offset, will be the next one."""
        group = ClassicGroup(group_id, EMPTY, self.now_ms, self.memory)
        self.timeline.put(self.groups, group_id, group)
        return group
