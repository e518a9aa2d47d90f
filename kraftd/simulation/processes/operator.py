"""The operator of a process: reads its log, counts its lines, and follows their advice."""

from __future__ import annotations

from typing import Any

from kraftd.simulation.protocols import Process
from kraftd.simulation.schedule import MS

COUNTED = {
    "the disk is full: this node waits for room": "held by a full disk",
    "the disk is full: the snapshot of the leader waits for room": "download waits for room",
    "no snapshot: too few records have changed": "told that too few records have changed",
    "the process that makes a snapshot hangs: it is killed": "snapshot writer killed",
    "a snapshot was finished too late: the log begins after its end": "snapshot made too late",
    "a damaged checkpoint was set aside": "snapshot set aside",
    "the log starts at a snapshot": "log start moved",
    "a snapshot could not be read": "snapshot gone under a download",
    "the snapshot that came from the leader is damaged": "download refused",
}
DAMAGE = frozenset({"damage on disk", "the log could not be read", "a snapshot could not be read"})


class Operator:
    """The log of one process: each line is read as it is written."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def debug(self, text: str, **fields: Any) -> None: ...

    def info(self, text: str, **fields: Any) -> None:
        self._read(text, fields)

    def warning(self, text: str, **fields: Any) -> None:
        self._read(text, fields)

    def error(self, text: str, **fields: Any) -> None:
        self._read(text, fields)
        fault = fields.get("exc_info")
        if isinstance(fault, Exception):
            raise fault  # a defect counts even if the node has survived it

    def _read(self, text: str, fields: dict[str, Any]) -> None:
        process = self._process
        world = process.world
        if world.trace.echo is not None:
            world.trace.write(world.schedule.now_us, f"{process.id}:     log: {text} {fields or ''}")
        kind = COUNTED.get(text)
        if kind is not None:
            world.note(kind, process.id)
        if text == "making a snapshot":
            because = fields["because"]
            why = "by bytes" if "bytes" in because else "by time" if "since" in because else "on demand"
            world.trace.kinds[f"snapshot due {why}"] += 1
        elif text == "a snapshot is not the one that was requested":
            world.checks.fail("S10", f"{process!r}: {fields}")
        elif text == "the snapshot that came from the leader is damaged":
            self._distrust_the_leader()
        elif text in DAMAGE and process.host.damaged:
            world.note("damage that only hands can mend", process.id)
            world.cluster.mend_by_hand(process.host)

    def _distrust_the_leader(self) -> None:
        """After a damaged download, check the leader's files."""
        world = self._process.world
        leader = world.cluster.leader()
        if leader is not None and leader.host.was_damaged:
            world.schedule.after(1_000 * MS, leader.check_files)
