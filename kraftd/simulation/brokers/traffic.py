"""What goes through the brokers of a world: the topics, the clients, and the connections that carry requests.

A client has one connection a request, or several requests on one. A request or its answer may be lost: then
the client gives up after a while.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kraftd.groups.java_hashes import partition_for
from kraftd.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.metadata.image import Image
from kraftd.simulation.brokers.broker_side import OFFSETS_PARTITIONS, BrokerSide
from kraftd.simulation.brokers.member import Member
from kraftd.simulation.brokers.producer import Producer
from kraftd.simulation.checkers.groups import GroupChecker
from kraftd.simulation.checkers.partitions import PartitionChecker, PartitionKey
from kraftd.simulation.process import Process
from kraftd.simulation.protocols import World
from kraftd.simulation.schedule import MS, SECOND
from kraftd.wire.frames import encode_request, parse_response
from kraftd.wire.message import Message
from kraftd.wire.table import api_key

OFFSETS_TOPIC = "__consumer_offsets"
STEADY, CHANGING = "records", "fleeting"  # the second is deleted and made again
PARTITIONS = 3
COUNTS = {OFFSETS_TOPIC: OFFSETS_PARTITIONS, STEADY: PARTITIONS, CHANGING: PARTITIONS}
GROUPS = ("group-a", "group-b")
ANSWER_WAIT_US = 5 * SECOND
TOPICS_GAP_US = 1 * SECOND
VERSIONS = {0: 13, 1: 16, 8: 9, 9: 9, 11: 9, 12: 4, 13: 5, 14: 5, 22: 4}  # by API key
Then = Callable[[Any], None]  # called with the answer, or None without one


class Exchange(NamedTuple):
    """A request that is under way."""

    connection_id: int
    key: int
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
        self.running = False
        self.steady, self.partition_count = STEADY, PARTITIONS  # what groups consume
        self.brokers: list[int] = world.cluster.broker_ids
        self.producers: list[Producer] = []
        self.members: list[Member] = []
        self._under_way: dict[int, Exchange] = {}
        self._last = 0
        if self.brokers:
            self._place()

    def _place(self) -> None:
        """Draw which broker has which partition, the topics' configs, and the clients."""
        rng = self.rng
        self._hosts = {
            name: [rng.choice(self.brokers) for _ in range(count)] for name, count in COUNTS.items()
        }
        flush = rng.choice(("1", "5", None, None))
        options = {
            "flush.messages": flush,
            "segment.ms": rng.choice(("1500", None)),
            "segment.index.bytes": rng.choice(("24", None)),
            "index.interval.bytes": rng.choice(("0", "200")),
            "retention.bytes": rng.choice(("2000", None, None)),
            "file.delete.delay.ms": "1000",
        }
        configs = [CreatableTopicConfig(name, value) for name, value in options.items() if value is not None]
        self.partitions.may_delete = options["retention.bytes"] is not None
        of_offsets = [CreatableTopicConfig("cleanup.policy", "compact")]
        if flush is not None:
            of_offsets.append(CreatableTopicConfig("flush.messages", flush))
        self._configs = {OFFSETS_TOPIC: of_offsets, STEADY: configs, CHANGING: configs}
        places = [(STEADY, index) for index in range(PARTITIONS)] * 2 + [(CHANGING, 0), (CHANGING, 1)]
        self.producers = [Producer(self, number, *place) for number, place in enumerate(places)]
        names = [GROUPS[number % len(GROUPS)] for number in range(rng.between(3, 5))]
        self.members = [Member(self, number, name) for number, name in enumerate(names)]

    # --- driving ---

    def start(self) -> None:
        if self.brokers:
            self.running = True
            self.world.schedule.after(TOPICS_GAP_US, self._see_to_topics)
            for producer in self.producers:
                producer.start()
            for member in self.members:
                member.start()

    def stop(self) -> None:
        self.running = False

    def _see_to_topics(self) -> None:
        """Make the topics that are missing, and delete one now and then."""
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

    def _topic(self, name: str) -> CreatableTopic:
        places = [CreatableReplicaAssignment(n, (host,)) for n, host in enumerate(self._hosts[name])]
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
        if topic != OFFSETS_TOPIC:
            self.partitions.names.setdefault(topic_id, topic)
        return (found[0], (topic_id, index)) if found else None

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
        self, side: BrokerSide, requests: list[tuple[Message, Then]], wait_us: int = ANSWER_WAIT_US
    ) -> None:
        """Send requests in one go; each gets an answer, or None."""
        schedule, first = self.world.schedule, self._last + 1
        frames = []
        for message, then in requests:
            self._last += 1
            key = api_key(message)
            self._under_way[self._last] = Exchange(first, key, side, then)
            parts = encode_request(key, VERSIONS[key], self._last & 0x7FFFFFFF, "client", message)
            frames.append(memoryview(b"".join(parts))[4:])
            schedule.after(wait_us, self._expire, self._last)
        if not self._is_lost():
            schedule.after(self._delay_us(), side.receive, first, first, frames)

    def _delay_us(self) -> int:
        low, high = self.world.network.delay_us
        return min(self.rng.between(low, high), 500 * MS)

    def _is_lost(self) -> bool:
        return not self.world.healed and self.rng.chance(self.world.options.reader_loss / 4)

    def answered(self, slot: int, parts: list[Any]) -> None:
        """Carry an answer to its client."""
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
            exchange.then(parse_response(key, VERSIONS[key], memoryview(data)[4:])[1])

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
        self.partitions.died(list(side.logs.directories.logs.values()), power_loss=silent)
        if silent:
            for group in GROUPS:
                if self._hosts[OFFSETS_TOPIC][partition_for(group, OFFSETS_PARTITIONS)] == process.id:
                    self.groups.lost_power(group)
        else:
            for slot in [slot for slot, one in self._under_way.items() if one.side is side]:
                self.world.schedule.after(self._delay_us(), self._expire, slot)

    # --- at rest ---

    def has_gone_on(self) -> bool:
        """Return whether, since the world healed, every producer has had a record taken, and every group has
        committed all of its partitions. Damage may prevent it.
        """
        for producer in self.producers:
            producer.wind_down()
        return all(one.is_done for one in self.producers) and all(one.has_all() for one in self.members)

    def at_rest(self) -> None:
        """Check the logs of all brokers."""
        for side in self.sides():
            self.partitions.at_rest(list(side.logs.directories.logs.values()))

    def __repr__(self) -> str:
        return f"<Traffic of {self.producers} and {self.members}>"
