"""What a member acknowledges, in a ShareFetch or a ShareAcknowledge: judged, performed, and answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kraftd.fetch.share_sessions import Member, TopicIdPartition
from kraftd.groups.share_state.key import SharePartitionKey
from kraftd.named_tuple import NamedTuple
from kraftd.partition.share.acknowledging import Acknowledgement, acknowledge
from kraftd.partition.share.states import RENEW
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.share_groups.led_partitions import LedSharePartitions

RENEWING_VERSION = 2  # the version that knows RENEW (KIP-1222)


class Result(NamedTuple):
    """The error of a partition's acknowledgements, and its text: there is none for what is malformed."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


Results = dict[TopicIdPartition, Result]


class Renewal(NamedTuple):
    """Whether a request may renew, and whether it says that it does."""

    is_known: bool
    is_meant: bool


def are_malformed(batches: Sequence[Any], renewal: Renewal) -> bool:
    """Return whether batches of acknowledgements of one partition cannot be."""
    previous = -1
    most = RENEW if renewal.is_known else RENEW - 1
    for batch in batches:
        types, size = batch.acknowledge_types, batch.last_offset - batch.first_offset + 1
        if size < 1 or batch.first_offset < previous or not types:
            return True
        if (len(types) > 1 and len(types) != size) or not all(0 <= type <= most for type in types):
            return True
        if RENEW in types and not renewal.is_meant:
            return True
        previous = batch.last_offset
    return False


class Acknowledged:
    """The acknowledgements of one request; `then` gets the results once every one of them has one."""

    def __init__(
        self, partitions: LedSharePartitions, member: Member, now_ms: int, then: Callable[[Results], None]
    ) -> None:
        self._partitions = partitions
        self._member = member
        self._now_ms = now_ms
        self._then = then
        self._left = 1
        self.results: Results = {}

    def __repr__(self) -> str:
        return f"<Acknowledged of {self._member}, {self._left} left>"

    def perform(self, batches_of: Iterable[tuple[TopicIdPartition, Sequence[Any]]]) -> None:
        """Take acknowledgements that are well formed, each of a partition that the member may read."""
        for place, batches in batches_of:
            led = self._partitions.get(SharePartitionKey(self._member.group_id, *place))
            if led is None:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                self.results[place] = Result(error, error.message)
                continue
            self._left += 1
            rows = [
                Acknowledgement(one.first_offset, one.last_offset, one.acknowledge_types) for one in batches
            ]
            then = partial(self._put, place, led, rows)
            acknowledge(led.share, self._member.member_id, rows, self._now_ms, then)
            self._partitions.settle(led)
        self._finish()

    def _put(
        self, place: TopicIdPartition, led: Any, rows: Sequence[Acknowledgement], error: ErrorCode
    ) -> None:
        self._partitions.acknowledged(led, error)
        if not error:
            self._partitions.count(rows)
        self.results[place] = Result(error, error.message if error else None)
        self._finish()

    def _finish(self) -> None:
        self._left -= 1
        if not self._left:
            self._then(self.results)
