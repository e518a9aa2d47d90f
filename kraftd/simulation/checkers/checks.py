"""All checkers of a world, and the calls to them."""

from __future__ import annotations

from typing import NoReturn

from kraftd.ground.event import Event
from kraftd.simulation.checkers.checker import OnEffect, Violation
from kraftd.simulation.checkers.consensus.commits import CommitChecker
from kraftd.simulation.checkers.consensus.divergence import DivergenceChecker
from kraftd.simulation.checkers.consensus.elections import ElectionChecker
from kraftd.simulation.checkers.consensus.logs import LogChecker
from kraftd.simulation.checkers.consensus.membership import MembershipChecker
from kraftd.simulation.checkers.consensus.parked_appends import ParkedAppendChecker
from kraftd.simulation.checkers.consensus.parked_fetches import ParkedFetchChecker
from kraftd.simulation.checkers.consensus.snapshots import SnapshotChecker
from kraftd.simulation.checkers.consensus.truncations import TruncationChecker
from kraftd.simulation.checkers.consensus.went_back import WentBackChecker
from kraftd.simulation.checkers.wall_clock import WallClockChecker
from kraftd.simulation.processes.process import Process
from kraftd.simulation.protocols import Host, World
from kraftd.types import OffsetAndEpoch


class Checks:
    """The checkers of one world, called by processes and cluster."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.logs = LogChecker(world)
        self.commits = CommitChecker(world)
        self.elections = ElectionChecker(world)
        self.membership = MembershipChecker(world)
        self.parked = ParkedFetchChecker(world)
        self.appends = ParkedAppendChecker(world)
        self.rounds = DivergenceChecker(world)
        self.snapshots = SnapshotChecker(world)
        self.wall_clock = WallClockChecker(world)
        self.went_back = WentBackChecker(world)
        self.truncations = TruncationChecker(world)
        self.of_votes = frozenset(self.elections.effects().values())
        self.on_effect: dict[type, list[OnEffect]] = {}
        # The order matters: commits are judged by the content of the logs.
        for checker in (
            self.snapshots,
            self.membership,
            self.logs,
            self.truncations,
            self.elections,
            self.parked,
            self.appends,
            self.rounds,
            self.wall_clock,
            self.commits,
            self.went_back,  # by then what is counted is on the disks
        ):
            for kind, check in checker.effects().items():
                self.on_effect.setdefault(kind, []).append(check)

    def fail(self, invariant: str, text: str) -> NoReturn:
        raise Violation(invariant, text)

    def expect(self, holds: bool, invariant: str, text: str) -> None:
        if not holds:
            raise Violation(invariant, text)

    def started(self, process: Process) -> None:
        """Note that a process is about to take its first step, with the state found on its disk."""
        self.logs.started(process)
        self.elections.started(process)
        self.commits.started(process)
        self.snapshots.log_start(process)

    def restored(self, host: Host) -> None:
        """Note that an old copy of this directory was put back: it has forgotten what came after."""
        self.elections.restored(host)
        self.commits.restored(host)

    def before_step(self, process: Process, event: Event) -> None:
        self.wall_clock.before_step(process, event)
        self.parked.before_step(process, event)
        self.elections.before_step(process, event)
        self.rounds.before_step(process, event)
        self.went_back.before_step(process, event)

    def after_step(self, process: Process) -> None:
        self.elections.after_step(process)
        self.went_back.after_step(process)
        self.commits.after_step(process)
        self.parked.after_step(process)
        self.appends.after_step(process)

    def snapshot_named(self, process: Process, snapshot_id: OffsetAndEpoch) -> None:
        self.snapshots.named(process, snapshot_id)

    def log_start_moved(self, process: Process) -> None:
        self.snapshots.log_start_moved(process)

    def scrubbed(self, process: Process, found: set[str]) -> None:
        self.snapshots.scrubbed(process, found)

    def __repr__(self) -> str:
        return f"<Checks, {self.commits!r}>"
