"""One run of one replica: the consensus core, its files, and its effects performed in their order.

What the daemon's runner does with a loop and a thread is done here with virtual time: an effect may be the
last one before a crash, a sync takes as long as the disk wants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kraftd.fetch.purgatory import Purgatory
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kraftd.raft import effects as raft
from kraftd.raft.config import RaftConfig
from kraftd.raft.core import RaftCore
from kraftd.raft.effects import Destination, Effect
from kraftd.raft.events import (
    DeadlineReached,
    Event,
    LogStartMoved,
    RecordsSynced,
    RequestAbandoned,
    RequestReceived,
    SnapshotTaken,
    Started,
)
from kraftd.simulation.files import Files
from kraftd.simulation.network import Link, Request
from kraftd.simulation.state import Metadata, Registers
from kraftd.storage.errors import StorageError
from kraftd.storage.memory_disk import SimulatedCrash
from kraftd.types import OffsetAndEpoch

if TYPE_CHECKING:
    from kraftd.simulation.cluster import Host
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


class EffectCrash(BaseException):
    """The process ends right here, between two effects."""


class Process:
    """See the module. `ended` once it is gone; whatever still arrives for it then is nobody's."""

    def __init__(self, world: World, host: Host, config: RaftConfig, files: Files) -> None:
        self.world = world
        self.host = host
        self.id = host.id
        self.config = config
        self.files = files
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
        self._armed_ms: int | None = None
        durable = files.storage.durable_state(host.static_voters)
        dice = world.dice("core", host.id, host.starts)
        self.core = RaftCore(config, durable, dice, Purgatory(), Purgatory())
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
            raft.BeginSnapshot: self._begin_snapshot,
            raft.WriteSnapshot: self._write_snapshot,
            raft.FinishSnapshot: self._finish_snapshot,
            raft.AbandonSnapshot: self._abandon_snapshot,
        }

    def __repr__(self) -> str:
        return f"<Process {self.host.starts} of {self.core!r}>"

    def _make_state(self) -> Registers | Metadata:
        return Registers(self.files)

    # --- being driven ---

    def start(self) -> None:
        self.step(Started())

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
        try:
            for effect in effects:
                self._do(effect)
        except (SimulatedCrash, EffectCrash) as crash:
            world.cluster.crashed(self.host, type(crash).__name__)
            return
        except StorageError as error:
            world.cluster.failed(self.host, error)
            return
        checks.after_step(self)
        if self.shutdown_completed:
            world.cluster.stopped(self.host)
            return
        self._look_at_the_clock()

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

    def _sync_now(self) -> None:
        """The thread that syncs has its turn: what is written now is durable, and told a little later."""
        if self.ended:
            return
        if self.host.paused_until_us > self.world.schedule.now_us:
            self.world.schedule.at(self.host.paused_until_us, self._sync_now)
            return
        try:
            end_offset = self.files.log.sync()
        except SimulatedCrash as crash:
            self.world.cluster.crashed(self.host, type(crash).__name__)
        except StorageError as error:
            self.world.cluster.failed(self.host, error)
        else:
            self.host.mirror.sync(end_offset)
            self.world.schedule.after(self.host.told_delay_us(), self.tell, RecordsSynced(end_offset))

    def _truncate(self, effect: raft.TruncateLog) -> None:
        end = self.files.log.truncate_to(effect.end_offset)
        self.world.checks.expect(
            end == effect.end_offset,
            "S9",
            f"{self!r} truncates inside of a batch: to {effect.end_offset}, got {end}",
        )

    def _reset(self, effect: raft.ResetLog) -> None:
        self.files.download.reset_log(effect)

    def _begin_snapshot(self, effect: raft.BeginSnapshot) -> None:
        self.files.begin_snapshot(effect)

    def _write_snapshot(self, effect: raft.WriteSnapshot) -> None:
        self.files.download.write(effect)

    def _finish_snapshot(self, effect: raft.FinishSnapshot) -> None:
        self.world.schedule.after(self.host.sync_delay_us(), self._freeze, effect)

    def _freeze(self, effect: raft.FinishSnapshot) -> None:
        files = self.files
        if self.ended or files.downloading != effect.snapshot_id:
            return  # given up meanwhile
        try:
            finished = files.download.finish(effect)
            files.download.named(finished)
        except SimulatedCrash as crash:
            self.world.cluster.crashed(self.host, type(crash).__name__)
        except StorageError as error:
            self.world.cluster.failed(self.host, error)
        else:
            files.downloading = None
            self.world.checks.snapshot_named(self, effect.snapshot_id)
            self.tell(finished)

    def _abandon_snapshot(self, effect: raft.AbandonSnapshot) -> None:
        self.files.abandon_snapshot(effect)

    # --- messages ---

    def _send(self, effect: raft.Send) -> None:
        self.world.network.send(self, effect)

    def _respond(self, effect: raft.Respond) -> None:
        self._answer(effect.request_id, effect.message)

    def _respond_records(self, effect: raft.RespondRecords) -> None:
        message: Any = effect.message
        data = self.files.log.read(effect.offset, effect.max_bytes, effect.end_offset)
        message.responses[0].partitions[0].records = data
        self._answer(effect.request_id, message)

    def _respond_snapshot(self, effect: raft.RespondSnapshot) -> None:
        message: Any = effect.message
        data = self.files.storage.read_snapshot(effect.snapshot_id, effect.position, effect.max_bytes)
        message.topics[0].partitions[0].unaligned_records = data
        self._answer(effect.request_id, message)

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

    def take_snapshot(self, *, then_clean: bool) -> bool:
        """A snapshot of all that is committed here; the log before it may go. False when there is none."""
        core, log = self.core, self.files.log
        end = core.high_watermark
        latest = log.latest_snapshot
        if end <= log.log_start or (latest is not None and latest.offset >= end):
            return False
        epoch = self.host.mirror.epoch_before(end)
        if epoch is None:
            return False
        self.state.catch_up(end)
        snapshot_id = OffsetAndEpoch(end, epoch)
        values = self.state.values()
        voters, kraft_version = core.voters_at(end - 1), core.kraft_version_at(end - 1)
        try:
            size_bytes = self.files.take_snapshot(snapshot_id, values, kraft_version, voters, self.now_ms)
            self.world.checks.snapshot_named(self, snapshot_id)
            self.step(SnapshotTaken(snapshot_id, size_bytes))
            if then_clean and not self.ended:
                log.delete_before_snapshot(snapshot_id)
                self.host.mirror.start_at(snapshot_id.offset)
                self.step(LogStartMoved(snapshot_id.offset))
        except SimulatedCrash as crash:
            self.world.cluster.crashed(self.host, type(crash).__name__)
        except StorageError as error:
            self.world.cluster.failed(self.host, error)
        return True


def code_of(kind: type) -> int:
    """The number of an event type in the trace."""
    return sum(kind.__name__.encode())
