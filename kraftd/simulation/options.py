"""The options of a world, drawn from the seed, so that seeds try different corners (swarm testing)."""

from __future__ import annotations

from msgspec import Struct

from kraftd.host.upkeep.retention import RetentionRules
from kraftd.host.upkeep.snapshot_keeper import KeeperSettings
from kraftd.metadata.metadata_version import LATEST_PRODUCTION
from kraftd.named_tuple import NamedTuple
from kraftd.simulation.randomness import SeededRandomness
from kraftd.simulation.schedule import MS, SECOND

FAULTS = (
    "kill",
    "power loss",
    "restart",
    "stop gracefully",
    "pause",
    "partition",
    "one-way partition",
    "bridge",
    "isolate leader",
    "cut link",
    "heal",
    "reset connections",
    "lose messages",
    "delay messages",
    "crash at effect",
    "crash in write",
    "slow sync",
    "failing sync",
    "full disk",
    "make room",
    "clock jump",
    "move port",
    "wipe directory",
    "roll back directory",
    "interrupt download",
    "crash in snapshot",
    "damage checkpoint",
    "damage segment",
)
DATA_FAULTS = (  # of brokers' log directories, in worlds with brokers only
    "crash in data write",
    "full data disk",
    "failing data directory",
    "damage data segment",
)
REPLICA_FAULTS = (  # in worlds whose partitions have several replicas only
    "reboot without data disk",
)
LOADS = (
    "compaction",
    "consumer groups",
    "share groups",
)  # of brokers, besides producers, transactions and classic groups
ACTS = (
    "append",
    "read",
    "client fetch",
    "add voter",
    "remove voter",
    "upgrade",
    "snapshot",
    "stranger",
    "resign",
    "describe",
)
ADMIN_ACTS = (  # in worlds with controllers only
    "create topic",
    "delete topic",
    "alter configs",
    "set cluster config",
    "describe configs",
    "alter partition",
    "producer ids",
    "broker restarts",
    "broker shuts down",
    "stale heartbeat",
    "upgrade metadata.version",
    "transaction",
    "heartbeat",
    "create acl",
    "delete acl",
    "set user",
    "delete user",
    "create token",
    "expire token",
)
# Events that acts and faults are to cause.
SNAPSHOT_TIMEOUT_MS = 8_000
CLEAN_INTERVAL_MS = 5_000
RETRY_SNAPSHOT_MS = 2_000
LAG_MAX_MS = 10_000  # some replicas of a world are cut off for longer, but not most

OUTCOMES = (
    "access changed",
    "token made",
    "token expired",
    "move all ports",
    "voter added",
    "voter removed",
    "voter gets its copy back",
    "replica went back",
    "voters changed",
    "snapshot loaded",
    "crashed",
    "failed",
    "stopped",
    "topic created",
    "topic deleted",
    "config read",
    "isr altered",
    "broker registered",
    "producer ids allocated",
    "snapshot due on demand",
    "snapshot due by bytes",
    "snapshot due by time",
    "snapshot unchanged",
    "snapshot transaction",
    "snapshot made",
    "snapshot damaged",
    "snapshot set aside",
    "crash planned in a snapshot",
    "log start moved",
    "download begun",
    "download finished",
    "download given up",
    "download goes on",
    "download goes on after a restart",
    "download interrupted: kill",
    "download interrupted: power loss",
    "download interrupted: crash",
    "download interrupted: reset",
    "download interrupted: leader killed",
    "download interrupted: leader resigns",
    "download interrupted: snapshot deleted",
    "snapshot gone under a download",
    "download waits for room",
    "leader kept waiting by a slow disk",
    "snapshot writer killed",
    "start failed",
    "held by a full disk",
    "disk filled",
    "disk has room",
    "refused by a full disk",
    "damage found by a scrub",
    "start refused for damage",
    "damaged directory formatted anew",
    "divergence of several rounds",
    "one link broken",
    "broker was let go",
    "stale epoch refused",
    "metadata.version upgraded",
    "transaction committed",
    "transaction aborted by the next leader",
    "session begun",
    "session not found",
    "no room for a session",
    "session fetch answered",
    "session fetch brought records",
    "session fetch given up",
    "reader behind the log start",
)


