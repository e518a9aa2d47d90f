"""The hosts: each with a disk, a clock and an address, and at most one process that runs on them."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.log.errors import CorruptStorage, DiskFull, StorageError, StorageFailure
from kraftd.log.memory_disk import (
    MemoryDisk,
    SimulatedCrash,
    everything_survives,
    nothing_unsynced_survives,
)
from kraftd.log.segment import LOG_SUFFIX
from kraftd.metadata.metadata_version import LATEST_PRODUCTION
from kraftd.metadata_dir.files.checkpoint import SUFFIX
from kraftd.metadata_dir.formatting.voters import InitialVoter
from kraftd.raft.config import RaftConfig
from kraftd.raft.quorum.voters import NO_VOTERS, VoterSet
from kraftd.simulation.brokers.broker_side import BrokerSide
from kraftd.simulation.discarding import discard_by_hand
from kraftd.simulation.processes.controller_process import ControllerProcess
from kraftd.simulation.processes.files import CLUSTER_ID, LISTENER, Files, format_disk
from kraftd.simulation.processes.mirror import LogMirror
from kraftd.simulation.processes.process import Process
from kraftd.simulation.protocols import World
from kraftd.simulation.schedule import MS, Clock
from kraftd.types import Endpoint, OffsetAndEpoch, ReplicaKey

WALL_MS = 1_700_000_000_000
FIRST_OBSERVER = 100
PORT = 9093


class Host:
    """One machine. `process` is None while nothing runs; `is_off` while it also has no power."""

    def __init__(self, world: World, node_id: int, *, is_old: bool) -> None:
        options = world.options
        self.world = world
        self.id = node_id
        self.is_old = is_old
        self.rng = world.rng("host", node_id)
        skew_us = options.clock_skew_ms * MS
        self.clock = Clock(
            WALL_MS * MS + self.rng.between(-skew_us, skew_us),
            self.rng.between(-options.clock_rate_ppm, options.clock_rate_ppm),
        )
        self.disk = MemoryDisk()
        self.data_disk = MemoryDisk()
        self.data_disks = 1  # how many it has had
        self.directory_id = b""
        self.port = PORT
        self.process: Process | None = None
        self.is_off = False
        self.paused_until_us = 0
        self.starts = 0
        self.static_voters = NO_VOTERS
        self.mirror = LogMirror()
        self.persisted: tuple[int, int] = (0, -1)  # durable epoch, and the id voted for in it
        self.sync_factor = 1
        self.voters = NO_VOTERS  # the voters last in force at its replica
        self.has_voted = False  # was once in a voter set
        self.downloaded: tuple[OffsetAndEpoch, int] | None = None  # the last download, and in which start
        self.download_trap: Callable[[Process], None] | None = None  # called for each piece that is written
        self.read_trap: Callable[[Process], None] | None = None  # called before a slow read of a piece
        self.snapshot_trap: int | None = None  # operations of the disk until the next snapshot's crash
        self.was_damaged = False  # a bit was flipped in this directory

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.id, self.directory_id)

    @property
    def damaged(self) -> dict[str, int]:
        """The segments and checkpoints in which bits have flipped, with the position of the first."""
        if not self.was_damaged:
            return {}
        rotten = self.disk.rotten_paths()
        return {path: at for path, at in rotten.items() if path.endswith((LOG_SUFFIX, SUFFIX))}

    @property
    def address(self) -> tuple[str, int]:
        return f"n{self.id}", self.port

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(LISTENER, f"n{self.id}", self.port)

    def sync_delay_us(self) -> int:
        low, high = self.world.options.sync_us
        return self.rng.between(low, high) * self.sync_factor

    def spring_snapshot_trap(self) -> None:
        """Crash, if planned, as a snapshot is about to be written or named."""
        if self.snapshot_trap is not None:
            self.disk.crash_at = self.disk.operations + self.snapshot_trap
            self.snapshot_trap = None
            self.world.trace.kinds["crash planned in a snapshot"] += 1

    def callback_delay_us(self) -> int:
        return self.rng.between(1, 50)

    def __repr__(self) -> str:
        state = "off" if self.is_off else "down" if self.process is None else repr(self.process)
        return f"<Host {self.id} {state}>"


class Cluster:
    """All hosts, by node id."""

    def __init__(self, world: World) -> None:
        self.world = world
        options = world.options
        rng = world.rng("cluster")
        ids = range(1, options.voter_count + 1)
        observers = range(FIRST_OBSERVER, FIRST_OBSERVER + options.observer_count)
        self.hosts: dict[int, Host] = {}
        for node_id in (*ids, *observers):
            self.hosts[node_id] = Host(world, node_id, is_old=options.old_versions and rng.chance(0.5))
        voters = (
            [InitialVoter(i, *self.hosts[i].address, rng.uuid()) for i in ids] if options.dynamic else None
        )
        static = {i: self.hosts[i].address for i in ids}
        for host in self.hosts.values():
            if not options.dynamic:
                host.static_voters = VoterSet.from_static(LISTENER, static)
            self._format(host, voters if host.id in ids else None)
        self.broker_ids = sorted(self.hosts)[: options.broker_count]
        self.directories: dict[tuple[int, bytes], LogMirror] = {}  # also lost ones
        self.lost: set[ReplicaKey] = set()
        self.buried: set[ReplicaKey] = set()  # voters from before the loss of a majority: ignored
        self.ahead: set[tuple[int, bytes]] = set()  # directories that hold lost records as committed
        self.bootstrap_ports: dict[int, int] = {}  # in every host's settings, after all ports have changed
        self.processes: list[Process] = []  # all that ever ran
        self.mended = 0  # directories that were damaged, or ahead of the quorum, and formatted anew
        for host in self.hosts.values():
            self.directories[host.id, host.directory_id] = host.mirror

    def _format(self, host: Host, voters: list[InitialVoter] | None) -> None:
        dynamic = self.world.options.dynamic
        now_ms = host.clock.now_ms(self.world.schedule.now_us)
        host.directory_id = format_disk(
            host.disk,
            host.id,
            voters,
            self.world.rng("format", host.id, host.starts),
            dynamic=dynamic,
            metadata_version=self.world.options.metadata_version
            if self.world.options.controllers
            else LATEST_PRODUCTION,
            now_ms=now_ms,
        )

    # --- life ---

    def start(self, host: Host) -> bool:
        """Start a process on the host; returns false if its disk prevents that."""
        if host.process is not None:
            return True
        world = self.world
        host.is_off = False
        host.starts += 1
        host.clock.start(world.schedule.now_us)
        now_ms = host.clock.now_ms(world.schedule.now_us)
        try:
            files = Files(
                host.disk, host.id, world.options.segment_bytes, world.rng("files", host.id), now_ms
            )
            process = self._make_process(host, files)
        except (DiskFull, StorageFailure) as error:
            host.disk = host.disk.after_crash(everything_survives)
            host.data_disk = host.data_disk.after_crash(everything_survives)
            world.note("start failed", host.id, type(error).__name__)
            return False
        except SimulatedCrash:
            host.disk = host.disk.after_crash(host.rng.below)
            host.data_disk = host.data_disk.after_crash(everything_survives)
            return False
        except StorageError as error:
            if not host.damaged:
                world.checks.fail("D2", f"host {host.id} cannot open what it left behind: {error}")
            world.note("start refused for damage", host.id)
            host.disk.locked.clear()  # by the process that was refused
            self.mend_by_hand(host)
            return True
        if host.was_damaged and files.log.log_end > host.mirror.end:
            # A crash in the middle of a sync: its file cannot be read whole, and the sync has not been
            # counted.
            host.disk = host.disk.after_crash(everything_survives)  # and its lock is free
            self.mend_by_hand(host)
            return True
        host.process = process
        self.processes.append(process)
        world.network.hosts[host.address] = host.id
        world.checks.started(process)
        process.start()
        return True

    def _make_process(self, host: Host, files: Files) -> Process:
        world, config = self.world, self._config(host)
        if not world.options.controllers:
            return Process(world, host, config, files)
        process = ControllerProcess(world, host, config, files)
        if host.id in self.broker_ids:
            process.broker = BrokerSide(process)
        return process

    def _config(self, host: Host) -> RaftConfig:
        options = self.world.options
        others = [one.address for one in self.hosts.values() if one is not host]
        return RaftConfig(
            host.id,
            host.directory_id,
            CLUSTER_ID,
            (host.endpoint,),
            LISTENER,
            bootstrap_servers=tuple(others) if options.dynamic else (),
            election_timeout_ms=options.election_timeout_ms,
            fetch_timeout_ms=options.fetch_timeout_ms,
            fetch_max_bytes=options.fetch_max_bytes,
            fetch_snapshot_max_bytes=max(64, options.fetch_max_bytes // 4),
            auto_join=options.auto_join and options.dynamic,
            can_become_voter=True,
        )

    def _end(self, host: Host, *, silent: bool) -> None:
        process = host.process
        if process is not None:
            host.voters = process.core.voters
            process.ended = True
            process.executor.stop()
            host.process = None
            self.world.network.process_ended(process, silent=silent)
            self.world.workload.process_ended(process)
            self.world.readers.process_ended(process, silent=silent)
            self.world.traffic.process_ended(process, silent=silent)

    def kill(self, host: Host) -> None:
        """kill -9: written bytes survive, others are lost."""
        self._end(host, silent=False)
        # After a bit flip the checkers know the content only as far as it was synced.
        host.disk = host.disk.after_crash(
            nothing_unsynced_survives if host.was_damaged else everything_survives
        )
        host.data_disk = host.data_disk.after_crash(everything_survives)
        host.mirror.lose_unsynced()
        self._restart_later(host)

    def power_loss(self, host: Host) -> None:
        """A loss of power: no peer is notified, and unsynced bytes may be gone or torn."""
        self._end(host, silent=True)
        host.is_off = True
        host.disk = host.disk.after_crash(nothing_unsynced_survives if host.was_damaged else host.rng.below)
        host.data_disk = host.data_disk.after_crash(self.world.rng("data disk", host.id, host.starts).below)
        host.mirror.lose_unsynced()
        self._restart_later(host)

    def crashed(self, host: Host, how: str) -> None:
        """A crash at an effect or in a write, of the machine or only of the process."""
        self.world.note("crashed", host.id, how)
        if host.rng.chance(0.5):
            self.kill(host)
        else:
            self.power_loss(host)

    def failed(self, host: Host, error: StorageError) -> None:
        """End a process whose disk failed, as the daemon ends itself."""
        self.world.note("failed", host.id, type(error).__name__)
        if isinstance(error, CorruptStorage):
            self.world.checks.expect(
                bool(host.damaged), "D3", f"{host!r} finds damage where none is: {error}"
            )
            self.mend_by_hand(host)
        self.kill(host)

    def is_ahead(self, host: Host) -> bool:
        """Return whether its directory holds records as committed that the quorum has lost."""
        return (host.id, host.directory_id) in self.ahead

    def ended_ahead(self, host: Host) -> None:
        """Note that a process ended because the recovered quorum lacks records that it knows are
        committed.
        """
        self.world.note("ended ahead of the quorum", host.id)
        self.mend_by_hand(host)
        self.kill(host)

    def mend_by_hand(self, host: Host) -> None:
        """Format the directory anew, or discard what the daemon's log names."""
        delay_us = host.rng.between(100 * MS, 5_000 * MS)
        self.world.schedule.after(delay_us, self._format_anew, host, host.directory_id)

    def _format_anew(self, host: Host, directory_id: bytes) -> None:
        beyond_use = host.was_damaged or self.is_ahead(host)
        if host.directory_id == directory_id and beyond_use and not self.world.ending:
            self.mended += 1
            if host.process is not None:
                self.kill(host)
            if not host.was_damaged and host.rng.chance(0.5):
                is_ahead = discard_by_hand(host, self.world.committed)
                if is_ahead is not None:
                    self.world.note("records ahead discarded", host.id)
                    if not is_ahead:
                        self.ahead.discard((host.id, directory_id))
                    return
            which = "damaged directory" if host.was_damaged else "directory ahead"
            self.world.note(f"{which} formatted anew", host.id)
            self.wipe(host)

    def stopped(self, host: Host) -> None:
        """Handle the end of a graceful shutdown: close the log properly."""
        process = host.process
        assert process is not None
        try:
            process.close()
        except (StorageError, SimulatedCrash) as error:
            self.world.note("close failed", host.id, type(error).__name__)
        self.world.note("stopped", host.id)
        self.kill(host)

    def wipe(self, host: Host) -> None:
        """Replace the directory with a new one that may join."""
        self.renew(host)
        self.start(host)

    def renew(self, host: Host) -> None:
        """Do the same as `wipe` on a host on which nothing runs; it stays down."""
        self.lost.add(host.key)
        host.disk = MemoryDisk()
        host.starts += 1
        self._format(host, None)
        host.mirror = LogMirror()
        host.persisted = 0, -1
        host.has_voted, host.voters = False, NO_VOTERS
        host.was_damaged = False
        self.directories[host.id, host.directory_id] = host.mirror

    def replace_data_disk(self, host: Host) -> None:
        """Let a process end, and start again soon with an empty data disk."""
        if host.process is not None:
            self.kill(host)
        host.data_disk = MemoryDisk()
        host.data_disks += 1
        self.world.schedule.after(host.rng.between(1 * MS, 500 * MS), self._restart, host, host.starts)

    def _restart_later(self, host: Host) -> None:
        """A supervisor, or an operator, restarts it some time later."""
        rng = host.rng
        if self.world.healed or rng.chance(0.7):
            delay_us = (
                1 * MS if self.world.healed else rng.between(1 * MS, rng.choice((50, 2_000, 15_000)) * MS)
            )
            self.world.schedule.after(delay_us, self._restart, host, host.starts)

    def _restart(self, host: Host, starts: int) -> None:
        if host.process is None and host.starts == starts and not self.world.ending and not self.start(host):
            self._restart_later(host)

    # --- reading ---

    def alive(self) -> list[Host]:
        return [host for host in self.hosts.values() if host.process is not None]

    def leader(self) -> Process | None:
        """The live leader of the highest epoch."""
        best: Process | None = None
        for host in self.hosts.values():
            process = host.process
            if (
                process is not None
                and process.core.is_leader
                and (best is None or process.core.epoch > best.core.epoch)
            ):
                best = process
        return best

    def voter_sets(self) -> list[VoterSet]:
        """Every voter set in force at some replica, or when it last ran."""
        for host in self.hosts.values():
            if host.process is not None:
                host.voters = host.process.core.voters
        sets = [host.voters for host in self.hosts.values()]
        if self.buried:
            sets = [one for one in sets if not any(voter.key in self.buried for voter in one)]
        return sets

    def is_intact(self, voters: VoterSet, without: frozenset[ReplicaKey] = frozenset()) -> bool:
        """Return whether a majority of these voters still has its directory, at the address known to the
        others.
        """
        gone = self.lost | without
        left = sum(
            1
            for voter in voters
            if voter.key not in gone
            and self.hosts[voter.key.id].port
            in (voter.listeners[0].port, self.bootstrap_ports.get(voter.key.id))
        )
        return left * 2 > len(voters) or not len(voters)

    def __repr__(self) -> str:
        return f"<Cluster {len(self.alive())} of {len(self.hosts)} hosts up>"
