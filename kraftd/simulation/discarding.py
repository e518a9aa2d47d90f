"""The operator of a world runs `kraftd quorum discard` on a directory that is ahead of its quorum."""

from __future__ import annotations

from kraftd.log.errors import StorageError
from kraftd.log.memory_disk import SimulatedCrash
from kraftd.metadata_dir.rescue.discard import discard, plan
from kraftd.simulation.processes.files import PATH
from kraftd.simulation.processes.mirror import LogMirror
from kraftd.simulation.protocols import Host


def discard_by_hand(host: Host, committed: LogMirror) -> bool | None:
    """Discard on a stopped host what it has refused to lose, again after each crash in between.

    Returns whether its log still holds records other than the committed ones; None if it has refused nothing.
    """
    while True:
        try:
            planned = plan(host.disk, PATH)
            host.disk.crash_at = host.disk.operations + host.rng.between(1, 80)
            discard(host.disk, PATH, planned)
        except SimulatedCrash:
            host.disk = host.disk.after_crash(host.rng.below)
        except StorageError:
            return None
        else:
            break
    host.disk.crash_at = None
    host.disk = host.disk.after_crash(host.rng.below)  # its completed work is durable
    if planned.start < host.mirror.start:
        host.mirror.reset(0, 0)
    else:
        host.mirror.truncate(planned.start)
    return any(committed.entry_before(entry.end) != entry for entry in host.mirror.entries)
