"""One run of one replica: the consensus core, its files, and its effects performed in their order.

What the daemon's runner does with a loop and a thread is done here with virtual time: an effect may be the
last one before a crash, a sync takes as long as the disk wants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

from kraftd.fetch.purgatory import Purgatory
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kraftd.raft import effects as raft
from kraftd.raft.config import RaftConfig
from kraftd.raft.core import RaftCore
from kraftd.raft.effects import Destination, Effect
from kraftd.raft.events import (
    AppendRequested,
    CommitAwaited,
    DeadlineReached,
    Event,
    KRaftVersionUpgradeRequested,
    RecordsSynced,
    RequestAbandoned,
    RequestReceived,
    ResignRequested,
    Started,
)
from kraftd.simulation.downloads import Downloads
from kraftd.simulation.files import Files
from kraftd.simulation.network import Link, Request
from kraftd.simulation.schedule import MS
from kraftd.simulation.snapshot_keeper import SnapshotKeeper
from kraftd.simulation.state import Metadata, Registers
from kraftd.storage.errors import CorruptStorage, DiskFull, StorageError
from kraftd.storage.memory_disk import SimulatedCrash
from kraftd.types import OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.simulation.cluster import Host
    from kraftd.simulation.workload import Call
    from kraftd.simulation.world import World

NEWEST = {
    "FetchRequest": 18,
    "VoteRequest": 2,
    "BeginQuorumEpochRequest": 1,
    "EndQuorumEpochRequest": 1,
    "FetchSnapshotRequest": 1,
    "ApiVersionsRequest": 4,
    "AddRaftVoterRequest": 1,
    "RemoveRaftVoterRequest": 0,
    "UpdateRaftVoterRequest": 0,
}
OLD = NEWEST | {"FetchRequest": 17, "VoteRequest": 1, "AddRaftVoterRequest": 0}

CODES: dict[type, int] = {}  # of event types, in the trace
RETRY_US = 500 * MS  # a full disk is tried again so often
LATE_US = 1_000 * MS  # a slow read of a snapshot's piece


class EffectCrash(BaseException):
    """The process ends right here, between two effects."""


class Process:
    """See the module. `ended` once it is gone; whatever still arrives for it then is nobody's."""

    def __init__(self, world: World, host: Host, config: RaftConfig, files: Files) -> None:
        self.world = world
        self.host = host
        self.id = host.id
        self.config = config
        self.files: Files = files
        self.speaks = OLD if host.is_old else NEWEST
        self.ended = False
        self.links: dict[Destination, Link] = {}
        self.incoming: list[Link] = []
        self.requests: dict[Any, None] = {}  # received, not answered
        self.state: Registers | Metadata = self._make_state()
        self.crash_after_effects: int | None = None
        self.shutdown_completed = False
        self.now_ms = 0
        self.led_before = -1  # the epoch in which this led when the step began
        self.disk_full = False  # a sync waits for room: nothing new is appended
        self.held: list[Effect] | None = None  # effects that wait for room on the disk
        self._put_off: list[Event] = []  # behind them
        self._armed_ms: int | None = None
        durable = files.storage.durable_state(host.static_voters)
        dice = world.dice("core", host.id, host.starts)
        self.core = RaftCore(config, durable, dice, Purgatory(), Purgatory())
        self.keeper = SnapshotKeeper(self)
        self.downloads = Downloads(self)
        self._perform: dict[type, Callable[[Any], None]] = {
            raft.PersistElection: self._persist_election,
            raft.AppendRecords: self._append,
            raft.SyncLog: self._sync,
            raft.TruncateLog: self._truncate,
            raft.ResetLog: self._reset,
            raft.Respond: self._respond,
            raft.RespondRecords: self._respond_records,
            raft.RespondSnapshot: self._respond_snapshot,
            raft.Send: self._send,
            raft.AppendCommitted: self._tell_workload,
            raft.AppendAborted: self._tell_workload,
            raft.AppendRefused: self._tell_workload,
            raft.AppendAccepted: self._tell_workload,
            raft.ShutdownCompleted: self._shut_down,
            raft.BeginSnapshot: self.downloads.begin,
            raft.WriteSnapshot: self.downloads.write,
            raft.FinishSnapshot: self.downloads.finish,
            raft.AbandonSnapshot: self.downloads.abandon,
        }

    def __repr__(self) -> str:
        return f"<Process {self.host.starts} of {self.core!r}>"

    def _make_state(self) -> Registers | Metadata:
        return Registers(self.files)

    # --- being driven ---

    def start(self) -> None:
        self.step(Started())
        self.keeper.start()

    def tell(self, event: Event) -> None:
        """Hand over an event, now or once a pause is over; not at all if the process is gone."""
        if self.ended:
            return
        resumes_us = self.host.paused_until_us
        if resumes_us > self.world.schedule.now_us:
            self.world.schedule.at(resumes_us, self.tell, event)
            return
        self.step(event)

    def link_closed(self, link: Link) -> None:
        """A connection to this process is gone, and with it whoever waits there for an answer."""
        for request in [one for one in self.requests if one.link is link]:
            self.tell(RequestAbandoned(request))

    def step(self, event: Event) -> None:
        """One event and its effects; the process may end on the way."""
        if self.held is not None:
            self._wait_behind(event)
            return
        world, core = self.world, self.core
        now_us = world.schedule.now_us
        now_ms = self.now_ms = self.host.clock.now_ms(now_us)
        kind = type(event)
        if kind is RequestReceived:
            if type(event.message) is ApiVersionsRequest:  # type: ignore[attr-defined]
                self._answer_api_versions(event.request_id)  # type: ignore[attr-defined]
                return
            self.requests[event.request_id] = None  # type: ignore[attr-defined]
        elif kind is RequestAbandoned:
            self.requests.pop(event.request_id, None)  # type: ignore[attr-defined]
        elif self.disk_full and kind in _WRITES:
            self._refuse_write(event)
            return
        checks = world.checks
        self.led_before = core.epoch if core.is_leader else -1
        if world.trace.tell is not None:
            world.trace.say(now_us, f"{self.id}: {event!r}")
        checks.before_step(self, event)
        effects = core.step(event, now_ms)
        code = CODES.get(kind)
        if code is None:
            code = CODES[kind] = code_of(kind)
        world.trace.step(
            now_us, self.id, code, core.epoch, core.log_end_offset, core.high_watermark, len(effects)
        )
        self._carry_out(effects)

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        """Effects in their order. On a full disk the first that cannot be done waits, and all behind it."""
        left = iter(effects)
        effect: Effect | None = None
        try:
            for effect in left:
                self._do(effect)
        except DiskFull as error:
            assert effect is not None
            self._hold([effect, *left], error)
            return
        except (SimulatedCrash, EffectCrash) as crash:
            self._cut_short()
            self.world.cluster.crashed(self.host, type(crash).__name__)
            return
        except StorageError as error:
            self.world.cluster.failed(self.host, error)
            return
        self._carried_out()

    def _cut_short(self) -> None:
        """A step ends before all of its effects are done."""

    def _carried_out(self) -> None:
        """All effects of a step are done."""
        self.world.checks.after_step(self)
        if self.shutdown_completed:
            self.world.cluster.stopped(self.host)
        else:
            self._look_at_the_clock()

    # --- a full disk, as the daemon's runner waits for room ---

    def _hold(self, left: list[Effect], error: DiskFull) -> None:
        self.world.note("held by a full disk", self.id)
        self.held = left
        self.world.schedule.after(RETRY_US, self._go_on)

    def _go_on(self) -> None:
        """Try again what was held, then take in what came meanwhile."""
        if self.asleep(self._go_on):
            return
        held, self.held = self.held, None
        assert held is not None
        try:
            self._perform[type(held[0])](held[0])  # the checkers have seen it
        except DiskFull as error:
            self._hold(held, error)
            return
        except SimulatedCrash as crash:
            self.world.cluster.crashed(self.host, type(crash).__name__)
            return
        except StorageError as error:
            self.world.cluster.failed(self.host, error)
            return
        self._carry_out(held[1:])
        if self.held is None:
            put_off, self._put_off = self._put_off, []
            for event in put_off:
                self.tell(event)
            self.tell(DeadlineReached())

    def _wait_behind(self, event: Event) -> None:
        """Keep what may not be forgotten until there is room. Whoever asks something is sent away."""
        if type(event) is RequestReceived:
            request = event.request_id
            if isinstance(request, Request):
                self.world.network.reset(request.link)
            else:
                self.world.workload.lost(self, cast("Call", request))
        elif type(event) in _ASKS:
            self._refuse_write(event)
        elif type(event) is not DeadlineReached:
            self._put_off.append(event)

    def _refuse_write(self, event: Any) -> None:
        self.world.trace.kinds["refused by a full disk"] += 1
        self._tell_workload(raft.AppendRefused(event.append_id, ErrorCode.NOT_CONTROLLER))

    def _disk_filled(self) -> None:
        """A sync found no room. The lead goes to a voter that has some, if there is another."""
        self.disk_full = True
        if self.core.is_leader and len(self.core.voters) > 1:
            self.step(ResignRequested(self.core.epoch))

    def _disk_has_room(self) -> None:
        self.disk_full = False

    def asleep(self, action: Callable[..., None], *arguments: Any) -> bool:
        """Whether the process is gone, or paused: then the action comes once it goes on."""
        resumes_us = self.host.paused_until_us
        if not self.ended and resumes_us > self.world.schedule.now_us:
            self.world.schedule.at(resumes_us, action, *arguments)
            return True
        return self.ended

    @property
    def waits_for_room(self) -> bool:
        """Whether the disk is full, as far as this process knows."""
        return self.disk_full or self.held is not None

    @property
    def next_offset(self) -> int:
        """Behind the log, and whatever it has been decided to append to it."""
        return self.core.log_end_offset

    @property
    def replayed_to(self) -> int:
        """How far the state machine has come that snapshots are made for."""
        return self.core.high_watermark

    def _due_ms(self) -> int | None:
        return self.core.deadline_ms()

    def _look_at_the_clock(self) -> None:
        deadline_ms = self._due_ms()
        if deadline_ms is not None and (self._armed_ms is None or deadline_ms < self._armed_ms):
            self._arm(deadline_ms)

    def _do(self, effect: Effect) -> None:
        if self.crash_after_effects is not None:
            if self.crash_after_effects == 0:
                raise EffectCrash
            self.crash_after_effects -= 1
        world = self.world
        if world.trace.tell is not None:
            world.trace.say(world.schedule.now_us, f"{self.id}:     {effect!r}")
        kind = type(effect)
        for check in world.checks.on_effect.get(kind, ()):
            check(self, effect)
        perform = self._perform.get(kind)
        if perform is not None:
            perform(effect)

    def _arm(self, deadline_ms: int) -> None:
        self._armed_ms = deadline_ms
        self.world.schedule.at(self.host.clock.when_us(deadline_ms), self._deadline, deadline_ms)

    def _deadline(self, deadline_ms: int) -> None:
        if self.ended or self._armed_ms != deadline_ms:
            return
        now_us = self.world.schedule.now_us
        if self.host.paused_until_us > now_us:
            self.world.schedule.at(self.host.paused_until_us, self._deadline, deadline_ms)
            return
        self._armed_ms = None
        due_ms = self._due_ms()
        if due_ms is not None and due_ms > self.host.clock.now_ms(now_us):
            self._arm(due_ms)
        else:
            self.step(DeadlineReached())

    # --- files ---

    def _persist_election(self, effect: raft.PersistElection) -> None:
        self.files.storage.persist_election(effect.state, effect.version)
        self.host.persisted = effect.state.leader_epoch, effect.state.voted_id

    def _append(self, effect: raft.AppendRecords) -> None:
        self.files.log.append(effect.data)

    def _sync(self, _: raft.SyncLog) -> None:
        self.world.schedule.after(self.host.sync_delay_us(), self._sync_now)

    def _sync_now(self, waited: bool = False) -> None:
        """The thread that syncs has its turn: what is written now is durable, and told a little later."""
        if self.asleep(self._sync_now, waited):
            return
        world = self.world
        try:
            end_offset = self.files.log.sync()
        except SimulatedCrash as crash:
            world.cluster.crashed(self.host, type(crash).__name__)
        except DiskFull:
            if not waited:
                world.schedule.after(self.host.told_delay_us(), self._tell_disk, True)
            world.schedule.after(RETRY_US, self._sync_now, True)
        except StorageError as error:
            world.cluster.failed(self.host, error)
        else:
            self.host.mirror.sync(end_offset)
            if waited:
                world.schedule.after(1, self._tell_disk, False)
            world.schedule.after(self.host.told_delay_us(), self.tell, RecordsSynced(end_offset))

    def _tell_disk(self, full: bool) -> None:
        if self.asleep(self._tell_disk, full):
            return
        self.world.note("disk filled" if full else "disk has room", self.id)
        if full:
            self._disk_filled()
        else:
            self._disk_has_room()

    def tidy(self) -> None:
        """Have the files deleted that the log does not need any more."""
        self.world.schedule.after(self.host.sync_delay_us(), self._tidy)

    def _tidy(self) -> None:
        if self.asleep(self._tidy):
            return
        try:
            self.host.mirror.sync(self.files.log.sync())
        except SimulatedCrash as crash:
            self.world.cluster.crashed(self.host, type(crash).__name__)
        except DiskFull:
            pass  # the next sync meets that too
        except StorageError as error:
            self.world.cluster.failed(self.host, error)

    def _truncate(self, effect: raft.TruncateLog) -> None:
        end = self.files.log.truncate_to(effect.end_offset)
        self.world.checks.expect(
            end == effect.end_offset,
            "S9",
            f"{self!r} truncates inside of a batch: to {effect.end_offset}, got {end}",
        )

    def _reset(self, effect: raft.ResetLog) -> None:
        self.files.download.reset_log(effect)

    # --- messages ---

    def _send(self, effect: raft.Send) -> None:
        self.world.network.send(self, effect)

    def _respond(self, effect: raft.Respond) -> None:
        self._answer(effect.request_id, effect.message)

    def _respond_records(self, effect: raft.RespondRecords) -> None:
        message: Any = effect.message
        try:
            data = self.files.log.read(effect.offset, effect.max_bytes, effect.end_offset)
        except CorruptStorage:
            self._hang_up(effect.request_id)
            return
        message.responses[0].partitions[0].records = data
        self._answer(effect.request_id, message)

    def _respond_snapshot(self, effect: raft.RespondSnapshot) -> None:
        self._when_read(self._respond_piece, effect)

    def _when_read(self, answer: Callable[[Any], None], effect: Any) -> None:
        """Pieces are read beside the loop: at once, or, where that is planned, after much else."""
        trap, schedule = self.host.read_trap, self.world.schedule
        if trap is None:
            answer(effect)
        else:
            self.host.read_trap = None
            schedule.after(1, trap, self)
            schedule.after(LATE_US, self._read_late, answer, effect)

    def _read_late(self, answer: Callable[[Any], None], effect: Any) -> None:
        if not self.asleep(self._read_late, answer, effect):
            answer(effect)

    def _respond_piece(self, effect: raft.RespondSnapshot) -> None:
        message: Any = effect.message
        data = self._read_snapshot(effect.snapshot_id, effect.position, effect.max_bytes)
        if data is None:
            self._hang_up(effect.request_id)
            return
        message.topics[0].partitions[0].unaligned_records = data
        self._answer(effect.request_id, message)

    def _read_snapshot(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> bytes | None:
        """A piece of a snapshot, None when it is not there any more."""
        self.files.storage.snapshot_reads[snapshot_id] = self.now_ms
        try:
            return self.files.storage.read_snapshot(snapshot_id, position, max_bytes)
        except FileNotFoundError:
            self.world.note("snapshot gone under a download", self.id)
            return None

    def _hang_up(self, request: Any) -> None:
        """What was asked for cannot be read: the connection is closed, and an error in the log."""
        if self.host.damaged:
            self.world.note("damage found by a fetch", self.id)
            self.world.cluster.mend_by_hand(self.host)
        self.requests.pop(request, None)
        if isinstance(request, Request):
            self.world.network.reset(request.link)
        else:
            self.world.workload.lost(self, request)

    def _answer(self, request: Any, message: Any) -> None:
        self.requests.pop(request, None)
        if isinstance(request, Request):
            self.world.network.answer(self, request, message)
        else:
            self.world.workload.answered(self, request, message)

    def _answer_api_versions(self, request: Request) -> None:
        low, high = self.config.min_kraft_version, self.config.max_kraft_version
        features = [SupportedFeatureKey("kraft.version", low, high)]
        self.world.network.answer(self, request, ApiVersionsResponse(supported_features=features))

    # --- the rest ---

    def _tell_workload(self, effect: Any) -> None:
        self.world.workload.append_settled(self, effect)

    def _shut_down(self, effect: raft.ShutdownCompleted) -> None:
        self.shutdown_completed = True


def code_of(kind: type) -> int:
    """The number of an event type in the trace."""
    return sum(kind.__name__.encode())


_WRITES = (AppendRequested, KRaftVersionUpgradeRequested)
_ASKS = (*_WRITES, CommitAwaited)