BROKER_OUTCOMES = (  # in worlds with brokers only
    "records acknowledged",
    "records consumed",
    "records refused by a disk",
    "records lost with the power",
    "damaged records found",
    "damaged records refused",
    "partitions assigned",
    "offsets committed",
    "member leaves",
    "member stays away",
    "topic of records deleted",
)
LOAD_OUTCOMES = (  # in worlds with that load only
    "partitions of a consumer group assigned",
    "partition taken from a fenced member",
    "records of a share group acquired",
    "records of a share group acknowledged",
    "partition of a share group delivered",
    "compacted log checked",
    "records compacted away",
)
REPLICA_OUTCOMES = (  # in worlds whose partitions have several replicas only
    "isr shrank",
    "isr grew",
    "leader moved",
    "replicas reassigned",
    "log truncated to its leader's",
    "isr change delayed",
)


class Options(NamedTuple):
    """One world. Probabilities are per message; times in the unit that they name."""

    voter_count: int
    observer_count: int
    dynamic: bool
    auto_join: bool
    safety_us: int
    delay_us: tuple[int, int]
    slow_chance: float
    loss: float
    duplication: float
    keeps_cut_messages: bool
    sync_us: tuple[int, int]
    faults: tuple[str, ...]
    fault_gap_us: int
    act_gap_us: int
    clock_skew_ms: int
    clock_rate_ppm: int
    election_timeout_ms: int
    fetch_timeout_ms: int
    fetch_max_bytes: int
    old_versions: bool
    segment_bytes: int
    controllers: bool
    snapshot_bytes: int
    snapshot_interval_ms: int
    snapshot_ratio: float
    snapshot_kept_after_read_ms: int
    retention_bytes: int
    retention_ms: int
    scrub_interval_ms: int
    metadata_version: int
    quiet_us: int  # how long the world must be quiet at rest
    shutdown_ms: int
    reader_count: int  # consumers with fetch sessions
    reader_gap_us: int
    reader_loss: float
    session_slots: int
    broker_count: int  # combined nodes among the hosts, the first ones
    produce_gap_us: int
    replica_count: int  # of brokers' partitions, if there are as many brokers
    loads: tuple[str, ...]  # some of LOADS

    def __repr__(self) -> str:
        kind = ("dynamic" if self.dynamic else "static") + (" controllers," if self.controllers else "")
        brokers = f"{self.broker_count} brokers, " if self.broker_count else ""
        if self.replica_count > 1:
            brokers += f"{self.replica_count} replicas, "
        if self.loads:
            brokers += f"{' and '.join(self.loads)}, "
        return (
            f"<{self.voter_count} {kind} voters, {self.observer_count} observers, {brokers}"
            f"{self.safety_us / SECOND:g} s, faults: {', '.join(self.faults)}>"
        )


class WorldKind(Struct, frozen=True):
    """What is asked of the world of a seed.

    A `short` one has shorter phases with as many events per second. One with `brokers` has controllers and
    brokers, and with `loads`, some of LOADS, these instead of those that it draws.
    """

    short: bool = False
    brokers: bool = False
    loads: tuple[str, ...] = ()


ANY = WorldKind()
SHORT = WorldKind(short=True)


