"""The fault that puts an old copy of a directory back, as from a backup of one volume.

An observer never counts, so its copy may return at any time. A voter forgets what it has acknowledged and
whom it has voted for, and Raft does not survive that by itself. So its copy returns only while that costs
nothing. A majority of the voters without it must hold every committed record, and every one that it has
acknowledged. They must know the leader of its epoch or of a later one, and no other voter may run in an
earlier one: else a candidate could win an epoch by this voter's second vote.
"""

from __future__ import annotations

from kraftd.log.memory_disk import MemoryDisk, everything_survives
from kraftd.named_tuple import NamedTuple
from kraftd.raft.quorum.majority import majority
from kraftd.raft.quorum.voters import VoterSet, matches
from kraftd.simulation.cluster import Cluster, Host
from kraftd.simulation.processes.mirror import LogMirror
from kraftd.simulation.protocols import World
from kraftd.simulation.randomness import SeededRandomness
from kraftd.types import ReplicaKey


class OldCopy(NamedTuple):
    """A copy of a host's directory. `voters` were in force at its replica."""

    key: ReplicaKey
    voters: VoterSet
    disk: MemoryDisk


class OldCopies:
    """At most one copy of each host."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cluster: Cluster = world.cluster
        self._copies: dict[int, OldCopy] = {}

    def roll_back(self, rng: SeededRandomness) -> str | None:
        """Copy the directory of a host, or put its copy back."""
        cluster = self.cluster
        sets = [voters for voters in cluster.voter_sets() if len(voters)]
        candidates = [host for host in cluster.hosts.values() if self._may_go_back(host, sets)]
        if not candidates or not sets or self.world.workload.joining:
            return None
        host = rng.choice(candidates)
        is_voter = sets[0].has_voter(host.key)
        copy = self._copies.get(host.id)
        is_usable = copy is not None and copy.key == host.key and (not is_voter or copy.voters == sets[0])
        if copy is not None and is_usable and is_voter and not self._is_dispensable(host, copy.voters):
            return None
        if host.process is not None:
            cluster.kill(host)
        if copy is None or not is_usable:
            self._copies[host.id] = OldCopy(host.key, host.voters, host.disk.after_crash(everything_survives))
            cluster.start(host)
            return f"{host.id} is copied"
        self._put_back(host, copy)
        if is_voter:
            self.world.note("voter gets its copy back", host.id)
        cluster.start(host)
        return f"{host.id} gets its copy back"

    def _may_go_back(self, host: Host, sets: list[VoterSet]) -> bool:
        if host.was_damaged or self.cluster.is_ahead(host):
            return False
        if not host.has_voted and not any(voters.get(host.id) for voters in sets):
            return True
        return all(voters == sets[0] and voters.has_voter(host.key) for voters in sets)

    def _is_dispensable(self, host: Host, voters: VoterSet) -> bool:
        """Return whether the other voters lose nothing if this one forgets everything since its copy."""
        hosts = [self.cluster.hosts[voter.key.id] for voter in voters if voter.key.id != host.id]
        others = [one for one in hosts if any(matches(voter.key, one.key) for voter in voters)]
        settled = [one for one in others if _knows_leader(one, host.persisted[0])]
        if any(one.process is not None and one not in settled for one in others):
            return False
        return sum(self._holds_what(host, one) for one in settled) >= majority(len(voters))

    def _holds_what(self, host: Host, other: Host) -> bool:
        """Return whether the disk of `other` has all that `host` has synced, and all that is committed."""
        held = other.mirror
        return not other.was_damaged and all(
            held.synced_end >= end and (held.start >= end or held.entry_before(end) == log.entry_before(end))
            for log, end in (
                (host.mirror, host.mirror.synced_end),
                (self.world.committed, self.world.committed.end),
            )
        )

    def _put_back(self, host: Host, copy: OldCopy) -> None:
        host.disk = copy.disk.after_crash(everything_survives)
        host.mirror = self.cluster.directories[host.id, host.directory_id] = LogMirror()
        host.persisted = 0, -1
        host.voters = copy.voters
        self.world.checks.restored(host)

    def __repr__(self) -> str:
        return f"<OldCopies of {sorted(self._copies)}>"


def _knows_leader(host: Host, epoch: int) -> bool:
    """Return whether this voter runs, and its disk names the leader of that epoch or of a later one."""
    if host.process is None:
        return False
    election = host.process.files.quorum_state.read()
    return election is not None and election.leader_id >= 0 and election.leader_epoch >= epoch
