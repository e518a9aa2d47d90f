"""Worlds in which a majority of the voters is lost for good, and `kraftd quorum recover` on one survivor.

A first world runs as usual. Then all its hosts lose power at once, and the directories of most voters are
lost. The command's code makes the survivor the only voter, with crashes in the middle. A second world begins
with the survivor, with observers, and with new controllers in place of the lost ones. Sometimes a lost voter
returns with its old directory. Committed records may be lost, so the checkers begin anew: the survivor's log
counts as committed. From then on every invariant holds. A directory that returns with a checkpoint of lost
records is ahead. Its process must end, or begin anew with the leader's snapshot. Then the operator formats
the directory, as the daemon's last line advises.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from kraftd.log.errors import StorageError
from kraftd.log.memory_disk import MemoryDisk, SimulatedCrash
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY
from kraftd.metadata_dir.formatting.voters import InitialVoter
from kraftd.metadata_dir.recovery import open_log
from kraftd.metadata_dir.rescue.sole_voter import Survey, compare, make_sole_voter, recovered_epoch, survey
from kraftd.raft.quorum.voters import VoterSet
from kraftd.simulation.checkers.checker import Violation
from kraftd.simulation.cluster import WALL_MS, Host
from kraftd.simulation.options import SHORT, Options, draw_options
from kraftd.simulation.processes.files import LISTENER, PATH
from kraftd.simulation.processes.mirror import LogMirror, entry_of
from kraftd.simulation.run import Outcome
from kraftd.simulation.schedule import SECOND
from kraftd.simulation.world import World
from kraftd.types import ReplicaKey
from kraftd.wire.batch import Batch, iter_batches

SECOND_WORLD = 1 << 40  # added to the seed, for draws of its own
_NOT_NOW = ("damage checkpoint", "damage segment")  # not before the loss: a damaged log is refused
_MOST_US = 8 * SECOND


def run_lost_majority(seed: int, echo: Callable[[str], None] | None = None) -> Outcome:
    """Run the two worlds of a seed to their end, or to the first invariant that does not hold."""
    started_s = time.process_time()
    options = draw_first(seed)
    first = World(seed, options=options, echo=echo)
    second = World(seed + SECOND_WORLD, options=options, echo=echo)
    outcome = Outcome(seed, repr(options), controllers=False, lost_majority=True)
    try:
        _run(first, second)
    except Violation as violation:
        outcome.invariant, outcome.text = violation.invariant, violation.text
    outcome.steps = first.trace.steps + second.trace.steps
    outcome.effects = first.trace.effects + second.trace.effects
    outcome.digest = second.trace.digest()
    outcome.simulated_us = first.schedule.now_us + second.schedule.now_us
    outcome.settled_us = second.liveness.settled_us
    outcome.kinds = dict(second.trace.kinds)
    for world in (first, second):
        world.take_apart()
    outcome.cpu_s = time.process_time() - started_s
    return outcome


def draw_first(seed: int) -> Options:
    """The options of both worlds: those of the seed, if they leave a majority to lose."""
    options = draw_options(seed, SHORT)
    return options._replace(
        voter_count=max(3, options.voter_count),
        dynamic=True,
        controllers=False,
        safety_us=min(options.safety_us, _MOST_US),
        faults=tuple(one for one in options.faults if one not in _NOT_NOW),
        # The checkers of the second world read the log from its beginning.
        retention_bytes=-1,
        retention_ms=-1,
    )


def _run(first: World, second: World) -> None:
    first.begin()
    _lose_power(first)
    remains = Remains.of(first, second)
    if remains is None:
        second.note("no voter's log begins with offset 0")  # the checkers of a second world need one
        return
    epoch = remains.recover()
    try:
        remains.move_in(epoch)
    except StorageError as error:
        raise Violation("D1", f"{remains!r}: what the recovery has written is gone: {error}") from None
    second.run()


def _lose_power(world: World) -> None:
    """All hosts lose their power at once, and do nothing more."""
    world.ending = True
    for host in world.cluster.hosts.values():
        world.cluster.power_loss(host)
        world.nemesis.mend(host)


class Remains:
    """The remains of the first world, for the second."""

    def __init__(self, first: World, second: World, surveys: dict[int, Survey], voters: list[Host]) -> None:
        self.first, self.second, self.surveys = first, second, surveys
        self.rng = second.rng("lost majority")
        # Often the voter with the lowest epoch: then the lost voters were in epochs unknown to it.
        voters.sort(key=self._knows)
        self.survivor: Host = voters[0] if self.rng.chance(0.5) else self.rng.choice(voters)
        self.returning = self._choose_returning()

    @classmethod
    def of(cls, first: World, second: World) -> Remains | None:
        """None if no voter with a complete log is left."""
        hosts = first.cluster.hosts
        surveys = {host.id: survey(host.disk, PATH) for host in hosts.values() if _has_log(host.disk)}
        voters = [
            host
            for host in hosts.values()
            if host.id in surveys
            and _epochs_from_start(surveys[host.id])
            and _keys(surveys[host.id]).count(host.key)
        ]
        return cls(first, second, surveys, voters) if voters else None

    def _knows(self, host: Host) -> tuple[int, int]:
        return self.surveys[host.id].epoch, self.surveys[host.id].end.offset

    def _choose_returning(self) -> list[Host]:
        """Hosts that keep their directory: observers, and at most one of the lost voters.

        They are never a majority of a voter set that one of them knows: nothing on the survivor's disk could
        prevent their election (docs/operations/losing-nodes.md).
        """
        hosts, mine = self.first.cluster.hosts, self.surveys[self.survivor.id]
        known = set(_keys(mine))
        others = [host for host in hosts.values() if host is not self.survivor and host.id in self.surveys]
        lost = [host for host in others if host.key in known]
        chosen = [host for host in others if host.key not in known]
        if lost and self.rng.chance(0.7):
            chosen.append(max(lost, key=self._knows))
        while any(self._could_elect(self.surveys[host.id], chosen) for host in chosen):
            chosen.pop()
        return chosen

    def _is_ahead(self, host: Host) -> bool:
        """Return whether one of its checkpoints, which count as committed, holds lost records."""
        found = self.surveys[host.id]
        return found.committed > compare(self.surveys[self.survivor.id], found).common

    def _could_elect(self, found: Survey, chosen: list[Host]) -> bool:
        keys = _keys(found)
        return 2 * sum(host.key in keys for host in chosen) > len(keys)

    def recover(self) -> int:
        """Make the survivor the only voter, again after each crash in between. Returns the epoch."""
        host, rng = self.survivor, self.rng
        reported_surveys = [self.surveys[one.id] for one in self.returning if rng.chance(0.5)]
        voter = InitialVoter(host.id, *host.address, host.directory_id)
        while True:
            epoch = recovered_epoch([survey(host.disk, PATH), *reported_surveys])
            host.disk.crash_at = host.disk.operations + rng.between(1, 60)
            try:
                make_sole_voter(host.disk, PATH, voter, LISTENER, epoch=epoch, now_ms=WALL_MS)
            except SimulatedCrash:
                self.second.note("crash in recovery", host.id)
                host.disk = host.disk.after_crash(rng.below)
            else:
                break
        host.disk.crash_at = None
        host.disk = host.disk.after_crash(rng.below)  # its completed work is durable
        return epoch

    def move_in(self, epoch: int) -> None:
        """Put the remaining directories into the second world. Raises StorageError, Violation."""
        first, second = self.first.cluster, self.second.cluster
        for new in second.hosts.values():
            second.renew(new)
        for old in (self.survivor, *self.returning):
            new = second.hosts[old.id]
            new.disk, new.directory_id, new.port = old.disk, old.directory_id, old.port
            new.mirror = LogMirror()
            new.has_voted = True
            second.directories[new.id, new.directory_id] = new.mirror
            if self._is_ahead(old):
                self.second.note("comes back ahead of the quorum", old.id)
                second.ahead.add((new.id, new.directory_id))
        kept = {host.key for host in (self.survivor, *self.returning)}
        for found in self.surveys.values():
            second.buried.update(set(_keys(found)) - kept)
        second.buried.update(key for host in first.hosts.values() if (key := host.key) not in kept)
        self._commit_all()
        if self.second.committed.last_epoch != epoch:
            raise Violation(
                "D1", f"{self!r}: the log does not end with epoch {epoch}, to which it was recovered"
            )
        self.second.note("majority lost", self.survivor.id)
        for host in self.returning:
            if host.key in _keys(self.surveys[self.survivor.id]):
                self.second.note("lost voter comes back", host.id)

    def _commit_all(self) -> None:
        """All of the survivor's log counts as committed."""
        reference, committed = self.second.reference, self.second.committed
        for batch in _batches(self.survivor.disk):
            entry = entry_of(batch)
            reference.batches[entry.epoch, entry.base] = bytes(batch.view)
            committed.add(entry)
            reference.commit(entry)
        self.second.checks.commits.known_before(committed.end)

    def __repr__(self) -> str:
        return f"<Remains: {self.survivor.id} of {self.first!r}, {len(self.returning)} come back>"


def _has_log(disk: MemoryDisk) -> bool:
    return any(path.endswith(".log") for path in disk.paths())


def _epochs_from_start(found: Survey) -> bool:
    """Return whether the log begins with offset 0."""
    return bool(found.epochs) and found.epochs[0][1] == 0


def _keys(found: Survey) -> list[ReplicaKey]:
    return [] if found.voters is None else [voter.key for voter in VoterSet.from_record(found.voters)]


def _batches(disk: MemoryDisk) -> Iterator[Batch]:
    """The batches of a log that begins with offset 0. Opening changes the directory as a start does."""
    log = open_log(disk, f"{PATH}/{PARTITION_DIRECTORY}").log
    start = 0
    while start < log.log_end:
        for batch in iter_batches(log.read(start, 1 << 20), verify=False):
            yield batch
            start = batch.header.next_offset
    log.close()
