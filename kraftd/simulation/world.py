"""A world: hosts, network, faults and work for one seed; a safety phase, then a healed one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kraftd.messages.voters_record import VotersRecord
from kraftd.raft import effects as raft
from kraftd.raft.replica import ConsensusBroken
from kraftd.raft.transitions import IllegalTransition
from kraftd.simulation.brokers.traffic import Traffic
from kraftd.simulation.checkers.checker import Violation
from kraftd.simulation.checkers.checks import Checks
from kraftd.simulation.checkers.control.reference import Reference
from kraftd.simulation.checkers.control.standby import StandbyChecker
from kraftd.simulation.checkers.liveness import Liveness
from kraftd.simulation.cluster import Cluster
from kraftd.simulation.faults.nemesis import Fault, Nemesis, plan_faults
from kraftd.simulation.load.admin import AdminWorkload
from kraftd.simulation.load.readers import Readers
from kraftd.simulation.load.workload import Workload
from kraftd.simulation.options import ANY, Options, WorldKind, draw_options
from kraftd.simulation.processes.mirror import LogMirror
from kraftd.simulation.processes.network import Network
from kraftd.simulation.randomness import SeededRandomness
from kraftd.simulation.schedule import Schedule
from kraftd.simulation.trace import Trace
from kraftd.types import OffsetAndEpoch


class World:
    """One seed's world. `run` it once.

    `faults` replaces the planned faults (shrinking), `options` those that the seed draws for a world of its
    `kind`; `echo` receives the trace as text, line by line.
    """

    def __init__(
        self,
        seed: int,
        *,
        options: Options | None = None,
        faults: Sequence[Fault] | None = None,
        echo: Callable[[str], None] | None = None,
        kind: WorldKind = ANY,
    ) -> None:
        self.seed = seed
        self.options = options or draw_options(seed, kind)
        self.schedule = Schedule()
        self.trace = Trace(echo)
        self.healed = False
        self.ending = False
        # What all checkers share.
        self.registry: dict[tuple[int, int], tuple[int, int, int]] = {}
        self.committed = LogMirror()
        self.epoch_starts: dict[int, int] = {}
        self.last_voters_offset: dict[int, int] = {}
        self.snapshots: dict[OffsetAndEpoch, tuple[int, VotersRecord | None, list[bytes]]] = {}
        self.reference = Reference(self)
        self.checks = Checks(self)
        self.cluster = Cluster(self)
        self.network = Network(self)
        self.workload = AdminWorkload(self) if self.options.controllers else Workload(self)
        self.readers = Readers(self)
        self.traffic = Traffic(self)
        self.faults = list(plan_faults(self)) if faults is None else list(faults)
        self.nemesis = Nemesis(self)
        self.liveness = Liveness(self)
        self.controller_checks = StandbyChecker(self)
        if self.options.controllers:
            self.checks.on_effect[raft.AppendRecords].insert(0, self.controller_checks.appending)

    def rng(self, *name: object) -> SeededRandomness:
        """The stream of that name."""
        return SeededRandomness(self.seed, *name)

    def note(self, kind: str, *what: Any) -> None:
        self.trace.note(self.schedule.now_us, kind, *what)

    def run(self) -> None:
        """Both phases. Raises Violation."""
        try:
            self._run()
        except (ConsensusBroken, IllegalTransition) as error:
            raise Violation("core", f"{type(error).__name__}: {error}") from error
        except Violation:
            raise
        except Exception as error:
            raise Violation("error", f"{type(error).__name__}: {error}") from error

    def _run(self) -> None:
        self.begin()
        self.heal()
        self.liveness.run()

    def begin(self) -> None:
        """The safety phase."""
        schedule = self.schedule
        for host in self.cluster.hosts.values():
            self.cluster.start(host)
        for fault in self.faults:
            schedule.at(fault.at_us, self.nemesis.act, fault)
        self.workload.start()
        self.readers.start()
        self.traffic.start()
        schedule.run_until(self.options.safety_us)

    def heal(self) -> None:
        """End all faults: everything is up and connected, with space on its disk."""
        self.healed = True
        self.note("healed")
        self.workload.stop()
        self.network.be_calm()
        for host in self.cluster.hosts.values():
            self.nemesis.mend(host)
            process = host.process
            if process is not None and process.broker is not None and process.broker.logs.directories.offline:
                self.cluster.kill(host)  # an operator has repaired a disk of it
            self.cluster.start(host)
        # A frozen process wakes at its planned time, with all that arrived meanwhile.
        self.schedule.run_until(max(host.paused_until_us for host in self.cluster.hosts.values()))

    def take_apart(self) -> None:
        """Drop all references.

        The garbage collector does not traverse messages, so a world with a cycle through one would stay.
        """
        for process in self.cluster.processes:
            vars(process).clear()
        vars(self).clear()

    def __repr__(self) -> str:
        return f"<World of seed {self.seed} at {self.schedule!r}, {self.cluster!r}, {self.trace!r}>"
