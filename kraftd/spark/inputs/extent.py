"""What a read covers: a committed log up to an offset, and the checkpoints from which its state is known."""

from __future__ import annotations

from functools import cached_property
from typing import Self

from kraftd.spark.errors import InputError
from kraftd.spark.inputs.checkpoints import is_sound
from kraftd.spark.inputs.layout import CheckpointFile
from kraftd.spark.inputs.replicas import CommittedLog

MARKERS = ("BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord")
LOG = "log"
"""The name of the decoded log, beside the paths of decoded checkpoints."""
BEFORE_THE_LOG = -1
"""The offset that records of a checkpoint are given: they are older than all that the log holds."""


class Extent:
    """A committed log up to below end_offset, and the checkpoints that fit it."""

    def __init__(
        self,
        log: CommittedLog,
        end_offset: int,
        *,
        permissive: bool = False,
        checkpoints_below: int | None = None,
        base: CheckpointFile | None = None,
    ) -> None:
        """checkpoints_below leaves out the checkpoints from this end offset on.

        base is a checkpoint to start from, without regard to the log before it.
        """
        self.source = log
        self.end_offset = end_offset
        self.permissive = permissive
        self._below = log.end_offset + 1 if checkpoints_below is None else checkpoints_below
        self._base = base
        self._check_start()

    def __repr__(self) -> str:
        path, start = self.source.replica.path, self.source.start_offset
        return f"<{type(self).__name__} of {path}, offsets {start} to {self.end_offset - 1}>"

    def until(self, end_offset: int) -> Self:
        """The same extent up to below a lower offset."""
        return type(self)(self.source, end_offset, permissive=self.permissive)

    @property
    def cluster_id(self) -> str | None:
        return self.source.replica.cluster_id

    @property
    def replays_history(self) -> bool:
        """Return whether `history` ends with the state, and dates it as well as `state` does."""
        first = self.first_checkpoint
        if self._base is not None or self.state_checkpoint != first:
            return False
        return first is None or self.source.start_offset >= first.end_offset

    @cached_property
    def state_checkpoint(self) -> CheckpointFile | None:
        """The checkpoint to which the records of the log are applied, None for a log from offset 0.

        In mode PERMISSIVE, the newest one within the end. It skips damaged ones as long as another one, or
        the whole log, can replace them.
        """
        if self._base is not None or not self.permissive:
            return self._base or self.first_checkpoint
        found = [each for each in self.checkpoints() if each.end_offset <= self.end_offset]
        unsound = [each for each in self.unsound_checkpoints if each != self.first_checkpoint]
        found = [each for each in found if each not in unsound]
        return found[-1] if found else None

    @cached_property
    def unsound_checkpoints(self) -> list[CheckpointFile]:
        """In mode PERMISSIVE the damaged checkpoints within the end."""
        if not self.permissive:
            return []
        found = [each for each in self.checkpoints() if each.end_offset <= self.end_offset]
        return [each for each in found if not is_sound(each)]

    @cached_property
    def first_checkpoint(self) -> CheckpointFile | None:
        """The checkpoint that replaces records older than the log; None for a log from offset 0."""
        if self.source.log.plans and self.source.start_offset == 0:
            return None
        return next(iter(self.checkpoints()), None)

    @property
    def first_state_offset(self) -> int:
        """The first offset at which the state is known; -1, before any record, for a log from offset 0."""
        first = self.first_checkpoint
        return (self.source.start_offset if first is None else first.end_offset) - 1

    def checkpoints(self) -> list[CheckpointFile]:
        """The checkpoints whose end lies within the log, without the bootstrap checkpoint of offset 0."""
        start = self.source.start_offset
        return [
            each
            for each in self.source.replica.checkpoints
            if each.end_offset > 0 and start <= each.end_offset < self._below
        ]

    def earlier_end(self, checkpoint: CheckpointFile | None) -> int | None:
        """The end offset of a checkpoint if the log also holds records before it; else None."""
        log = self.source.log
        if checkpoint is None or self._base is not None or not log.plans:
            return None
        return checkpoint.end_offset if log.start_offset < checkpoint.end_offset else None

    def _check_start(self) -> None:
        """Raises InputError if records older than the log are missing everywhere."""
        replica, start = self.source.replica, self.source.start_offset
        if not replica.segments:
            if not self.permissive:
                name = replica.checkpoints[-1]
                raise InputError(
                    f"{name.path}: offset {name.end_offset}: a checkpoint without its log. Give the "
                    "directory with its segments; mode PERMISSIVE reads the checkpoint alone"
                )
        elif start > 0 and self.first_checkpoint is None and not self.permissive:
            raise InputError(
                f"{replica.segments[0].path}: byte 0, offset {start}: the log begins here and no "
                "checkpoint holds what came before: segments or the checkpoint are missing"
            )
