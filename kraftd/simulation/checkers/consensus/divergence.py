"""S18: a log that diverges from the leader's is repaired in at most as many rounds as it has epochs."""

from __future__ import annotations

from typing import Any

from kraftd.ground.event import Event
from kraftd.messages.fetch_response import FetchResponse
from kraftd.raft.events import ResponseReceived
from kraftd.raft.transitions import State
from kraftd.simulation.checkers.checker import Checker
from kraftd.simulation.processes.process import Process
from kraftd.simulation.protocols import World


class _Rounds:
    __slots__ = ("allowed", "count", "epoch")

    def __init__(self, epoch: int, allowed: int) -> None:
        self.epoch = epoch
        self.allowed = allowed
        self.count = 0


class DivergenceChecker(Checker):
    """A round is a fetch from the epoch's leader that is answered with a diverging epoch."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._rounds: dict[Process, _Rounds] = {}

    def before_step(self, process: Process, event: Event) -> None:
        if type(event) is not ResponseReceived or type(event.message) is not FetchResponse:
            return
        message: Any = event.message
        core = process.core
        if event.send_id not in core._replica.connections._sent or core.state is not State.FOLLOWER:
            return  # given up, or sent in another state: the answer is ignored
        if message.error_code or not message.responses or message.responses[0].partitions[0].error_code:
            return
        partition = message.responses[0].partitions[0]
        if partition.diverging_epoch.epoch < 0:
            self._rounds.pop(process, None)
            return
        if partition.current_leader.leader_epoch != core.epoch:
            return
        rounds = self._rounds.get(process)
        if rounds is None or rounds.epoch != core.epoch:
            epochs = {entry.epoch for entry in process.host.mirror.entries}
            rounds = self._rounds[process] = _Rounds(core.epoch, max(1, len(epochs)))
        rounds.count += 1
        self.world.trace.kinds["divergence round"] += 1
        if rounds.count > 1:
            self.world.trace.kinds["divergence of several rounds"] += 1
        if rounds.count > rounds.allowed:
            self.fail("S18", f"{process!r} has had {rounds.count} rounds, {rounds.allowed} would do")
