"""The nemesis: the faults and their times. The plan is drawn before the world runs, the target of a fault
when it happens.

Each fault draws from a number of its own, so that removing others from the plan does not change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kraftd.log.errors import StorageFailure
from kraftd.named_tuple import NamedTuple
from kraftd.raft.events import ShutdownRequested
from kraftd.simulation.brokers.data_faults import DataFaults
from kraftd.simulation.cluster import PORT, Cluster, Host
from kraftd.simulation.faults import addresses
from kraftd.simulation.faults.disk_faults import DiskFaults
from kraftd.simulation.faults.old_copies import OldCopies
from kraftd.simulation.processes.network import Network
from kraftd.simulation.protocols import World
from kraftd.simulation.randomness import SeededRandomness
from kraftd.simulation.schedule import MS, SECOND

SHUTDOWN_MS = 2_000


class Fault(NamedTuple):
    """One planned fault."""

    at_us: int
    kind: str
    number: int

    def __repr__(self) -> str:
        return f"<{self.kind} at {self.at_us / SECOND:.6f} s, number {self.number}>"


def plan_faults(world: World) -> Iterator[Fault]:
    """Faults of the world's kinds, one after the other, with gaps as long as its options say."""
    rng, options = world.rng("faults"), world.options
    at_us = rng.between(0, 3 * SECOND)
    while at_us < options.safety_us:
        yield Fault(at_us, rng.choice(options.faults), rng.below(1 << 30))
        at_us += rng.between(1, 2 * options.fault_gap_us)
    for at_us, number in addresses.plan_moves(world):
        yield Fault(at_us, addresses.KIND, number)