def draw_options(seed: int, kind: WorldKind = ANY) -> Options:
    """The options of a seed's world."""
    options = _with_brokers(seed, _draw(seed), kind.loads) if kind.brokers else _draw(seed)
    return (
        options._replace(safety_us=options.safety_us // 4, quiet_us=3 * SECOND, shutdown_ms=1_500)
        if kind.short
        else options
    )


def _with_brokers(seed: int, options: Options, loads: tuple[str, ...]) -> Options:
    rng = SeededRandomness(seed, "options of brokers")
    chosen = rng.sample(DATA_FAULTS, rng.choice((1, 2, len(DATA_FAULTS))))
    options = options._replace(
        controllers=True,
        broker_count=rng.choice((1, 2, 3)),
        produce_gap_us=rng.choice((20 * MS, 100 * MS, 500 * MS)),
        faults=tuple(sorted({*options.faults, *chosen, "kill", "power loss"})),
        loads=loads or _draw_loads(SeededRandomness(seed, "loads")),
    )
    if options.loads:
        options = options._replace(metadata_version=LATEST_PRODUCTION)  # which has the features of the loads
    return _with_replicas(SeededRandomness(seed, "options of replicas"), options)


def _draw_loads(rng: SeededRandomness) -> tuple[str, ...]:
    return tuple(sorted(rng.sample(LOADS, rng.choice((0, 1, len(LOADS))))))


def _with_replicas(rng: SeededRandomness, options: Options) -> Options:
    """Half of the worlds have replicated partitions; there no bit flips in a log, for others have it too."""
    count = rng.choice((1, 1, 2, 3))
    if count == 1:
        return options
    chosen = rng.sample(REPLICA_FAULTS, rng.choice((0, 1)))
    return options._replace(
        voter_count=max(count, options.voter_count),
        broker_count=max(count, options.broker_count),
        replica_count=count,
        faults=tuple(sorted({*options.faults, *chosen} - {"damage data segment"})),
    )


def _draw(seed: int) -> Options:
    rng = SeededRandomness(seed, "options")
    voter_count = rng.choice((1, 2, 3, 3, 3, 3, 4, 5, 5, 7))
    count = rng.choice((3, 6, 10, len(FAULTS)))
    faults = sorted({"restart", "heal", "make room", *rng.sample(FAULTS, count)})
    low_us = rng.choice((50, 200, 1 * MS, 5 * MS))
    sync_low_us = rng.choice((50, 300, 2 * MS))
    return Options(
        voter_count=voter_count,
        observer_count=rng.choice((0, 0, 1, 1, 2, 5)),
        dynamic=rng.chance(0.65),
        auto_join=rng.chance(0.3),
        safety_us=rng.choice((30, 60, 90)) * SECOND,
        delay_us=(low_us, low_us * rng.choice((1, 3, 20))),
        slow_chance=rng.choice((0.0, 0.0, 0.01, 0.1)),
        loss=rng.choice((0.0, 0.0, 0.01, 0.1)),
        duplication=rng.choice((0.0, 0.0, 0.02, 0.2)),
        keeps_cut_messages=rng.chance(0.5),
        sync_us=(sync_low_us, sync_low_us * rng.choice((1, 4, 50))),
        faults=tuple(faults),
        fault_gap_us=rng.choice((200 * MS, 800 * MS, 2 * SECOND, 5 * SECOND)),
        act_gap_us=rng.choice((10 * MS, 50 * MS, 300 * MS)),
        clock_skew_ms=rng.choice((0, 0, 50, 3_600_000)),
        clock_rate_ppm=rng.choice((0, 0, 500, 50_000)),
        election_timeout_ms=rng.choice((100, 1000, 1000)),
        fetch_timeout_ms=rng.choice((1000, 2000, 2000)),  # above the 500 ms that fetches are parked
        fetch_max_bytes=rng.choice((200, 2_000, 1 << 20)),
        old_versions=rng.chance(0.15),
        segment_bytes=rng.choice((2_000, 20_000, 1 << 30)),
        controllers=rng.chance(0.25),
        snapshot_bytes=rng.choice((1_000, 4_000, 30_000, 1 << 30)),
        snapshot_interval_ms=rng.choice((0, 2_000, 15_000)),
        snapshot_ratio=rng.choice((0.0, 0.0, 0.2, 0.9)),
        snapshot_kept_after_read_ms=rng.choice((0, 5_000, 60_000)),
        retention_bytes=rng.choice((-1, 1_000, 10_000)),
        retention_ms=rng.choice((-1, -1, 3_000)),
        scrub_interval_ms=rng.choice((0, 5_000, 20_000)),
        metadata_version=rng.choice((30, 30, 30, 29, 22, 16, 13, 7)),
        quiet_us=8 * SECOND,
        shutdown_ms=5_000,
        reader_count=rng.choice((0, 0, 0, 0, 0, 0, 1, 3)),
        reader_gap_us=rng.choice((100 * MS, 500 * MS, 2 * SECOND)),
        reader_loss=rng.choice((0.0, 0.02, 0.2)),
        session_slots=rng.choice((1, 2, 1_000)),
        broker_count=0,
        produce_gap_us=100 * MS,
        replica_count=1,
        loads=(),
    )


def keeper_settings(options: Options) -> KeeperSettings:
    """The snapshot settings of a world's replicas."""
    return KeeperSettings(
        max_new_record_bytes=options.snapshot_bytes,
        max_interval_ms=options.snapshot_interval_ms,
        min_changed_ratio=options.snapshot_ratio,
        timeout_ms=SNAPSHOT_TIMEOUT_MS,
        scrub_interval_ms=options.scrub_interval_ms,
        rules=RetentionRules(
            options.retention_bytes, options.retention_ms, options.snapshot_kept_after_read_ms, LAG_MAX_MS
        ),
        clean_interval_ms=CLEAN_INTERVAL_MS,
        retry_ms=RETRY_SNAPSHOT_MS,
    )
