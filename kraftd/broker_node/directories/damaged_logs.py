"""Has the controller let other replicas lead the partitions whose logs are damaged here.

The broker assigns such a replica to the lost directory (KIP-858), as if its disk had failed. A start that
opens the log assigns the real directory again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING

from kraftd.metadata.metadata_version import allows_directory_assignment
from kraftd.types import DIRECTORY_LOST

if TYPE_CHECKING:
    from kraftd.answers.view import ClusterView
    from kraftd.broker_node.directories.assignments import DirectoryAssignments
    from kraftd.broker_node.events import LogNotOpened, LogOpened
    from kraftd.broker_node.partitions.replicas import Hosted, Replicas, TopicPartition


class DamagedLogs:
    """`on_leadership` is called of a partition that this broker leads no more."""

    def __init__(
        self,
        view: ClusterView,
        replicas: Replicas,
        assignments: DirectoryAssignments,
        on_leadership: Callable[[Hosted, Hosted], None],
    ) -> None:
        self._view = view
        self._replicas = replicas
        self._assignments = assignments
        self._on_leadership = on_leadership

    def __repr__(self) -> str:
        return f"<DamagedLogs {len(self._replicas.offline)} partitions offline>"

    def give_up(self, hosted: Hosted, reason: str) -> bool:
        """Take a partition offline if another replica is in sync, and can lead it; return whether one is."""
        if len(hosted.state.isr) < 2 or not self._can_tell:
            return False
        self._replicas.failed((hosted.topic, hosted.index), reason)
        self._on_leadership(hosted, hosted)
        self._note(hosted)
        return True

    def failed(self, keys: Iterable[TopicPartition], offline: Container[str]) -> None:
        """The logs of partitions failed, alone or with their directory: these are offline."""
        for key in keys:
            hosted = self._replicas.get(*key)
            if hosted is not None:
                reason = "its log directory or its log failed"
                if hosted.log is not None:
                    path = hosted.log.parent
                    reason = (
                        f"its log directory {path} is offline"
                        if path in offline
                        else f"its log in {path} failed"
                    )
                self._replicas.failed(key, reason)
                self._on_leadership(hosted, hosted)

    def opened(self, hosted: Hosted, event: LogOpened) -> None:
        """A log was opened: the controller is notified if it knows another directory of it."""
        known = hosted.state.directory(self._view.node_id)
        if event.topic_id != hosted.topic_id or event.directory_id in (None, known):
            return
        if known == DIRECTORY_LOST:
            self._assignments.note_found_again(hosted.topic_id, hosted.index, event.directory_id)
        else:
            self._assignments.note(hosted.topic_id, hosted.index, event.directory_id)

    def not_opened(self, event: LogNotOpened) -> None:
        """A log was not opened: its partition is offline. The controller is notified of a damaged one."""
        self._replicas.not_opened(event)
        hosted = self._replicas.get(event.topic, event.partition)
        if event.is_damaged and hosted is not None and hosted.topic_id == event.topic_id and self._can_tell:
            self._note(hosted)

    @property
    def _can_tell(self) -> bool:
        return allows_directory_assignment(self._view.image.metadata_version)

    def _note(self, hosted: Hosted) -> None:
        if hosted.state.directory(self._view.node_id) != DIRECTORY_LOST:
            self._assignments.note(hosted.topic_id, hosted.index, DIRECTORY_LOST)
