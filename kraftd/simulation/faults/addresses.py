"""All addresses change at once: every host restarts with another port (KIP-1347, KAFKA-20427).

The operator has put the new addresses into the bootstrap servers of every file. The log has the old ones, so
only the bootstrap servers lead to an election. This is planned in some dynamic worlds, from rng of its own,
so that all other worlds stay the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftd.simulation.cluster import PORT, Cluster
from kraftd.simulation.protocols import World
from kraftd.simulation.randomness import SeededRandomness

KIND = "move all ports"
_CHANCE = 0.15


def plan_moves(world: World) -> Iterator[tuple[int, int]]:
    """When all addresses change, and the number that the fault draws from."""
    rng, options = world.rng("addresses"), world.options
    if options.dynamic and not options.old_versions and rng.chance(_CHANCE):
        for _ in range(rng.choice((1, 1, 2))):
            yield rng.between(options.safety_us // 4, options.safety_us), rng.below(1 << 30)


def move_all_ports(cluster: Cluster, rng: SeededRandomness) -> str | None:
    """Restart all hosts with other ports, if a majority of every voter set has its directory."""
    hosts = list(cluster.hosts.values())
    if not all(cluster.is_intact(voters) for voters in cluster.voter_sets()):
        return None
    for host in hosts:
        if host.process is not None:
            cluster.kill(host)
        cluster.world.network.hosts.pop(host.address, None)
    taken = {host.port for host in hosts}
    for host in hosts:
        host.port = rng.choice([port for port in range(PORT + 1_000, PORT + 1_100) if port not in taken])
        cluster.bootstrap_ports[host.id] = host.port
    for host in hosts:
        cluster.start(host)
    return ", ".join(f"{host.id} to {host.port}" for host in hosts)
