"""The client side's view of the node's replica: the image, the log's marks, the leader."""

from __future__ import annotations

from collections.abc import Mapping

from kraftd.controller.context import Context
from kraftd.controller_node.node import Node
from kraftd.ground.destination import Destination
from kraftd.host.storage import Storage
from kraftd.log.partition_log import PartitionLog
from kraftd.metadata.image import Image
from kraftd.metadata.replica_changes import NewestChanges, ReplicaChange
from kraftd.types import OffsetAndEpoch


class NodeView:
    """A ClusterView of a controller node, voter or observer, and its storage."""

    def __init__(self, node: Node, storage: Storage) -> None:
        self._node = node
        self.context: Context = node.context  # for good; its image is asked for in every request
        self._storage = storage
        self._log: PartitionLog = storage.log
        self._node_id = node.identity.node_id
        self._high_watermark = 0

    @property
    def cluster_id(self) -> str:
        return self._node.identity.cluster_id

    @property
    def node_id(self) -> int:
        return self._node.identity.node_id

    @property
    def image(self) -> Image:
        return self.context.image

    @property
    def is_loaded(self) -> bool:
        return self._node.following.finalized_features.epoch >= 0

    @property
    def image_end_offset(self) -> int:
        return self.context.image.offset + 1

    @property
    def applied_end_offset(self) -> int:
        return self._node.following.replay.next_offset

    @property
    def high_watermark(self) -> int:
        """It never goes back: records stay committed although a new leader may not know it yet."""
        self._high_watermark = max(self._high_watermark, self._node.core.high_watermark)
        return self._high_watermark

    @property
    def is_active(self) -> bool:
        return self._node.active

    @property
    def log_start_offset(self) -> int:
        return self._log.log_start

    @property
    def log_end_offset(self) -> int:
        return self._log.log_end

    @property
    def last_epoch(self) -> int:
        return self._log.last_epoch

    @property
    def epoch(self) -> int:
        """The epoch on disk: a crash may lose a later one, which then no node might ever reach."""
        return min(self._node.core.epoch, self._storage.durable_epoch)

    @property
    def leader_id(self) -> int | None:
        """None also for this node once it has resigned, and in an epoch that is not on disk."""
        core = self._node.core
        is_former = core.leader_id == self.node_id and not core.is_leader
        return None if is_former or core.epoch > self._storage.durable_epoch else core.leader_id

    @property
    def voter_ids(self) -> list[int]:
        return list(self._node.core.voters.ids)

    @property
    def kraft_version(self) -> int:
        return self._node.core.kraft_version

    @property
    def finalized_features(self) -> tuple[Mapping[str, int], int]:
        return self._node.following.finalized_features.levels, self._node.following.finalized_features.epoch

    def epoch_of(self, offset: int) -> int | None:
        return self._log.epochs.epoch_of(offset)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        end = self._log.epochs.end_offset_for(epoch, self._log.log_end)
        return end if end is not None else OffsetAndEpoch(self._log.log_end, self._log.last_epoch)

    def bytes_between(self, offset: int, end_offset: int) -> int:
        return self._log.bytes_from(offset) - self._log.bytes_from(end_offset)

    def controller_destination(self) -> Destination | None:
        core = self._node.core
        endpoint = core.leader_endpoint(self._node.identity.quorum_listener)
        if core.leader_id is None or endpoint is None:
            return None
        return Destination(core.leader_id, endpoint.host, endpoint.port)

    def take_replica_changes(self, most: int) -> list[ReplicaChange]:
        """Remove and return up to `most` committed changes of the partitions that this node hosts."""
        return self._node.image.take_replica_changes(self.high_watermark, most)

    def settle_replica_changes(self) -> bool:
        """Account for some committed changes; return whether there are more."""
        return self._node.image.settle_replica_changes(self.high_watermark)

    def take_newest_changes(self) -> NewestChanges:
        """Remove and return the newest change of each partition, before the first of the others is taken."""
        return self._node.image.take_newest_changes()

    def take_removed_topics(self) -> list[tuple[str, bytes]]:
        """Remove and return the topics whose removal is committed, by name and id."""
        return self._node.image.take_removed_topics(self.high_watermark)

    def marks(self) -> tuple[int, int, int, int | None, bool]:
        """The values behind `MetadataMoved`: equal marks mean that nothing has changed."""
        core, durable_epoch = self._node.core, self._storage.durable_epoch
        epoch, leader_id = core.epoch, core.leader_id
        if epoch > durable_epoch:  # see `epoch` and `leader_id`
            epoch, leader_id = durable_epoch, None
        elif leader_id == self._node_id and not core.is_leader:
            leader_id = None
        is_loaded = self._node.following.finalized_features.epoch >= 0
        return self.high_watermark, self._log.log_start, epoch, leader_id, is_loaded

    def __repr__(self) -> str:
        return f"<NodeView of {self._node!r}>"
