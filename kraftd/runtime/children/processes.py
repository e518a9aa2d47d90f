"""The child processes of the daemon: one makes checkpoints, one checks files."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kraftd.host.ports import FilesChecked, ProcessFailed
from kraftd.host.snapshots.checkpointing import CheckpointMade, CheckpointOrder
from kraftd.runtime.children.child import Child, ChildEnded

WRITER, SCRUBBER = "kraftd.runtime.children.snapshot_writer", "kraftd.runtime.children.scrubber"


class ChildProcesses:
    """Starts child processes; results arrive through `call_soon`, which calls on the event loop."""

    def __init__(self, call_soon: Callable[..., object]) -> None:
        self._call_soon = call_soon

    def make_checkpoint(
        self, order: CheckpointOrder, ended: Callable[[CheckpointMade | ProcessFailed], object]
    ) -> Child:
        def over(child: ChildEnded) -> None:
            if child.exit_code == 0:
                ended(msgspec.json.decode(child.out, type=CheckpointMade))
            else:
                ended(ProcessFailed(child.err or f"the process ended with {child.exit_code}"))

        return Child(WRITER, [msgspec.json.encode(order).decode()], self._call_soon, over)

    def check_files(self, directory: str, end_offset: int, ended: Callable[[FilesChecked], object]) -> Child:
        def over(child: ChildEnded) -> None:
            rows = [msgspec.json.decode(line) for line in child.out.splitlines()]
            error = "" if child.exit_code == 0 else child.err or f"the process ended with {child.exit_code}"
            ended(FilesChecked(rows, error))

        return Child(SCRUBBER, [directory, str(end_offset)], self._call_soon, over)

    def __repr__(self) -> str:
        return "<ChildProcesses>"