class Nemesis:
    """Faults of the kinds of this world, one after the other, at gaps as its options say."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cluster: Cluster = world.cluster
        self.network: Network = world.network
        files, data = DiskFaults(world), DataFaults(world)
        self._kinds: dict[str, Callable[[SeededRandomness], str | None]] = {
            "kill": self._kill,
            "power loss": self._power_loss,
            "restart": self._restart,
            "stop gracefully": self._stop,
            "pause": self._pause,
            "partition": self._partition,
            "one-way partition": self._one_way_partition,
            "bridge": self._bridge,
            "isolate leader": self._isolate_leader,
            "cut link": self._cut_link,
            "heal": self._heal,
            "reset connections": self._reset_connections,
            "lose messages": self._lose_messages,
            "delay messages": self._delay_messages,
            "crash at effect": self._crash_at_effect,
            "crash in write": self._crash_in_write,
            "slow sync": self._slow_sync,
            "failing sync": self._failing_sync,
            "full disk": self._full_disk,
            "make room": self._make_room,
            "clock jump": self._clock_jump,
            "move port": self._move_port,
            addresses.KIND: lambda rng: addresses.move_all_ports(self.cluster, rng),
            "wipe directory": self._wipe,
            "roll back directory": OldCopies(world).roll_back,
            "interrupt download": files.interrupt_download,
            "crash in snapshot": files.crash_in_snapshot,
            "damage checkpoint": files.damage_checkpoint,
            "damage segment": files.damage_segment,
            "crash in data write": data.crash_in_write,
            "full data disk": data.fill,
            "failing data directory": data.fail_directory,
            "damage data segment": data.damage_segment,
            "reboot without data disk": data.reboot_without_disk,
        }

    def act(self, fault: Fault) -> None:
        done = self._kinds[fault.kind](self.world.rng("fault", fault.number))
        if done is not None:
            self.world.note(fault.kind, done)

    # --- processes ---

    def _alive(self, rng: SeededRandomness) -> Host | None:
        """A running process; the leader more often than others."""
        alive = self.cluster.alive()
        leader = self.cluster.leader()
        if leader is not None and rng.chance(0.3):
            return self.cluster.hosts[leader.id]
        return rng.choice(alive) if alive else None

    def _kill(self, rng: SeededRandomness) -> str | None:
        host = self._alive(rng)
        if host is None:
            return None
        self.cluster.kill(host)
        return str(host.id)

    def _power_loss(self, rng: SeededRandomness) -> str | None:
        alive = self.cluster.alive()
        if not alive:
            return None
        count = rng.choice((1, 1, 1, 2, len(alive)))
        hosts = rng.sample(alive, min(count, len(alive)))
        for host in hosts:
            self.cluster.power_loss(host)
        return ",".join(str(host.id) for host in hosts)

    def _restart(self, rng: SeededRandomness) -> str | None:
        down = [host for host in self.cluster.hosts.values() if host.process is None]
        if not down:
            return None
        host = rng.choice(down)
        return str(host.id) if self.cluster.start(host) else None

    def _stop(self, rng: SeededRandomness) -> str | None:
        host = self._alive(rng)
        if host is None or host.process is None:
            return None
        host.process.deliver(ShutdownRequested(SHUTDOWN_MS))
        return str(host.id)

    def _pause(self, rng: SeededRandomness) -> str | None:
        host = self._alive(rng)
        if host is None:
            return None
        pause_us = rng.choice((10 * MS, 500 * MS, 3 * SECOND, 20 * SECOND))
        host.paused_until_us = max(host.paused_until_us, self.world.schedule.now_us + pause_us)
        return f"{host.id} for {pause_us // MS} ms"

    # --- the network ---

    def _ids(self, rng: SeededRandomness) -> list[int]:
        ids = list(self.cluster.hosts)
        rng.shuffle(ids)
        return ids

    def _partition(self, rng: SeededRandomness) -> str | None:
        ids = self._ids(rng)
        if len(ids) < 2:
            return None
        at = rng.between(1, len(ids) - 1)
        self._cut(ids[:at], ids[at:], both=True)
        return f"{ids[:at]} from {ids[at:]}"

    def _one_way_partition(self, rng: SeededRandomness) -> str | None:
        ids = self._ids(rng)
        if len(ids) < 2:
            return None
        at = rng.between(1, len(ids) - 1)
        self._cut(ids[:at], ids[at:], both=False)
        return f"nothing from {ids[:at]} to {ids[at:]}"

    def _bridge(self, rng: SeededRandomness) -> str | None:
        ids = self._ids(rng)
        if len(ids) < 3:
            return None
        at = rng.between(2, len(ids) - 1)
        self._cut(ids[1:at], ids[at:], both=True)
        return f"{ids[1:at]} from {ids[at:]}, {ids[0]} sees both"

    def _isolate_leader(self, rng: SeededRandomness) -> str | None:
        leader = self.cluster.leader()
        if leader is None:
            return None
        self._cut([leader.id], [one for one in self.cluster.hosts if one != leader.id], both=rng.chance(0.5))
        return str(leader.id)

    def _cut_link(self, rng: SeededRandomness) -> str | None:
        ids = self._ids(rng)
        if len(ids) < 2:
            return None
        self._cut(ids[:1], ids[1:2], both=rng.chance(0.5))
        return f"{ids[0]} and {ids[1]}"

    def _cut(self, some: list[int], others: list[int], *, both: bool) -> None:
        cut = self.network.cut
        for one in some:
            for other in others:
                cut.add((one, other))
                if both:
                    cut.add((other, one))

    def _heal(self, rng: SeededRandomness) -> str | None:
        options = self.world.options
        self.network.heal()
        self.network.loss, self.network.delay_us = options.loss, options.delay_us
        return ""

    def _reset_connections(self, rng: SeededRandomness) -> str | None:
        host = self._alive(rng)
        if host is None or host.process is None:
            return None
        links = [link for link in (*host.process.links.values(), *host.process.incoming) if link.open]
        for link in links:
            if rng.chance(0.5):
                self.network.reset(link)
        return str(host.id)

    def _lose_messages(self, rng: SeededRandomness) -> str | None:
        self.network.loss = rng.choice((0.05, 0.3, 0.6))
        return str(self.network.loss)

    def _delay_messages(self, rng: SeededRandomness) -> str | None:
        low_us = rng.choice((1 * MS, 20 * MS, 200 * MS))
        self.network.delay_us = low_us, low_us * rng.choice((1, 10))
        return str(low_us)

    # --- crashes at a point, disks ---

    def _crash_at_effect(self, rng: SeededRandomness) -> str | None:
        host = self._alive(rng)
        if host is None or host.process is None:
            return None
        host.process.crash_after_effects = rng.below(30)
        return f"{host.id} after {host.process.crash_after_effects}"

    def _crash_in_write(self, rng: SeededRandomness) -> str | None:
        host = self._alive(rng)
        if host is None:
            return None
        host.disk.crash_at = host.disk.operations + rng.between(1, 12)
        return str(host.id)

    def _slow_sync(self, rng: SeededRandomness) -> str | None:
        host = self._alive(rng)
        if host is None:
            return None
        host.sync_factor = rng.choice((1, 10, 100))
        return f"{host.id} by {host.sync_factor}"

    def _disk_of(self, rng: SeededRandomness) -> Host | None:
        """The disk of a process that runs or is about to start."""
        down = [host for host in self.cluster.hosts.values() if host.process is None]
        return rng.choice(down) if down and rng.chance(0.5) else self._alive(rng)

    def _failing_sync(self, rng: SeededRandomness) -> str | None:
        host = self._disk_of(rng)
        if host is None:
            return None
        left = [rng.between(1, 3)]

        def fault(operation: str, path: str) -> None:
            if operation == "sync" and left[0]:
                left[0] -= 1
                raise StorageFailure(f"cannot sync {path}: input/output error")

        host.disk.fault = fault
        return str(host.id)

    def _full_disk(self, rng: SeededRandomness) -> str | None:
        host = self._disk_of(rng)
        if host is None:
            return None
        host.disk.capacity_bytes = 0
        over = host.disk.room_for(1)
        host.disk.capacity_bytes = (over or 1) - 1 + rng.choice((0, 50, 500))
        return str(host.id)

    def _make_room(self, rng: SeededRandomness) -> str | None:
        for host in self.cluster.hosts.values():
            host.disk.capacity_bytes = host.data_disk.capacity_bytes = None
        return ""

    def mend(self, host: Host) -> None:
        """Remove all faults from this host."""
        for disk in (host.disk, host.data_disk):
            disk.capacity_bytes = disk.fault = disk.crash_at = None
        host.sync_factor = 1
        host.download_trap = host.read_trap = host.snapshot_trap = None
        if host.process is not None:
            host.process.crash_after_effects = None

    # --- identity ---

    def _clock_jump(self, rng: SeededRandomness) -> str | None:
        host = rng.choice(list(self.cluster.hosts.values()))
        jump_ms = rng.choice((-86_400_000, -5_000, -1, 1, 5_000, 86_400_000))
        host.clock.offset_us += jump_ms * MS
        return f"{host.id} by {jump_ms} ms"

    def _move_port(self, rng: SeededRandomness) -> str | None:
        """Restart a host with another port, if the others can still elect and reach each other."""
        cluster, hosts = self.cluster, self.cluster.hosts
        leader = cluster.leader()
        if not self.world.options.dynamic or leader is None or len(leader.core.voters) < 3:
            return None
        host = rng.choice(list(hosts.values()))
        if not all(cluster.is_intact(voters, frozenset({host.key})) for voters in cluster.voter_sets()):
            return None
        if host.process is not None:
            self.cluster.kill(host)
        self.network.hosts.pop(host.address, None)
        host.port = PORT + rng.between(1, 999)
        cluster.start(host)
        return f"{host.id} to {host.port}"

    def _wipe(self, rng: SeededRandomness) -> str | None:
        """Replace a directory by an empty one with a new id: the old voter is lost for good."""
        cluster = self.cluster
        if not self.world.options.dynamic:
            return None
        host = rng.choice(list(cluster.hosts.values()))
        if not all(cluster.is_intact(voters, frozenset({host.key})) for voters in cluster.voter_sets()):
            return None
        if not cluster.voter_sets() or host.id in self.world.workload.joining:
            return None
        if host.process is not None:
            cluster.kill(host)
        cluster.wipe(host)
        return str(host.id)
