"""The state of share partitions as their leader reads and writes it, at the share coordinator of each."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from kraftd.groups.share_state.key import SharePartitionKey
from kraftd.messages import read_share_group_state_request as reading
from kraftd.messages import write_share_group_state_request as writing
from kraftd.messages.read_share_group_state_response import PartitionResult as ReadResult
from kraftd.wire.error_code import ErrorCode, error_of

if TYPE_CHECKING:
    from kraftd.broker_node.coordination.persister import Persister
    from kraftd.partition.share.effects import WriteState

ReadThen = Callable[[ReadResult | ErrorCode], None]
WriteThen = Callable[[ErrorCode], None]
Write = tuple[writing.PartitionData, WriteThen]


class ShareStates:
    """The writes of a share partition are made one after the other: those that come meanwhile go together."""

    def __init__(self, persister: Persister) -> None:
        self._persister = persister
        self._waiting: dict[SharePartitionKey, list[Write]] = {}  # behind the one that is under way

    def __repr__(self) -> str:
        return f"<ShareStates, {len(self._waiting)} written>"

    def read(self, key: SharePartitionKey, leader_epoch: int, then: ReadThen) -> None:
        """Read the state of a share partition; `then` gets it, or an error."""
        row = reading.PartitionData(key.partition, leader_epoch)
        topic = reading.ReadStateData(key.topic_id, [row])

        def answered(response: Any) -> None:
            result = response.results[0].partitions[0]
            then(error_of(result.error_code) or result)

        self._persister.ask(reading.ReadShareGroupStateRequest(key.group_id, [topic]), answered)

    def write(self, key: SharePartitionKey, leader_epoch: int, changed: WriteState, then: WriteThen) -> None:
        """Have a change kept; `then` gets NONE once it is."""
        row = writing.PartitionData(
            key.partition,
            changed.state_epoch,
            leader_epoch,
            changed.start_offset,
            changed.complete_count,
            [
                writing.StateBatch(one.first_offset, one.last_offset, one.state, one.delivery_count)
                for one in changed.changes
            ],
        )
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append((row, then))
            return
        self._waiting[key] = []
        self._write(key, [(row, then)])

    def _write(self, key: SharePartitionKey, writes: list[Write]) -> None:
        """Write changes in their order, as one."""
        row = writes[-1][0]
        row.state_batches = [batch for one, _ in writes for batch in one.state_batches]
        topic = writing.WriteStateData(key.topic_id, [row])

        def written(response: Any) -> None:
            error = error_of(response.results[0].partitions[0].error_code)
            for _, then in writes:
                then(error)  # what it writes waits behind the others
            waiting = self._waiting.pop(key)
            together = list(takewhile(lambda one: epochs_of(one) == epochs_of(waiting[0]), waiting))
            if together:
                self._waiting[key] = waiting[len(together) :]
                self._write(key, together)

        self._persister.ask(writing.WriteShareGroupStateRequest(key.group_id, [topic]), written)


def epochs_of(write: Write) -> tuple[int, int]:
    return write[0].state_epoch, write[0].leader_epoch
