"""Protocols by which the parts of a world use it and each other, without importing the whole.

The world is made last (`world`), of parts that refer to it. Those below `cluster` know hosts and processes by
these protocols. Parts that are composed of others later are `Any` here: the importing module above knows
their type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from kraftd.ground.destination import Destination
from kraftd.ground.event import Event
from kraftd.host.disk_job import DiskJob
from kraftd.log.memory_disk import MemoryDisk
from kraftd.messages.voters_record import VotersRecord
from kraftd.raft.quorum.voters import VoterSet
from kraftd.simulation.options import Options
from kraftd.simulation.processes.files import Files
from kraftd.simulation.processes.mirror import LogMirror
from kraftd.simulation.randomness import SeededRandomness
from kraftd.simulation.schedule import Clock, Schedule
from kraftd.simulation.trace import Trace
from kraftd.types import OffsetAndEpoch, ReplicaKey


class World(Protocol):
    """One seed's world (`kraftd.simulation.world.World`)."""

    seed: int
    options: Options
    schedule: Schedule
    trace: Trace
    healed: bool
    ending: bool
    # What the checkers share.
    registry: dict[tuple[int, int], tuple[int, int, int]]
    committed: LogMirror
    epoch_starts: dict[int, int]
    last_voters_offset: dict[int, int]
    snapshots: dict[OffsetAndEpoch, tuple[int, VotersRecord | None, list[bytes]]]

    @property
    def reference(self) -> Any: ...

    @property
    def checks(self) -> Any: ...

    @property
    def controller_checks(self) -> Any: ...

    @property
    def cluster(self) -> Any: ...

    @property
    def network(self) -> Any: ...

    @property
    def workload(self) -> Any: ...

    @property
    def readers(self) -> Any: ...

    @property
    def traffic(self) -> Any: ...

    @property
    def liveness(self) -> Any: ...

    def rng(self, *name: object) -> SeededRandomness:
        """The stream of that name."""

    def note(self, kind: str, *what: Any) -> None:
        """A line of the trace, counted by its kind."""


class Host(Protocol):
    """One machine (`kraftd.simulation.cluster.Host`), as its processes see it."""

    id: int
    is_old: bool
    rng: SeededRandomness
    clock: Clock
    directory_id: bytes
    process: Any
    is_off: bool
    paused_until_us: int
    starts: int
    static_voters: VoterSet
    mirror: LogMirror
    disk: MemoryDisk
    data_disk: MemoryDisk  # of its broker
    data_disks: int
    persisted: tuple[int, int]
    sync_factor: int
    has_voted: bool
    downloaded: tuple[OffsetAndEpoch, int] | None
    download_trap: Callable[[Any], None] | None
    read_trap: Callable[[Any], None] | None
    was_damaged: bool

    @property
    def key(self) -> ReplicaKey: ...

    @property
    def damaged(self) -> dict[str, int]: ...

    def sync_delay_us(self) -> int: ...

    def callback_delay_us(self) -> int: ...

    def spring_snapshot_trap(self) -> None: ...


class Process(Protocol):
    """One run of a replica (`processes.process.Process`), as its ports and connections see it."""

    id: int
    files: Files
    speaks: dict[str, int]
    ended: bool
    links: dict[Destination, Any]
    incoming: list[Any]

    @property
    def world(self) -> World: ...

    @property
    def host(self) -> Host: ...

    @property
    def executor(self) -> Any: ...

    @property
    def broker(self) -> Any: ...

    def deliver(self, event: Event) -> None: ...

    def link_closed(self, link: Any) -> None: ...

    def asleep(self, action: Callable[..., None], *arguments: Any) -> bool: ...

    def guarded(self, action: Callable[..., object], *arguments: Any) -> None: ...

    def begin_job(self, job: DiskJob[Any]) -> None: ...

    def end_job(self, job: DiskJob[Any]) -> None: ...

    def note_what_is_synced(self) -> None: ...
