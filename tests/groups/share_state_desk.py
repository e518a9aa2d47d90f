"""A share coordinator with a log in memory, which is pruned as it asks."""

from __future__ import annotations

from typing import Any

from kraftd.ground.effect import Effect
from kraftd.groups.records import decode_share_record
from kraftd.groups.share_state.config import ShareStateConfig
from kraftd.groups.share_state.coordinator import ShareCoordinator
from kraftd.groups.share_state.effects import PruneRecords
from kraftd.messages import (
    delete_share_group_state_request,
    initialize_share_group_state_request,
    read_share_group_state_request,
    read_share_group_state_summary_request,
    write_share_group_state_request,
)
from tests.groups.desk import Desk

Row = tuple[int, int, int, int]  # first and last offset, delivery state and count


class ShareStateDesk(Desk):
    """As Desk; requests are of one partition of `orders` for the group `g`."""

    def __init__(self, config: ShareStateConfig | None = None, partition_count: int = 1) -> None:
        self.share_config = config or ShareStateConfig()
        self.pruned: list[tuple[int, int]] = []
        super().__init__(partition_count=partition_count)
        self.topic_id = self.topics.topic_id("orders") or b""

    def new_coordinator(self) -> Any:
        coordinator = ShareCoordinator(self.share_config, self.topics)
        coordinator.partition_count = len(self.logs)
        coordinator.is_enabled = True
        return coordinator

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, PruneRecords):
                self.pruned.append((effect.partition, effect.offset))
            else:
                super().perform([effect])

    def records(self, number: int = 0) -> list[Any]:
        return [decode_share_record(*what) for what, _ in self.logs[number] if not isinstance(what, bool)]

    def states(self) -> dict[Any, Any]:
        """What the coordinator has in memory."""
        return {
            key: state for shard in self.coordinator.shards.values() for key, state in shard.states.items()
        }

    # Requests of one partition; each returns its row of the answer

    def initialize(self, partition: int = 0, state_epoch: int = 1, start: int = 0) -> Any:
        of = initialize_share_group_state_request
        row = of.PartitionData(partition, state_epoch, start)
        topics = [of.InitializeStateData(self.topic_id, [row])]
        return self.only(self.ask(of.InitializeShareGroupStateRequest("g", topics), 0))

    def write(
        self,
        *rows: Row,
        partition: int = 0,
        state_epoch: int = 1,
        leader_epoch: int = 5,
        start: int = -1,
        complete: int = 0,
    ) -> Any:
        of = write_share_group_state_request
        data = of.PartitionData(
            partition, state_epoch, leader_epoch, start, complete, [of.StateBatch(*row) for row in rows]
        )
        topics = [of.WriteStateData(self.topic_id, [data])]
        return self.only(self.ask(of.WriteShareGroupStateRequest("g", topics), 1))

    def read(self, partition: int = 0, leader_epoch: int = 5) -> Any:
        of = read_share_group_state_request
        topics = [of.ReadStateData(self.topic_id, [of.PartitionData(partition, leader_epoch)])]
        return self.only(self.ask(of.ReadShareGroupStateRequest("g", topics), 0))

    def summarize(self, partition: int = 0) -> Any:
        of = read_share_group_state_summary_request
        topics = [of.ReadStateSummaryData(self.topic_id, [of.PartitionData(partition, -1)])]
        return self.only(self.ask(of.ReadShareGroupStateSummaryRequest("g", topics), 1))

    def delete(self, partition: int = 0) -> Any:
        of = delete_share_group_state_request
        topics = [of.DeleteStateData(self.topic_id, [of.PartitionData(partition)])]
        return self.only(self.ask(of.DeleteShareGroupStateRequest("g", topics), 0))

    def only(self, answer: Any) -> Any:
        (topic,) = answer.results
        assert topic.topic_id == self.topic_id
        (row,) = topic.partitions
        return row


def read_rows(row: Any) -> list[Row]:
    """The batches of a read."""
    return [
        (one.first_offset, one.last_offset, one.delivery_state, one.delivery_count)
        for one in row.state_batches
    ]
