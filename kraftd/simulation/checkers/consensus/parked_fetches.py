"""S19: every parked fetch completes once, in time, and as soon as there is something to answer (KIP-1166).

S20: replicas fetch without sessions (KIP-227): every fetch is a full one, and so is its answer.

S21: an observer gets committed records only.
"""

from __future__ import annotations

from typing import Any

from kraftd.ground.event import Event
from kraftd.messages.fetch_request import FetchRequest
from kraftd.messages.fetch_response import FetchResponse
from kraftd.raft import effects as raft
from kraftd.raft.events import RequestReceived
from kraftd.raft.quorum.voters import replica_key
from kraftd.simulation.checkers.checker import Checker, OnEffect
from kraftd.simulation.processes.process import Process
from kraftd.simulation.protocols import World
from kraftd.types import ReplicaKey


class _Parked:
    __slots__ = ("deadline_ms", "epoch", "high_watermark", "is_new", "offset", "replica")

    def __init__(self, message: Any, version: int, now_ms: int) -> None:
        partition = message.topics[0].partitions[0]
        self.deadline_ms = now_ms + message.max_wait_ms
        self.high_watermark = partition.high_watermark if version >= 18 else (1 << 63) - 1
        self.offset = partition.fetch_offset
        self.replica = replica_key(message.replica_state.replica_id, partition.replica_directory_id)
        self.epoch = -1
        self.is_new = True


class ParkedFetchChecker(Checker):
    """The parked fetches by process; they end with their process."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._parked: dict[Process, dict[Any, _Parked]] = {}

    def effects(self) -> dict[type, OnEffect]:
        return {
            raft.Respond: self.responding,
            raft.RespondRecords: self.responding,
            raft.RespondSnapshot: self.responding,
            raft.HighWatermarkMoved: self.moved,
            raft.Send: self.sending,
        }

    def before_step(self, process: Process, event: Event) -> None:
        if type(event) is RequestReceived and type(event.message) is FetchRequest:
            message: Any = event.message
            if message.topics and message.topics[0].partitions:
                parked = _Parked(message, event.version, process.now_ms)
                self._parked.setdefault(process, {})[event.request_id] = parked

    def responding(self, process: Process, effect: Any) -> None:
        request = effect.request_id
        if request not in process.requests:
            self.fail("S19", f"{process!r} answers {request!r}, which waits for no answer: {effect!r}")
        parked = self._parked.get(process)
        fetch = None if parked is None else parked.pop(request, None)
        if fetch is not None and type(effect) is raft.RespondRecords:
            self._check_committed(process, fetch.replica, effect)
        message = effect.message
        if type(message) is FetchResponse and message.session_id:
            self.fail("S20", f"{process!r} opens session {message.session_id} for {request!r}")

    def _check_committed(self, process: Process, replica: ReplicaKey, effect: raft.RespondRecords) -> None:
        core = process.core
        if effect.end_offset > core.high_watermark and not core.voters.has_voter(replica):
            self.fail(
                "S21",
                f"{process!r} gives {replica!r}, an observer, records up to {effect.end_offset}, "
                f"committed are those below {core.high_watermark}",
            )

    def sending(self, process: Process, effect: raft.Send) -> None:
        message = effect.message
        if type(message) is FetchRequest and (message.session_id or message.session_epoch != -1):
            self.fail("S20", f"{process!r} fetches in session {message.session_id}")

    def moved(self, process: Process, effect: raft.HighWatermarkMoved) -> None:
        for one in self._parked.get(process, {}).values():
            if not one.is_new:
                one.high_watermark = -2  # a fetch that still waits after this step was forgotten

    def after_step(self, process: Process) -> None:
        parked = self._parked.get(process)
        if not parked:
            return
        core, now_ms, requests = process.core, process.now_ms, process.requests
        deadline_ms = core.deadline_ms()
        for request in [one for one in parked if one not in requests]:
            del parked[request]  # abandoned with its connection
        for request, one in parked.items():
            if not core.is_leader or (one.epoch >= 0 and one.epoch != core.epoch):
                self.fail("S19", f"{request!r} is parked at {process!r}")
            if one.is_new:
                shown = self.world.checks.commits.shown_by_leader(core.epoch)
                if one.high_watermark < shown:
                    self.fail(
                        "S19",
                        f"{request!r} carries {one.high_watermark}, but is parked at {process!r} at {shown}",
                    )
                one.is_new, one.epoch = False, core.epoch
            if now_ms > one.deadline_ms:
                self.fail(
                    "S19", f"{request!r} waits since {now_ms - one.deadline_ms} ms too long at {process!r}"
                )
            if deadline_ms is None or deadline_ms > one.deadline_ms:
                self.fail(
                    "S19", f"{request!r} is due at {one.deadline_ms}, {process!r} polls at {deadline_ms}"
                )
            if one.high_watermark == -2:
                self.fail("S19", f"{request!r} was not answered with the new high watermark at {process!r}")
            end = core.log_end_offset if core.voters.has_voter(one.replica) else core.high_watermark
            if one.offset < end:
                self.fail("S19", f"{request!r} waits at {one.offset}, there is more at {process!r}")
