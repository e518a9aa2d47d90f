"""A client node's view of its replica: the image, the log's marks, the leader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kraftd.controller.context import Context
from kraftd.ground.destination import Destination
from kraftd.metadata.image import Image
from kraftd.metadata.replica_changes import NewestChanges, ReplicaChange
from kraftd.types import OffsetAndEpoch


class ClusterView(Protocol):
    """The current state, to be read only."""

    @property
    def cluster_id(self) -> str: ...

    @property
    def node_id(self) -> int: ...

    @property
    def image(self) -> Image: ...

    @property
    def context(self) -> Context:
        """The context for decisions that change nothing."""

    @property
    def is_loaded(self) -> bool:
        """Return whether everything that was committed when the node started is in the image."""

    @property
    def is_active(self) -> bool:
        """Return whether this node's controller takes decisions; a leader does once it is active."""

    @property
    def image_end_offset(self) -> int:
        """The end of the records in the image: on a leader that has just decided, not all are committed."""

    @property
    def applied_end_offset(self) -> int:
        """The end of all that has been read into the image, control records included."""

    @property
    def high_watermark(self) -> int: ...

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record in the log."""

    @property
    def epoch(self) -> int: ...

    @property
    def leader_id(self) -> int | None: ...

    @property
    def voter_ids(self) -> list[int]: ...

    @property
    def kraft_version(self) -> int: ...

    @property
    def finalized_features(self) -> tuple[Mapping[str, int], int]:
        """Feature levels that are committed, and the offset at which they changed, -1 before any."""

    def epoch_of(self, offset: int) -> int | None:
        """The epoch of a record."""

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """The largest epoch at or below that one, and where it ended in the log."""

    def bytes_between(self, offset: int, end_offset: int) -> int:
        """About how many bytes the records take."""

    def take_replica_changes(self, most: int) -> list[ReplicaChange]:
        """Remove and return up to `most` committed changes of the partitions that this node hosts."""

    def settle_replica_changes(self) -> bool:
        """Account for some committed changes, of which one a partition is kept; returns whether there are
        more.
        """

    def take_newest_changes(self) -> NewestChanges:
        """Remove and return the newest change of each partition, before the first of the others is taken."""

    def take_removed_topics(self) -> list[tuple[str, bytes]]:
        """Remove and return the topics whose removal is committed, by name and id."""

    def controller_destination(self) -> Destination | None:
        """The active controller's controller listener; None where it is not known."""
