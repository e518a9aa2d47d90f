"""C1, S19 and D4 in whole controllers, step by step: a node's image of the log, and its
outstanding answers.
"""

from __future__ import annotations

from kraftd.raft import effects as raft
from kraftd.simulation.checkers.checker import Checker
from kraftd.simulation.processes.controller_process import ControllerProcess
from kraftd.simulation.processes.process import Process
from kraftd.simulation.protocols import World
from kraftd.wire.batch import parse_header


class StandbyChecker(Checker):
    """Compares images once for each offset at which a node pauses."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._compared: dict[ControllerProcess, int] = {}

    def stepped(self, process: ControllerProcess) -> None:
        """Check a node after a step and its effects."""
        node = process.node
        under_way = node.decisions.parked._under_way
        if under_way and (not node.active or under_way[0].end_offset <= node.core.high_watermark):
            self.fail("S19", f"{process!r} has not settled {under_way[0]!r}")
        newest = self.world.reference.newest
        if newest is None or newest.waiting is not None:
            return
        image = node.image
        offset = image.offset
        if offset != newest.image.offset or self._compared.get(process) == offset:
            return
        if node.following.replay._slices is not None:
            return  # a snapshot is being loaded: all of it has one offset
        if offset >= node.core.high_watermark:
            return  # a leader's own records, which may never commit
        self._compared[process] = offset
        if image != newest.image:
            self.fail("C1", f"{process!r} has another image at {offset} than the committed log")

    def appending(self, process: Process, effect: raft.AppendRecords) -> None:
        """D4: no node decides anything while the disk is full."""
        if (
            isinstance(process, ControllerProcess)
            and process.was_full
            and process.core.is_leader
            and not parse_header(effect.data).is_control
        ):
            self.fail("D4", f"{process!r} writes {effect!r} with a full disk")
