"""Faults of snapshots and of files at rest.

Downloads are interrupted, processes crash while making snapshots, bits flip.

A damaged directory counts as lost from then on, because perhaps it can only be formatted anew.
"""

from __future__ import annotations

from contextlib import suppress

from kraftd.log.segment import LOG_SUFFIX
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY
from kraftd.metadata_dir.files.checkpoint import SUFFIX, parse_checkpoint_name
from kraftd.raft.events import ResignRequested
from kraftd.simulation.cluster import Cluster, Host
from kraftd.simulation.processes.process import Process
from kraftd.simulation.protocols import World
from kraftd.simulation.randomness import SeededRandomness
from kraftd.wire.batch import CorruptBatch, iter_batches

INTERRUPTIONS = (
    "kill",
    "power loss",
    "reset",
    "leader killed",
    "leader resigns",
    "snapshot deleted",
    "crash",
)
_CHECKED_FROM = 16  # bytes 12 to 15 of a batch are its leader epoch, which neither checksum nor place proves
_UNCHECKED_FROM = 12


class DiskFaults:
    """The kinds of faults of files; each returns what it did, None if it is impossible."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cluster: Cluster = world.cluster

    # --- snapshots under way ---

    def interrupt_download(self, rng: SeededRandomness) -> str | None:
        """Interrupt the next download of some process after a few pieces."""
        host = rng.choice(list(self.cluster.hosts.values()))
        how, left = rng.choice(INTERRUPTIONS), [rng.between(1, 6)]
        reads_late = rng.chance(0.5)

        def piece_written(process: Process) -> None:
            left[0] -= 1
            if left[0] <= 0:
                host.download_trap = None
                if not process.ended and process.executor.downloads.under_way is not None:
                    self._interrupt(process, how, reads_late)

        host.download_trap = piece_written
        return f"{host.id}: {how} after {left[0]} pieces"

    def _interrupt(self, process: Process, how: str, reads_late: bool) -> None:
        cluster, leader = self.cluster, self.cluster.leader()
        host = cluster.hosts[process.id]
        if how == "kill":
            cluster.kill(host)
        elif how == "power loss":
            cluster.power_loss(host)
        elif how == "crash":
            host.disk.crash_at = host.disk.operations + 1
        elif how == "reset":
            for link in [one for one in process.links.values() if one.open]:
                self.world.network.reset(link)
        elif leader is None or leader is process:
            return
        elif how == "leader killed":
            cluster.kill(cluster.hosts[leader.id])
        elif how == "leader resigns":
            leader.deliver(ResignRequested(leader.core.epoch))
        elif reads_late:
            leader.host.read_trap = lambda reader: self._delete_snapshot(reader, process)
            return
        else:
            self._delete_snapshot(leader, process)
            return
        self._interrupted(process, how)

    def _delete_snapshot(self, leader: Process, process: Process) -> None:
        """Make the leader's snapshot newer and delete the one that the process is fetching."""
        under_way = process.executor.downloads.under_way
        if under_way is not None and not process.ended and leader.replace_snapshot(under_way):
            self._interrupted(process, "snapshot deleted")

    def _interrupted(self, process: Process, how: str) -> None:
        self.world.note("download interrupted", process.id, how)
        self.world.trace.kinds[f"download interrupted: {how}"] += 1

    def crash_in_snapshot(self, rng: SeededRandomness) -> str | None:
        """Crash some process at an operation of its next making or naming of a snapshot."""
        host = rng.choice(list(self.cluster.hosts.values()))
        host.snapshot_trap = rng.between(1, 9)
        return f"{host.id} at operation {host.snapshot_trap}"

    # --- bits that flip ---

    def damage_checkpoint(self, rng: SeededRandomness) -> str | None:
        host = self._expendable(rng)
        if host is None:
            return None
        paths = [
            path
            for path in host.disk.paths()
            if path.endswith(SUFFIX)
            and (snapshot_id := parse_checkpoint_name(path.rpartition("/")[2])) is not None
            and snapshot_id.offset > 0
        ]
        if not paths:
            return None
        path = rng.choice(paths)
        spans = _spans(host.disk.read_bytes(path))
        return self._flip(rng, host, path, spans) if spans else None  # damaged in its first bytes before

    def damage_segment(self, rng: SeededRandomness) -> str | None:
        """Flip a bit in a segment, but never in the last batch: that looks like a write that a crash has
        torn.
        """
        host = self._expendable(rng)
        if host is None:
            return None
        in_log = f"/{PARTITION_DIRECTORY}/"  # a copy of truncated records is no segment
        paths = sorted(
            path
            for path in host.disk.paths()
            if path.endswith(LOG_SUFFIX) and path[: path.rindex("/") + 1].endswith(in_log)
        )
        spans = {path: _spans(host.disk.durable_bytes(path)) for path in paths}
        if paths:
            spans[paths[-1]] = spans[paths[-1]][:-1]
        paths = [path for path in paths if spans[path]]
        if not paths:
            return None
        path = rng.choice(paths)
        return self._flip(rng, host, path, spans[path])

    def _expendable(self, rng: SeededRandomness) -> Host | None:
        """A process whose directory may be lost for good."""
        cluster = self.cluster
        host = rng.choice(list(cluster.hosts.values()))
        sets = cluster.voter_sets()
        if host.disk.crash_at is not None or host.id in self.world.workload.joining:
            return None
        if host.process is None or host.process.is_held:
            return None  # the checkers know only the synced bytes of a stopped host
        if self.world.options.dynamic:
            if not all(cluster.is_intact(voters, frozenset({host.key})) for voters in sets):
                return None
        elif any(voters.get(host.id) for voters in sets) or host.static_voters.get(host.id):
            return None
        return host

    def _flip(self, rng: SeededRandomness, host: Host, path: str, spans: list[tuple[int, int]]) -> str | None:
        start, size = rng.choice(spans)
        at = rng.below(size)
        if _UNCHECKED_FROM <= at < _CHECKED_FROM:
            at = _CHECKED_FROM
        host.disk.flip_bit(path, start + at, rng.below(8))
        host.was_damaged = True
        self.cluster.lost.add(host.key)
        if rng.chance(0.5):
            self.cluster.kill(host)  # the next load, or the next reader, finds the damage
        return f"{host.id}: {path.rpartition('/')[2]}, byte {start + at}"


def _spans(data: bytes) -> list[tuple[int, int]]:
    """Position and size of each whole batch."""
    spans: list[tuple[int, int]] = []
    with suppress(CorruptBatch):  # a torn tail
        spans.extend((batch.position, batch.header.size_bytes) for batch in iter_batches(data, verify=False))
    return spans
