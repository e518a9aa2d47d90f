"""A random history in a world: crashes, partitions, slow syncs, appends, fetches of brokers; then peace."""

from __future__ import annotations

import random

from kraftd.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftd.raft.events import AppendRequested, ShutdownRequested
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID
from tests.raft.world import World


def broker_fetch(
    broker_id: int, epoch: int, offset: int, last_epoch: int, high_watermark: int, max_wait_ms: int = 500
) -> FetchRequest:
    partition = FetchPartition(0, epoch, offset, last_epoch, high_watermark=high_watermark)
    return FetchRequest(
        cluster_id="cluster",
        replica_state=ReplicaState(broker_id),
        max_wait_ms=max_wait_ms,
        max_bytes=1 << 20,
        topics=[FetchTopic(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])],
    )


class Nemesis:
    """Draw faults of processes, hosts and links; a disk keeps what it has synced."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.dice = random.Random(seed)
        world.sync_takes_ms = lambda: self.dice.choice((1, 1, 1, 5, 40, 200))
        self.appended = 0
        self.fetched = 0
        self.changes = 0

    def act(self) -> None:
        world, dice = self.world, self.dice
        alive = [node.id for node in world.nodes.values() if node.core is not None]
        down = [node.id for node in world.nodes.values() if node.core is None]
        match dice.randrange(16):
            case 0 | 1 | 2 | 3:
                self.append()
            case 4 | 5:
                self.fetch()
            case 6 if alive:
                world.crash(dice.choice(alive), silent=dice.random() < 0.5)
            case 7 | 8 if down:
                world.start(dice.choice(down))
            case 9:
                ids = sorted(world.nodes)
                dice.shuffle(ids)
                cut = dice.randrange(1, len(ids)) if len(ids) > 1 else 1
                world.isolate(ids[:cut], ids[cut:])
            case 10:
                world.heal()
            case 11 if len(world.nodes) > 1:
                a, b = dice.sample(sorted(world.nodes), 2)
                world.cut.add((a, b))
            case 12 | 13:
                self.change_voters()
            case 14 if alive:
                self.stop_gracefully(dice.choice(alive))
            case 15 if alive:
                world.take_snapshot(dice.choice(alive), drop_log=dice.random() < 0.7)
            case _:
                pass
        world.run(dice.choice((1, 3, 10, 50, 300, 1500)))

    def append(self) -> None:
        leaders = [
            node for node in self.world.nodes.values() if node.core is not None and node.core.is_leader
        ]
        if leaders:
            node = self.dice.choice(leaders)
            assert node.core is not None
            self.appended += 1
            values = [b"v%d" % self.appended] * self.dice.randrange(1, 4)
            self.world.step(node.id, AppendRequested(f"a{self.appended}", values, node.core.epoch))

    def fetch(self) -> None:
        alive = [node for node in self.world.nodes.values() if node.core is not None]
        if alive:
            node = self.dice.choice(alive)
            core = node.core
            assert core is not None
            self.fetched += 1
            offset = self.dice.choice((core.log_end_offset, max(0, core.log_end_offset - 1)))
            hw = self.dice.choice((-1, core.high_watermark, (1 << 63) - 1))
            fetch = broker_fetch(100, core.epoch, offset, core.log.last_epoch, hw)
            self.world.ask(node.id, f"f{self.fetched}", fetch)

    def change_voters(self) -> None:
        """Ask the leader to add an observer or to remove a voter; it may refuse."""
        leader = self.world.leader()
        if leader is None or leader.core is None or leader.core.kraft_version == 0:
            return
        self.changes += 1
        voters = leader.core.voters
        others = [node for node in self.world.nodes.values() if voters.get(node.id) is None]
        if others and (len(voters) == 1 or self.dice.random() < 0.6):
            config = self.dice.choice(others).config
            listeners = [Listener(one.listener, one.host, one.port) for one in config.listeners]
            add = AddRaftVoterRequest("cluster", 1000, config.node_id, config.directory_id, listeners)
            self.world.ask(leader.id, f"c{self.changes}", add)
        else:
            key = self.dice.choice(list(voters)).key
            remove = RemoveRaftVoterRequest("cluster", key.id, key.directory_id or bytes(16))
            self.world.ask(leader.id, f"c{self.changes}", remove)

    def stop_gracefully(self, node_id: int) -> None:
        self.world.step(node_id, ShutdownRequested(2_000))
        self.world.run(self.dice.choice((10, 100, 2_000)))
        if self.world.nodes[node_id].core is not None:
            self.world.crash(node_id)

    def peace(self) -> bool:
        """Start and connect all nodes; return whether a leader is elected and all reach its log end."""
        world = self.world
        world.heal()
        for node in world.nodes.values():
            if node.core is None:
                world.start(node.id)
        return world.run(30_000, until=self.settled)

    def settled(self) -> bool:
        leader = self.world.leader()
        if leader is None or leader.core is None or leader.core.high_watermark < leader.core.log_end_offset:
            return False
        return all(
            node.core is not None
            and node.core.epoch == leader.core.epoch
            and node.core.high_watermark == leader.core.high_watermark
            for node in self.world.nodes.values()
        )
