"""What goes through the brokers of a world: the topics, the clients, and the connections that carry requests.

A client has one connection a request, or several requests on one. A request or its answer may be lost: then
the client gives up after a while.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kraftd.ground.java_hashes import partition_for
from kraftd.log.data.data_log import DataLog
from kraftd.messages.create_topics_request import (
    CreatableTopicConfig,
)
from kraftd.metadata.image import Image
from kraftd.named_tuple import NamedTuple
from kraftd.simulation.brokers.broker_side import OFFSETS_PARTITIONS, BrokerSide
from kraftd.simulation.brokers.classic_member import ClassicMember
from kraftd.simulation.brokers.committed_reader import CommittedReader
from kraftd.simulation.brokers.consumer_member import ConsumerMember
from kraftd.simulation.brokers.keyed_producer import COMPACTED, COMPACTED_PARTITIONS, KeyedProducer
from kraftd.simulation.brokers.member import Member
from kraftd.simulation.brokers.peers import Peers
from kraftd.simulation.brokers.producer import Producer
from kraftd.simulation.brokers.share_group import (
    SHARE_STATE_PARTITIONS,
    SHARE_STATE_TOPIC,
    ShareGroup,
)
from kraftd.simulation.brokers.topics import CHANGING, OFFSETS_TOPIC, STEADY, Topics
from kraftd.simulation.brokers.transactional_producer import (
    DECIDED,
    DECIDED_PARTITIONS,
    TRANSACTIONS_PARTITIONS,
    TRANSACTIONS_TOPIC,
    TransactionalProducer,
)
from kraftd.simulation.checkers.brokers.compaction import CompactionChecker
from kraftd.simulation.checkers.brokers.groups import GroupChecker
from kraftd.simulation.checkers.brokers.owners import OwnerChecker
from kraftd.simulation.checkers.brokers.partitions import PartitionChecker, PartitionKey
from kraftd.simulation.checkers.brokers.replicas import ReplicaChecker
from kraftd.simulation.checkers.brokers.shares import ShareChecker
from kraftd.simulation.checkers.brokers.transactions import TransactionChecker
from kraftd.simulation.processes.process import Process
from kraftd.simulation.protocols import World
from kraftd.simulation.schedule import MS, SECOND
from kraftd.wire.frames import encode_request, parse_response
from kraftd.wire.message import Message
from kraftd.wire.table import api_key

PARTITIONS = 3
COUNTS = {
    OFFSETS_TOPIC: OFFSETS_PARTITIONS,
    STEADY: PARTITIONS,
    CHANGING: PARTITIONS,
    TRANSACTIONS_TOPIC: TRANSACTIONS_PARTITIONS,
    DECIDED: DECIDED_PARTITIONS,
}
COUNTS_OF_LOADS = {
    "compaction": {COMPACTED: COMPACTED_PARTITIONS},
    "share groups": {SHARE_STATE_TOPIC: SHARE_STATE_PARTITIONS},
}
NOT_DENSE = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC, COMPACTED)  # or of coordinators
CLASSIC_GROUPS = ("group-a", "group-b")
CONSUMER_GROUPS = ("consumer-group",)
GROUPS = CLASSIC_GROUPS + CONSUMER_GROUPS
ANSWER_WAIT_US = 5 * SECOND
VERSIONS = {
    0: 13,
    1: 16,
    8: 9,
    9: 9,
    11: 9,
    12: 4,
    13: 5,
    14: 5,
    22: 4,
    24: 3,
    26: 5,
    68: 1,
    76: 1,
    78: 2,
}  # by API key
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
        self.owners = OwnerChecker(world)
        self.partitions.on_loss.append(self.groups.lost_end)
        self.compaction = CompactionChecker(world)
        self.partitions.on_loss.append(self.compaction.lost_end)
        self.shares = ShareChecker(world)
        self.partitions.on_loss.append(self.shares.lost_end)
        self.counts = dict(COUNTS)
        for load in world.options.loads:
            self.counts |= COUNTS_OF_LOADS.get(load, {})
        self.replicas = ReplicaChecker(world, self.partitions, tuple(self.counts), differ=(COMPACTED,))
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
        self.consumers: list[ConsumerMember] = []  # of consumer groups, some of the members
        self.transactional: list[TransactionalProducer] = []
        self.committed_readers: list[CommittedReader] = []
        self.keyed_producers: list[KeyedProducer] = []
        self.share_group = ShareGroup(self)
        self.topics = Topics(self)
        self._under_way: dict[int, Exchange] = {}
        self._lasting: set[int] = set()  # connections that clients close themselves
        self._last = 0
        if self.brokers:
            self._place()

    def _place(self) -> None:
        """Draw which broker has which partition, the topics' configs, and the clients."""
        rng = self.rng
        self.topics.hosts = {
            name: [self.topics.draw_replicas(rng) for _ in range(count)] for name, count in COUNTS.items()
        }
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
        self.topics.configs = {
            OFFSETS_TOPIC: of_offsets,
            STEADY: configs,
            CHANGING: configs,
            TRANSACTIONS_TOPIC: of_offsets,
            DECIDED: lasting,
        }
        places = [(STEADY, index) for index in range(PARTITIONS)] * 2 + [(CHANGING, 0), (CHANGING, 1)]
        self.producers = [Producer(self, number, *place) for number, place in enumerate(places)]
        names = [CLASSIC_GROUPS[number % len(CLASSIC_GROUPS)] for number in range(rng.between(3, 5))]
        self.members = [ClassicMember(self, number, name) for number, name in enumerate(names)]
        self.transactional = [TransactionalProducer(self, number) for number in range(rng.between(2, 3))]
        self.committed_readers = [CommittedReader(self, index) for index in range(DECIDED_PARTITIONS)]
        if "consumer groups" in self.world.options.loads:
            count = self.world.rng("consumer groups").between(2, 4)
            self.consumers = [ConsumerMember(self, 100 + at, CONSUMER_GROUPS[0]) for at in range(count)]
            self.members += self.consumers
        if "compaction" in self.world.options.loads:
            self._place_compacted(of_offsets)
        if "share groups" in self.world.options.loads:
            self.share_group.place()
            of_state = self.world.rng("share groups")
            hosts = [self.topics.draw_replicas(of_state) for _ in range(SHARE_STATE_PARTITIONS)]
            self.topics.hosts[SHARE_STATE_TOPIC], self.topics.configs[SHARE_STATE_TOPIC] = hosts, of_offsets

    def _place_compacted(self, configs: list[CreatableTopicConfig]) -> None:
        rng = self.world.rng("compaction")
        options = {
            "segment.ms": rng.choice(("300", "1500")),
            "min.cleanable.dirty.ratio": rng.choice(("0.01", "0.5")),
            "delete.retention.ms": rng.choice(("0", "2000", "86400000")),
            "min.compaction.lag.ms": rng.choice(("0", "0", "1000")),
            "file.delete.delay.ms": "1000",
        }
        hosts = [self.topics.draw_replicas(rng) for _ in range(COMPACTED_PARTITIONS)]
        own = [CreatableTopicConfig(name, value) for name, value in options.items()]
        self.topics.hosts[COMPACTED], self.topics.configs[COMPACTED] = hosts, [*configs, *own]
        self.keyed_producers = [KeyedProducer(self, index) for index in range(COMPACTED_PARTITIONS)]

    # --- driving ---

    def start(self) -> None:
        if self.brokers:
            self.running = True
            self.topics.start()
            for producer in self.producers:
                producer.start()
            for member in self.members:
                member.start()
            for transactional in self.transactional:
                transactional.start()
            for reader in self.committed_readers:
                reader.start()
            for keyed in self.keyed_producers:
                keyed.start()
            for consumer in self.share_group.consumers:
                consumer.start()

    def stop(self) -> None:
        self.running = False

    def delay_of_isr_change_us(self) -> int:
        """How long an AlterPartition is under way."""
        if self.world.healed or not self.replicas.is_on or not self.rng.chance(0.15):
            return 0
        self.world.trace.kinds["isr change delayed"] += 1
        return self.rng.between(1 * MS, 2 * SECOND)

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
        if topic not in NOT_DENSE:
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

    def leads_group(self, side: BrokerSide, group: str) -> bool:
        """Return whether a broker coordinates a group, by what is committed."""
        topic_id = self.topic_id(OFFSETS_TOPIC)
        index = partition_for(group, OFFSETS_PARTITIONS)
        return topic_id is not None and self.leads(side, (topic_id, index))

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
        connection_id: int | None = None,
    ) -> None:
        """Send requests in one go; each gets an answer, or None. `versions`: those other than VERSIONS.

        connection_id: of `connect`; None for a connection for these requests alone.
        """
        schedule, first = self.world.schedule, self._last + 1
        connection_id = connection_id or first
        frames = []
        for message, then in requests:
            slot, key = self.new_number(), api_key(message)
            version = versions.get(key, VERSIONS[key])
            self._under_way[slot] = Exchange(connection_id, key, version, side, then)
            parts = encode_request(key, version, slot & 0x7FFFFFFF, "client", message)
            frames.append(memoryview(b"".join(parts))[4:])
            schedule.after(wait_us, self._expire, slot)
        if not self._is_lost():
            schedule.after(self._delay_us(), side.receive, connection_id, first, frames)

    def connect(self) -> int:
        """A connection that stays open until `hang_up`."""
        number = self.new_number()
        self._lasting.add(number)
        return number

    def hang_up(self, side: BrokerSide, connection_id: int) -> None:
        self._lasting.discard(connection_id)
        side.close_connection(connection_id)

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
        if exchange.connection_id in self._lasting:
            return
        if not any(one.connection_id == exchange.connection_id for one in self._under_way.values()):
            side.close_connection(exchange.connection_id)

    def process_ended(self, process: Process, *, silent: bool) -> None:
        """Note what must survive, and tell clients, unless the host has lost its power."""
        side = process.broker
        if side is None:
            return
        self.peers.process_ended(process, silent=silent)
        self.partitions.died(process.id, side.directories.all_logs(), power_loss=silent)
        self.compaction.died(process.id, side.directories.all_logs(), power_loss=silent)
        if silent:
            self.shares.lost_power()
            if not self.replicas.is_on:
                self.transactions.lost()
            for group in GROUPS:
                hosts = self.topics.hosts[OFFSETS_TOPIC][partition_for(group, OFFSETS_PARTITIONS)]
                if self.replicas.is_on or process.id in hosts:
                    self._lost_group(group)
        else:
            for slot in [slot for slot, one in self._under_way.items() if one.side is side]:
                self.world.schedule.after(self._delay_us(), self._expire, slot)

    def log_opened(self, process: Process, log: DataLog | None) -> None:
        """Note that a log is open after a start."""
        self.partitions.opened(process.id, log)
        if log is not None and self.compaction.opened(process.id, log):
            key = log.topic_id or b"", log.partition
            if self.replicas.is_on:
                self.replicas.lost_end(process.id, key, log.log_end)
            else:
                self.compaction.lost_end(key, log.log_end)

    # --- at rest ---

    def have_settled(self) -> bool:
        """G3: return whether every consumer group has given each partition to one member."""
        return not self.consumers or self.owners.have_settled(self.consumers, self.partition_count)

    def has_gone_on(self) -> bool:
        """Return whether, since the world healed, every producer has had a record taken, and every group has
        committed all of its partitions. Damage may prevent it.
        """
        producers: list[Any] = [*self.producers, *self.transactional, *self.keyed_producers]
        for producer in producers:
            producer.wind_down()
        return (
            all(one.is_done for one in producers)
            and self._committed_is_read()
            and all(one.has_all() for one in self.members)
            and self.share_group.has_all()
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
            self._lost_group(group)

    def _lost_group(self, group: str) -> None:
        self.shares.lost_power()
        self.groups.lost_power(group)
        self.owners.lost_power(group)

    def at_rest(self) -> None:
        """Check the logs of all brokers."""
        for side in self.sides():
            self.partitions.at_rest(list(side.logs.directories.logs.values()))
            self.compaction.at_rest(side)
        self.replicas.at_rest()
        self.share_group.at_rest()
        if not self.transactions_are_damaged():
            self.transactions.at_rest(self._decided())

    def __repr__(self) -> str:
        return f"<Traffic of {self.producers} and {self.members}>"
