"""L1-L6 and S15: the events that must follow once there are no more faults."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.log.errors import CorruptStorage
from kraftd.raft.events import ShutdownRequested
from kraftd.raft.quorum.voters import matches
from kraftd.raft.roles import Leader
from kraftd.raft.transitions import State
from kraftd.simulation.checkers.checker import Violation
from kraftd.simulation.cluster import Cluster
from kraftd.simulation.processes.network import SLOWEST_US
from kraftd.simulation.protocols import World
from kraftd.simulation.schedule import MS, SECOND

RESTLESS = ("L1", "L2", "L3", "L4", "L5", "S15")  # a replica that raises the epoch forever may break these
SETTLE_US = 120 * SECOND
MAX_SETTLE_WINDOWS = 5


class Liveness:
    """The healed phase. `settled_us` is how long the world took to agree."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cluster: Cluster = world.cluster
        self.leader_us = -1
        self.agreed = False  # all replicas of the healed world have agreed
        self.settled_us = -1
        self.healed_epoch = -1  # the highest known epoch when the world had healed
        self._mark = -1, 0  # an epoch, and the log end of its leader when the agreement began

    def run(self) -> None:
        world = self.world
        cluster, schedule = self.cluster, world.schedule
        started_us = schedule.now_us
        processes = [host.process for host in cluster.hosts.values()]
        self.healed_epoch = max((one.core.epoch for one in processes if one is not None), default=-1)
        if not all(cluster.is_intact(voters) for voters in cluster.voter_sets()):
            world.note("not alive by right")  # more directories were lost than a quorum can lose
            return
        while True:
            mended = cluster.mended
            try:
                self._come_to_rest(started_us)
                break
            except Violation as violation:
                if violation.invariant not in RESTLESS:
                    raise
                if not all(cluster.is_intact(voters) for voters in cluster.voter_sets()):
                    world.note("not alive by right")  # damage at rest cost one directory too many
                    return
                if violation.invariant == "L1" and self._needs_new_voter():
                    world.note("not alive by right")
                    return
                if cluster.mended != mended:
                    continue  # the operator has replaced a damaged directory meanwhile, perhaps the leader's
                removed = self.disturber()
                if removed is None:
                    raise
                world.note("disturbed by a removed voter", removed)
                return
        self._same_logs()
        self._shut_down()

    def _come_to_rest(self, started_us: int) -> None:
        world, schedule = self.world, self.world.schedule
        options = world.options
        # Timeouts are drawn between one and two of them; followers of a lost leader notice first.
        wait_ms = 2 * options.fetch_timeout_ms + 5 * 2 * options.election_timeout_ms + 1_000
        self._await("L1", self._has_leader, "there is no leader", wait_ms * MS)
        self.leader_us = schedule.now_us - started_us
        self._await_agreement()
        self.agreed = True
        for _ in range(5):
            world.workload.append()
        self._await(
            "L2", lambda: not world.workload.under_way, "operations are neither acknowledged nor refused"
        )
        self._await_agreement()
        self.settled_us = schedule.now_us - started_us
        # A loss of a connection that was under way when the world healed may still raise the epoch.
        schedule.run_until(max(schedule.now_us, started_us + SLOWEST_US))
        self._await_agreement()
        self._await_readers()
        self._await("G3", world.traffic.have_settled, "a consumer group has not settled")
        self._await("L7", world.traffic.has_gone_on, "not every producer and group goes on")
        world.traffic.stop()
        self._quiet()
        self._one_link_broken()

    def _needs_new_voter(self) -> bool:
        """Return whether a majority of some voters must have one that has caught up with no leader yet. It
        grants no vote while others have a log: its volume may have been lost (docs/adr/first-election.md).
        Nor does it once another one's directory was lost before the first election.
        """
        for voters in self.cluster.voter_sets():
            cores = [(voter, self.cluster.hosts[voter.key.id].process) for voter in voters]
            ordinary = [
                process.core
                for voter, process in cores
                if process is not None
                and matches(voter.key, self.cluster.hosts[voter.key.id].key)
                and process.core._replica.new_voter is None
            ]
            has_log = any(core._replica.log.end_offset > 0 for core in ordinary)
            is_lost = any(not matches(voter.key, self.cluster.hosts[voter.key.id].key) for voter in voters)
            if (has_log or is_lost) and len(ordinary) * 2 <= len(voters):
                return True
        return False

    def disturber(self) -> int | None:
        """A removed voter that does not know of its removal and has started elections since the world healed.
        Pre-votes do not stop it, because one of the voters that it knows predates KIP-996. It raises the
        epoch forever, as in Apache Kafka.
        """
        hosts = self.cluster.hosts
        leader = self.cluster.leader()
        last_candidacies = self.world.checks.elections.last_candidacies
        for host in hosts.values():
            process = host.process
            if leader is None or process is None or leader.core.voters.has_voter(host.key):
                continue
            if last_candidacies.get(host.key, -1) <= self.healed_epoch:
                continue
            voters = process.core.voters
            if voters.has_voter(host.key) and any(hosts[one.key.id].is_old for one in voters):
                return host.id
        return None

    def _await_agreement(self) -> None:
        """L4: all replicas catch up, which slow syncs and small fetches may delay."""
        for windows_left in reversed(range(MAX_SETTLE_WINDOWS)):
            before = self._high_watermarks()
            try:
                self._await("L4", self._agree, "the replicas do not agree")
                return
            except Violation as violation:
                after, mark = self._high_watermarks(), self._mark[1]
                if (
                    violation.invariant != "L4"
                    or not windows_left
                    or not all(after[one] > before[one] or after[one] >= mark for one in after)
                ):
                    raise

    def _high_watermarks(self) -> dict[int, int]:
        """The high watermarks by host; -1 if nothing runs."""
        return {
            host.id: -1 if host.process is None else host.process.core.high_watermark
            for host in self.cluster.hosts.values()
        }

    def _await(self, invariant: str, holds: Callable[[], bool], text: str, wait_us: int = SETTLE_US) -> None:
        schedule = self.world.schedule
        end_us = schedule.now_us + wait_us
        self._mark = -1, 0
        while not holds():
            if schedule.now_us >= end_us:
                states = "; ".join(repr(host) for host in self.cluster.hosts.values())
                if invariant in ("L7", "G3"):
                    states = repr(self.world.traffic)
                raise Violation(invariant, f"{wait_us // SECOND} s after the world healed {text}: {states}")
            schedule.run_until(schedule.now_us + 20 * MS)

    def _has_leader(self) -> bool:
        """Return whether a majority of the voters follows a leader. Their lag is checked elsewhere (L4)."""
        leader = self.cluster.leader()
        if leader is None:
            return False
        core, hosts, following = leader.core, self.cluster.hosts, 0
        for voter in core.voters:
            host = hosts[voter.key.id]
            if host.process is not None and matches(voter.key, host.key):
                other = host.process.core
                following += other.epoch == core.epoch and other.leader_id == leader.id
        return following * 2 > len(core.voters)

    def _agree(self) -> bool:
        """Return whether all replicas follow one leader and know the commits from before the
        agreement began.
        """
        leader = self.cluster.leader()
        if leader is None or leader.core.high_watermark < 0:
            return False
        if self._mark[0] != leader.core.epoch:
            self._mark = leader.core.epoch, leader.core.log_end_offset
        return all(
            host.process is not None
            and host.process.core.epoch == leader.core.epoch
            and host.process.core.high_watermark >= self._mark[1]
            for host in self.cluster.hosts.values()
        )

    def _await_readers(self) -> None:
        """S20: the readers read everything that is committed by now, unless damage prevents it."""
        end, readers, hosts = self.world.committed.end, self.world.readers, self.cluster.hosts.values()

        def have_read() -> bool:
            return readers.have_read(end) or any(host.damaged for host in hosts)

        self._await("S20", have_read, "not every reader has what was committed")

    def _have_all(self) -> bool:
        return all(
            host.process is not None and host.process.files.log.log_end >= self.world.committed.end
            for host in self.cluster.hosts.values()
        )

    def _quiet(self) -> None:
        """S15, L3, L5: nothing changes, and few messages are sent."""
        world = self.world
        leader = self.cluster.leader()
        assert leader is not None
        epoch, messages = leader.core.epoch, world.network.messages
        schedule = world.schedule
        quiet_us = world.options.quiet_us
        change = getattr(leader.core._replica.role, "voter_change", None)
        schedule.run_until(schedule.now_us + quiet_us)
        now = self.cluster.leader()
        if now is not leader or now.core.epoch != epoch:
            raise Violation("S15", f"the epoch changed at rest from {epoch} of {leader!r}: now {now!r}")
        for host in self.cluster.hosts.values():
            process = host.process
            assert process is not None
            core = process.core
            if core.state not in (State.LEADER, State.FOLLOWER):
                raise Violation("L3", f"{process!r} at rest")
            if process.waits_for_room:
                raise Violation("D4", f"{process!r} waits for room that there is")
            role = core._replica.role
            if isinstance(role, Leader) and role.voter_change is not None and role.voter_change is change:
                raise Violation("L3", f"{process!r} changes its voters at rest: {role.voter_change!r}")
        messages_sent = world.network.messages - messages
        # Every replica fetches twice a second, with an answer each, and is notified of the epoch at most once
        # a second.
        fetches = quiet_us // (500 * MS) + 1
        allowed = len(self.cluster.hosts) * (2 * fetches + 4 * (quiet_us // (200 * MS)))
        if messages_sent > allowed:
            raise Violation(
                "L5", f"{messages_sent} messages in {quiet_us // SECOND} s at rest, {allowed} would do"
            )

    def _one_link_broken(self) -> None:
        """S15: one voter loses its link to the leader, a majority does not: no other voter is elected."""
        world = self.world
        leader = self.cluster.leader()
        assert leader is not None
        hosts, voters = self.cluster.hosts, leader.core.voters
        others = [
            voter.key.id
            for voter in voters
            if voter.key.id != leader.id and matches(voter.key, hosts[voter.key.id].key)
        ]
        # A majority must remain without that voter and the leader. Without pre-votes any candidate disturbs.
        if not others or len(others) * 2 <= len(voters) or world.options.old_versions:
            return
        epoch, schedule, cut = leader.core.epoch, world.schedule, world.network.cut
        one = world.rng("link").choice(others)
        cut.update(((one, leader.id), (leader.id, one)))
        process = hosts[one].process
        if process is not None and world.rng("link reset").chance(0.5):
            for link in [*process.links.values(), *process.incoming]:
                if leader in (link.source, link.target):
                    world.network.reset(link)
        world.note("one link broken", one, leader.id)
        schedule.run_until(schedule.now_us + 4 * world.options.fetch_timeout_ms * MS)
        world.network.heal()
        self._await_agreement()
        now = self.cluster.leader()
        if now is not leader or now.core.epoch != epoch:
            raise Violation("S15", f"{one} lost its link to {leader!r}, the epoch was {epoch}: now {now!r}")

    def _same_logs(self) -> None:
        """S6 at the end, and C2: every log holds all committed records, and each acknowledged append once."""
        world = self.world
        committed = world.committed
        self._await("L4", self._have_all, "not every replica has what is committed")
        first: list[bytes] | None = None
        for host in self.cluster.hosts.values():
            process = host.process
            assert process is not None
            for entry in host.mirror.entries:
                if entry.end <= committed.end and committed.entry_before(entry.end) != entry:
                    raise Violation("S6", f"{process!r} ends with {entry}")
            try:
                process.state.catch_up(committed.end)
            except CorruptStorage as error:
                if not host.damaged:
                    raise Violation("D3", f"{process!r} finds damage where none is: {error}") from None
                world.note("damage found by a read", host.id)
                continue
            values = process.state.values()
            if first is None:
                first = values
            elif first != values:
                raise Violation("C1", f"{process!r} has made something else of the same log")
        if first is not None and first != world.reference.values_at(committed.end):
            raise Violation("C1", f"{self.cluster!r} has made something else of what was committed")
        world.checks.commits.at_rest()
        world.workload.end()
        world.traffic.at_rest()

    def _shut_down(self) -> None:
        """L6: all processes stop cleanly, one after the other."""
        world = self.world
        world.ending = True
        world.readers.stop()
        world.traffic.stop()
        schedule = world.schedule
        rng = world.rng("shutdown")
        hosts = list(self.cluster.hosts.values())
        rng.shuffle(hosts)
        for host in hosts:
            process = host.process
            assert process is not None
            process.deliver(ShutdownRequested(world.options.shutdown_ms))
            end_us = schedule.now_us + (world.options.shutdown_ms + 500) * MS
            while host.process is process:
                if schedule.now_us >= end_us:
                    raise Violation("L6", f"{process!r} does not end")
                schedule.run_until(schedule.now_us + 20 * MS)
