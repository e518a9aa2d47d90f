"""What goes through the brokers of a world: the topics, the clients, and the connections that carry requests.

A client has one connection a request, or several requests on one. A request or its answer may be lost: then
the client gives up after a while.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kraftd.groups.java_hashes import partition_for
from kraftd.log.data.data_log import DataLog
from kraftd.messages import alter_partition_reassignments_request as reassign
from kraftd.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.elect_leaders_request import ElectLeadersRequest
from kraftd.metadata.image import Image
from kraftd.simulation.brokers.broker_side import OFFSETS_PARTITIONS, BrokerSide
from kraftd.simulation.brokers.committed_reader import CommittedReader
from kraftd.simulation.brokers.member import Member
from kraftd.simulation.brokers.peers import Peers
from kraftd.simulation.brokers.producer import Producer
from kraftd.simulation.brokers.transactional_producer import (
    DECIDED,
    DECIDED_PARTITIONS,
    TRANSACTIONS_PARTITIONS,
    TRANSACTIONS_TOPIC,
    TransactionalProducer,
)
from kraftd.simulation.checkers.brokers.groups import GroupChecker
from kraftd.simulation.checkers.brokers.partitions import PartitionChecker, PartitionKey
from kraftd.simulation.checkers.brokers.replicas import ReplicaChecker
from kraftd.simulation.checkers.brokers.transactions import TransactionChecker
from kraftd.simulation.processes.process import Process
from kraftd.simulation.protocols import World
from kraftd.simulation.schedule import MS, SECOND
from kraftd.wire.frames import encode_request, parse_response
from kraftd.wire.message import Message
from kraftd.wire.table import api_key

OFFSETS_TOPIC = "__consumer_offsets"
STEADY, CHANGING = "records", "fleeting"  # the second is deleted and made again
PARTITIONS = 3
COUNTS = {
    OFFSETS_TOPIC: OFFSETS_PARTITIONS,
    STEADY: PARTITIONS,
    CHANGING: PARTITIONS,
    TRANSACTIONS_TOPIC: TRANSACTIONS_PARTITIONS,
    DECIDED: DECIDED_PARTITIONS,
}
INTERNAL = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
GROUPS = ("group-a", "group-b")
ANSWER_WAIT_US = 5 * SECOND
TOPICS_GAP_US = 1 * SECOND
VERSIONS = {0: 13, 1: 16, 8: 9, 9: 9, 11: 9, 12: 4, 13: 5, 14: 5, 22: 4, 24: 3, 26: 5}  # by API key
Then = Callable[[Any], None]  # called with the answer, or None without one


class Exchange(NamedTuple):
    """A request that is under way."""

    connection_id: int
    key: int
    version: int
    side: BrokerSide
    then: Then


class Traffic:
    """See the module. Without brokers it is empty, and does nothing."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = world.rng("traffic")
        self.partitions = PartitionChecker(world)
        self.groups = GroupChecker(world)
        self.partitions.on_loss.append(self.groups.lost_end)
        self.replicas = ReplicaChecker(world, self.partitions, tuple(COUNTS))
        self.transactions = TransactionChecker(world)
        self.partitions.on_loss.append(self.transactions.lost)
        self.replicas.on_excuse = self._lost_by_right
        self.partitions.on_cut = self.replicas.lost_end
        self.peers = Peers(world, self)
        self.running = False
        self.steady, self.partition_count = STEADY, PARTITIONS  # what groups consume
        self.brokers: list[int] = world.cluster.broker_ids
        self.producers: list[Producer] = []
        self.members: list[Member] = []
        self.transactional: list[TransactionalProducer] = []
        self.committed_readers: list[CommittedReader] = []
        self._under_way: dict[int, Exchange] = {}
        self._last = 0
        if self.brokers:
            self._place()

    def _place(self) -> None:
        """Draw which broker has which partition, the topics' configs, and the clients."""
        rng = self.rng
        self._hosts = {name: [self._draw_replicas() for _ in range(count)] for name, count in COUNTS.items()}
        flush = rng.choice(("1", "5", None, None))
        options = {
            "flush.messages": flush,
            "segment.ms": rng.choice(("1500", None)),
            "segment.index.bytes": rng.choice(("24", None)),
            "index.interval.bytes": rng.choice(("0", "200")),
            "retention.bytes": rng.choice(("2000", None, None)),
            "retention.ms": "-1",  # whatever the workload sets for all topics
            "file.delete.delay.ms": "1000",
        }
        if self.replicas.is_on:
            options["min.insync.replicas"] = rng.choice(("1", "2"))
        configs = [CreatableTopicConfig(name, value) for name, value in options.items() if value is not None]
        self.partitions.may_delete = options["retention.bytes"] is not None
        of_offsets = [CreatableTopicConfig("cleanup.policy", "compact")]
        if self.replicas.is_on:
            of_offsets.append(CreatableTopicConfig("min.insync.replicas", options["min.insync.replicas"]))
        if flush is not None:
            of_offsets.append(CreatableTopicConfig("flush.messages", flush))
        lasting = [one for one in configs if one.name != "retention.bytes"]
        self._configs = {
            OFFSETS_TOPIC: of_offsets,
            STEADY: configs,
            CHANGING: configs,
            TRANSACTIONS_TOPIC: of_offsets,
            DECIDED: lasting,
        }
        places = [(STEADY, index) for index in range(PARTITIONS)] * 2 + [(CHANGING, 0), (CHANGING, 1)]
        self.producers = [Producer(self, number, *place) for number, place in enumerate(places)]
        names = [GROUPS[number % len(GROUPS)] for number in range(rng.between(3, 5))]
        self.members = [Member(self, number, name) for number, name in enumerate(names)]
        self.transactional = [TransactionalProducer(self, number) for number in range(rng.between(2, 3))]
        self.committed_readers = [CommittedReader(self, index) for index in range(DECIDED_PARTITIONS)]

    def _draw_replicas(self) -> tuple[int, ...]:
        if not self.replicas.is_on:
            return (self.rng.choice(self.brokers),)
        return tuple(self.rng.sample(self.brokers, self.world.options.replica_count))

    # --- driving ---

    def start(self) -> None:
        if self.brokers:
            self.running = True
            self.world.schedule.after(TOPICS_GAP_US, self._see_to_topics)
            for producer in self.producers:
                producer.start()
            for member in self.members:
                member.start()
            for transactional in self.transactional:
                transactional.start()
            for reader in self.committed_readers:
                reader.start()

    def stop(self) -> None:
        self.running = False

    def _see_to_topics(self) -> None:
        """Make the topics that are missing, and delete one now and then. At rest, elect what else waits for
        leader.imbalance.check.interval.seconds, which is longer than a world lasts.
        """
        if not self.running:
            return
        world = self.world
        world.schedule.after(TOPICS_GAP_US, self._see_to_topics)
        leader = world.cluster.leader()
        if leader is None or not leader.node.active:
            return
        known = leader.node.image.topic_names()
        missing = [name for name in self._hosts if name not in known]
        if missing:
            request = CreateTopicsRequest([self._topic(name) for name in missing], 1000)
            world.workload.ask(leader, request, 7, lambda _: None)
        elif not world.healed and self.rng.chance(0.05):
            world.trace.kinds["topic of records deleted"] += 1
            deletion = DeleteTopicsRequest([DeleteTopicState(CHANGING)], (), 1000)
            world.workload.ask(leader, deletion, 6, lambda _: None)
        elif not world.healed and self.replicas.is_on:
            self._move(leader)
        elif world.healed and self.replicas.wait_for_last_leader():
            world.workload.ask(leader, ElectLeadersRequest(0, None, 1000), 2, lambda _: None)

    def _move(self, leader: Any) -> None:
        """Reassign a partition, or elect preferred leaders, now and then."""
        rng, ask = self.rng, self.world.workload.ask
        if rng.chance(0.1):
            name = rng.choice((STEADY, STEADY, OFFSETS_TOPIC))
            index, replicas = rng.below(COUNTS[name]), self._draw_replicas()
            part = reassign.ReassignablePartition(index, replicas)
            topics = [reassign.ReassignableTopic(name, [part])]
            ask(leader, reassign.AlterPartitionReassignmentsRequest(1000, True, topics), 1, self._reassigned)
        elif rng.chance(0.2):
            ask(leader, ElectLeadersRequest(0, None, 1000), 2, lambda _: None)

    def _reassigned(self, answer: Any) -> None:
        if answer is not None and not answer.error_code and not answer.responses[0].partitions[0].error_code:
            self.world.trace.kinds["replicas reassigned"] += 1

    def delay_of_isr_change_us(self) -> int:
        """How long an AlterPartition is under way."""
        if self.world.healed or not self.replicas.is_on or not self.rng.chance(0.15):
            return 0
        self.world.trace.kinds["isr change delayed"] += 1
        return self.rng.between(1 * MS, 2 * SECOND)

    def _topic(self, name: str) -> CreatableTopic:
        places = [CreatableReplicaAssignment(n, hosts) for n, hosts in enumerate(self._hosts[name])]
        return CreatableTopic(name, -1, -1, places, self._configs[name])

    # --- what clients know ---

    def leader_of(self, topic: str, index: int) -> tuple[BrokerSide, PartitionKey] | None:
        """The broker that leads a partition, as some broker's image has it, and the partition's id."""
        sides = self.sides()
        if not sides:
            return None
        image: Image = self.rng.choice(sides).view.image
        topic_id = image.topic_names().get(topic)
        state = None if topic_id is None else image.partition(topic_id, index)
        if topic_id is None or state is None:
            return None
        found = [side for side in sides if side.process.id == state.leader]
        if topic not in INTERNAL:
            self.partitions.names.setdefault(topic_id, topic)
        return (found[0], (topic_id, index)) if found else None

    def leads(self, side: BrokerSide, key: PartitionKey) -> bool:
        """Return whether a broker leads a partition, by what is committed and by what it knows."""
        if not self.replicas.is_on:
            return True
        state = self.replicas.committed().get(key)
        return state is not None and state.leader == side.process.id and not side.process.ended

    def leads_by_itself(self, broker_id: int) -> bool:
        """Return whether the ISRs of a broker's partitions are its own matter."""
        return self.replicas.is_on and broker_id in self.brokers

    def coordinator_of(self, group: str) -> BrokerSide | None:
        """The broker that coordinates a group, as some broker's image has it."""
        found = self.leader_of(OFFSETS_TOPIC, partition_for(group, OFFSETS_PARTITIONS))
        return None if found is None else found[0]

    def topic_id(self, topic: str) -> bytes | None:
        """The id of a topic, as some broker's image has it."""
        sides = self.sides()
        return self.rng.choice(sides).view.image.topic_names().get(topic) if sides else None

    def sides(self) -> list[BrokerSide]:
        """The brokers that run."""
        hosts = self.world.cluster.hosts
        return [process.broker for one in self.brokers if (process := hosts[one].process) is not None]

    # --- the network ---

    def ask(
        self,
        side: BrokerSide,
        requests: list[tuple[Message, Then]],
        wait_us: int = ANSWER_WAIT_US,
        versions: Mapping[int, int] = VERSIONS,
    ) -> None:
        """Send requests in one go; each gets an answer, or None. `versions`: those other than VERSIONS."""
        schedule, first = self.world.schedule, self._last + 1
        frames = []
        for message, then in requests:
            slot, key = self.new_number(), api_key(message)
            version = versions.get(key, VERSIONS[key])
            self._under_way[slot] = Exchange(first, key, version, side, then)
            parts = encode_request(key, version, slot & 0x7FFFFFFF, "client", message)
            frames.append(memoryview(b"".join(parts))[4:])
            schedule.after(wait_us, self._expire, slot)
        if not self._is_lost():
            schedule.after(self._delay_us(), side.receive, first, first, frames)

    def new_number(self) -> int:
        """The number of a connection or a slot."""
        self._last += 1
        return self._last

    def _delay_us(self) -> int:
        low, high = self.world.network.delay_us
        return min(self.rng.between(low, high), 500 * MS)

    def _is_lost(self) -> bool:
        return not self.world.healed and self.rng.chance(self.world.options.reader_loss / 4)

    def answered(self, slot: int, parts: list[Any]) -> None:
        """Carry an answer to its client, or to a broker."""
        if self.peers.answered(slot, parts):
            return
        exchange = self._under_way.get(slot)
        if exchange is not None and not self._is_lost():
            data = b"".join(parts)
            self.world.schedule.after(self._delay_us(), self._arrive, slot, data)

    def _arrive(self, slot: int, data: bytes) -> None:
        exchange = self._under_way.pop(slot, None)
        if exchange is not None:
            key = exchange.key
            self._close(exchange)
            if exchange.side.process.ended:  # with the connection
                exchange.then(None)
                return
            exchange.then(parse_response(key, exchange.version, memoryview(data)[4:])[1])

    def _expire(self, slot: int) -> None:
        exchange = self._under_way.pop(slot, None)
        if exchange is not None:
            self._close(exchange)
            exchange.then(None)

    def _close(self, exchange: Exchange) -> None:
        """Close a connection on which nothing is under way any more."""
        side = exchange.side
        if not any(one.connection_id == exchange.connection_id for one in self._under_way.values()):
            side.close_connection(exchange.connection_id)

    def process_ended(self, process: Process, *, silent: bool) -> None:
        """Note what must survive, and tell clients, unless the host has lost its power."""
        side = process.broker
        if side is None:
            return
        self.peers.process_ended(process, silent=silent)
        self.partitions.died(process.id, side.directories.all_logs(), power_loss=silent)
        if silent:
            if not self.replicas.is_on:
                self.transactions.lost()
            for group in GROUPS:
                hosts = self._hosts[OFFSETS_TOPIC][partition_for(group, OFFSETS_PARTITIONS)]
                if self.replicas.is_on or process.id in hosts:
                    self.groups.lost_power(group)
        else:
            for slot in [slot for slot, one in self._under_way.items() if one.side is side]:
                self.world.schedule.after(self._delay_us(), self._expire, slot)

    # --- at rest ---

    def has_gone_on(self) -> bool:
        """Return whether, since the world healed, every producer has had a record taken, and every group has
        committed all of its partitions. Damage may prevent it.
        """
        producers: list[Producer | TransactionalProducer] = [*self.producers, *self.transactional]
        for producer in producers:
            producer.wind_down()
        return (
            all(one.is_done for one in producers)
            and self._committed_is_read()
            and all(one.has_all() for one in self.members)
            and self.replicas.are_in_sync()
        )

    def _committed_is_read(self) -> bool:
        """Return whether readers have read all that is committed, unless something was lost."""
        if self.transactions.era or self.transactions_are_damaged():
            return True
        return all(one.has_all() for one in self.committed_readers)

    def _decided(self) -> dict[PartitionKey, DataLog]:
        """The logs that transactions write to, of brokers that lead or may lead."""
        found: dict[PartitionKey, DataLog] = {}
        for key, state in self.replicas.committed().items():
            if self.partitions.names.get(key[0]) == DECIDED:
                able = (state.leader, *state.isr, *state.elr)
                for side in sorted(self.sides(), key=lambda one: one.process.id != state.leader):
                    log = side.logs.directories.logs.get((DECIDED, key[1]))
                    if side.process.id in able and log is not None:
                        found.setdefault(key, log)
        return found

    def transactions_are_damaged(self) -> bool:
        """Return whether a bit has flipped where transactions write."""
        names = self.partitions.names
        known = [one for one in self.partitions.known.values() if names.get(one.key[0]) == DECIDED]
        return any(one.damaged_from is not None for one in known)

    def _lost_by_right(self, key: PartitionKey, end: int) -> None:
        self.partitions.lost(key, end)
        self.transactions.lost()
        for group in GROUPS:
            self.groups.lost_power(group)

    def at_rest(self) -> None:
        """Check the logs of all brokers."""
        for side in self.sides():
            self.partitions.at_rest(list(side.logs.directories.logs.values()))
        self.replicas.at_rest()
        if not self.transactions_are_damaged():
            self.transactions.at_rest(self._decided())

    def __repr__(self) -> str:
        return f"<Traffic of {self.producers} and {self.members}>"
