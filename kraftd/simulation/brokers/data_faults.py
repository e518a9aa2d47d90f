"""Faults of the disks on which brokers have their log directories."""

from __future__ import annotations

from kraftd.log.errors import StorageFailure
from kraftd.log.segment import LOG_SUFFIX
from kraftd.simulation.brokers.broker_side import DIRECTORIES, BrokerSide
from kraftd.simulation.brokers.traffic import Traffic
from kraftd.simulation.cluster import Cluster, Host
from kraftd.simulation.protocols import World
from kraftd.simulation.randomness import SeededRandomness
from kraftd.simulation.schedule import SECOND
from kraftd.wire.batch import CorruptBatch, iter_batches

_CHECKED_FROM = 16  # bytes 12 to 15 of a batch are its leader epoch


class DataFaults:
    """The kinds of faults; each returns what it did, None if it is impossible."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cluster: Cluster = world.cluster
        self.traffic: Traffic = world.traffic

    def _host(self, rng: SeededRandomness) -> Host | None:
        brokers = self.cluster.broker_ids
        return self.cluster.hosts[rng.choice(brokers)] if brokers else None

    def crash_in_write(self, rng: SeededRandomness) -> str | None:
        host = self._host(rng)
        if host is None or host.process is None:
            return None
        host.data_disk.crash_at = host.data_disk.operations + rng.between(1, 30)
        return str(host.id)

    def fill(self, rng: SeededRandomness) -> str | None:
        """Fill a disk; `make room` heals it."""
        host = self._host(rng)
        if host is None:
            return None
        total, usable = host.data_disk.space_bytes(DIRECTORIES[0])
        host.data_disk.capacity_bytes = total - usable + rng.choice((0, 50, 500))
        return str(host.id)

    def fail_directory(self, rng: SeededRandomness) -> str | None:
        """Let every change of a log directory fail for some seconds. Often it is that of a broker which is
        about to join an ISR, as after a reassignment.
        """
        joining = sorted(self.traffic.replicas.joining())
        host = self.cluster.hosts[rng.choice(joining)] if joining and rng.chance(0.5) else self._host(rng)
        if host is None:
            return None
        path, disk = f"{rng.choice(DIRECTORIES)}/", host.data_disk

        def fault(operation: str, at: str) -> None:
            if at.startswith(path):
                raise StorageFailure(f"cannot {operation} {at}: input/output error")

        def mend() -> None:
            if host.data_disk.fault is fault:
                host.data_disk.fault = None

        disk.fault = fault
        self.world.schedule.after(rng.choice((1, 5)) * SECOND, mend)
        return f"{host.id}: {path}"

    def reboot_without_disk(self, rng: SeededRandomness) -> str | None:
        """Reboot a broker with an empty data disk, soon: rather one that is about to join an ISR.

        Each of its partitions has another member of the ISR.
        """
        hosts = [self.cluster.hosts[one] for one in self.cluster.broker_ids]
        able = [one for one in hosts if self.traffic.replicas.can_lose(one.id)]
        joining = self.traffic.replicas.joining()
        chosen = [one for one in able if one.id in joining] or able
        if not chosen:
            return None
        host = rng.choice(chosen)
        self.cluster.replace_data_disk(host)
        self.traffic.replicas.lost_disk(host.id)
        return f"{host.id}, joining: {host.id in joining}"

    def damage_segment(self, rng: SeededRandomness) -> str | None:
        """Flip a bit in a flushed batch of a partition."""
        host = self._host(rng)
        side: BrokerSide | None = None if host is None or host.process is None else host.process.broker
        if host is None or side is None or host.data_disk.crash_at is not None:
            return None
        checks = self.traffic.partitions
        logs = [log for log in side.logs.directories.logs.values() if log.topic_id in checks.names]
        if not logs:
            return None
        log = rng.choice(logs)
        paths = [one for one in host.data_disk.paths() if one.startswith(f"{log.directory}/")]
        spans = []
        for path in [one for one in paths if one.endswith(LOG_SUFFIX)]:
            try:
                batches = list(iter_batches(host.data_disk.durable_bytes(path), verify=False))
            except CorruptBatch:
                continue
            spans += [(path, one) for one in batches if one.header.next_offset <= log.recovery_point]
        if not spans:
            return None
        path, batch = rng.choice(spans)
        start, base_offset = batch.position, batch.header.base_offset
        at = rng.below(batch.header.size_bytes)
        at = _CHECKED_FROM if 12 <= at < _CHECKED_FROM else at
        host.data_disk.flip_bit(path, start + at, rng.below(8))
        known = checks.of((log.topic_id or b"", log.partition))
        before = known.damaged_from
        known.damaged_from = base_offset if before is None else min(before, base_offset)
        if rng.chance(0.5):
            self.cluster.kill(host)
        return f"{host.id}: {path}, byte {start + at}, offset {base_offset}"
