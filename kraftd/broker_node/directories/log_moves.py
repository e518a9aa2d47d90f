"""Moves of logs between the directories of this broker (KIP-113, KIP-858).

A log is copied to a future one by the host, which reports when that has all of it. The controller is then
notified of the new directory. Once it has accepted that, the future log takes the place of the present one.
So a directory that the metadata names always has a log that was complete at that time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kraftd.answers.view import ClusterView
from kraftd.broker_node.directories.assignments import DirectoryAssignments
from kraftd.broker_node.directories.cordoning import Cordoning
from kraftd.broker_node.effects import CancelMove, ReplaceLog
from kraftd.broker_node.events import FutureCaughtUp, FutureLost, LogReplaced, LogView, MoveBegun, MovesBegun
from kraftd.broker_node.partitions.replicas import Hosted, Replicas, TopicPartition
from kraftd.metadata.metadata_version import allows_directory_assignment
from kraftd.requests.outbox import Outbox
from kraftd.types import Uuid


class Moving:
    """A future log. `is_told`: the controller may know of its directory. `is_accepted`: it does."""

    def __init__(self, future: LogView, directory_id: Uuid | None) -> None:
        self.future = future
        self.directory_id = directory_id
        self.is_told = False
        self.is_accepted = False

    def __repr__(self) -> str:
        progress = "accepted" if self.is_accepted else "asked" if self.is_told else "copying"
        return f"<Moving to {self.future.parent}, {progress}>"


class LogMoves:
    """The future logs of the node's partitions, by topic and partition. `begun` continues a request."""

    def __init__(
        self,
        view: ClusterView,
        outbox: Outbox,
        replicas: Replicas,
        assignments: DirectoryAssignments,
        cordoning: Cordoning,
        begun: Callable[[MovesBegun], None],
    ) -> None:
        self._view = view
        self._outbox = outbox
        self._replicas = replicas
        self._assignments = assignments
        self._cordoning = cordoning
        self._continue = begun
        self._asked: dict[TopicPartition, str] = {}  # the directory of a future log that is to be made
        self._moving: dict[TopicPartition, Moving] = {}

    def __repr__(self) -> str:
        return f"<LogMoves {self._moving}>"

    def __iter__(self) -> Iterator[tuple[Hosted, Moving]]:
        for key, moving in list(self._moving.items()):
            hosted = self._replicas.get(*key)
            if hosted is not None:
                yield hosted, moving

    def handlers(self) -> dict[type, Callable[..., None]]:
        """The events of the host about future logs."""
        return {
            MoveBegun: self._begun,
            MovesBegun: self._continue,
            FutureCaughtUp: self._caught_up,
            FutureLost: lambda event: self._end((event.topic, event.partition)),
            LogReplaced: self._replaced,
        }

    # -- what a request asks

    def asked(self, key: TopicPartition, path: str) -> None:
        """Note that a future log is going to be made."""
        self._asked[key] = path

    def target(self, key: TopicPartition) -> str | None:
        """The directory to which a log is being moved."""
        moving = self._moving.get(key)
        return self._asked.get(key, None if moving is None else moving.future.parent)

    def cancel(self, key: TopicPartition, *, stays: bool) -> None:
        """Move a log no more. One that stays where it is may have a future log that is not open, for its disk
        has been full since the start.
        """
        if self._asked.pop(key, None) is not None or key in self._moving or stays:
            self._end(key)
            self._outbox.emit(CancelMove(*key))

    def forget(self, hosted: Hosted) -> None:
        """The partition is gone, and its future log with it."""
        key = hosted.topic, hosted.index
        self._asked.pop(key, None)
        self._moving.pop(key, None)

    # -- what the host reports

    def _begun(self, event: MoveBegun) -> None:
        key = event.topic, event.partition
        moving = self._moving.get(key)
        self._asked.pop(key, None)
        if event.future is None or self._replicas.get(*key) is None:
            return
        if moving is None or moving.future is not event.future:
            self._end(key)
            self._moving[key] = Moving(event.future, event.directory_id)

    def _caught_up(self, event: FutureCaughtUp) -> None:
        key = event.topic, event.partition
        moving, hosted = self._moving.get(key), self._replicas.get(*key)
        if moving is None or hosted is None:
            return
        if moving.is_accepted or moving.directory_id is None or not self._knows_directories:
            self._outbox.emit(ReplaceLog(*key))
        elif not moving.is_told:
            moving.is_told = True

            def accepted() -> None:
                moving.is_accepted = True
                if self._moving.get(key) is moving:
                    self._outbox.emit(ReplaceLog(*key))

            self._assignments.note(hosted.topic_id, hosted.index, moving.directory_id, accepted)

    @property
    def _knows_directories(self) -> bool:
        return allows_directory_assignment(self._view.image.metadata_version)

    def _replaced(self, event: LogReplaced) -> None:
        key = event.topic, event.partition
        self._moving.pop(key, None)
        hosted = self._replicas.get(*key)
        if hosted is None or hosted.partition is None or hosted.log is None:
            return
        hosted.log = event.log
        hosted.partition.moved(event.log.epochs)
        self._replicas.moved.add(hosted)

    def _end(self, key: TopicPartition) -> None:
        moving, hosted = self._moving.pop(key, None), self._replicas.get(*key)
        if moving is None or hosted is None or hosted.log is None or not moving.is_told:
            return
        present = self._cordoning.ids.get(hosted.log.parent)
        if present is not None:  # the controller may believe that the log is in the other one
            self._assignments.note(hosted.topic_id, hosted.index, present)
