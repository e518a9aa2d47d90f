"""Fetch sessions compared with Kafka's FetchManager, FetchContext and FetchSession in random histories."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Hashable, Iterator
from pathlib import Path
from random import Random

import pytest

from kraftd.fetch.parked_fetches import ParkedFetches
from kraftd.fetch.session_cache import CacheLimits
from kraftd.fetch.sessions import FetchContext, FetchSessions
from kraftd.fetch.slots import Slot
from kraftd.fetch.source import Reader
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kraftd.messages.fetch_response import FetchResponse
from kraftd.types import parse_uuid, uuid_text
from kraftd.wire.error_code import ErrorCode
from testkit.java import QUICK_START, classpath, compile_java, find_java, find_javac
from tests.fetch.at_once import AtOnce
from tests.fetch.histories import Client, World

pytestmark = pytest.mark.kafka

HISTORIES = 200
STEPS = 60
EVICTION_MS = 1000


class Kafka:
    """Kafka's classes in a process of their own."""

    def __init__(self, classes: Path) -> None:
        path = os.pathsep.join([str(classes), classpath()])
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        main = "org.apache.kafka.server.FetchSessionOracle"
        self.process = subprocess.Popen(
            [str(find_java()), *QUICK_START, quiet, "-cp", path, main],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, *words: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def ask(self, *words: object) -> str:
        self.send(*words)
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    javac = find_javac()
    if javac is None:
        pytest.skip("no javac beside the java in use")
    oracle = Kafka(compile_java(javac, Path(__file__).with_name("java") / "FetchSessionOracle.java"))
    yield oracle
    oracle.close()


def listed(entries: list[str]) -> str:
    return ";".join(entries) or "-"


class Comparison:
    """One history, which both Kafka's classes and ours get."""

    def __init__(self, kafka: Kafka, seed: int) -> None:
        self.kafka = kafka
        self.random = random = Random(seed)
        self.ids: deque[int] = deque()  # ours get the session ids that Kafka draws
        self.world = World(random, self._changed)
        slots = random.choice([1, 2, 3, 10])
        limits = CacheLimits(slots=slots, eviction_ms=EVICTION_MS)
        sessions = FetchSessions(self.world.source, limits, self.ids.popleft)
        self.sessions, self.parked = AtOnce(sessions), AtOnce(ParkedFetches(sessions))
        self.kafka.send("reset", slots, EVICTION_MS)
        self.clients = [Client(random.choice([12, 13, 16]), random.choice([-1, -1, 5])) for _ in range(4)]
        self.under_way: list[tuple[Client, FetchRequest, FetchContext, str, int]] = []
        self.answered = 0
        self.now_ms = 0

    def _changed(self, key: Hashable) -> None:
        if hasattr(self, "parked"):
            assert self.parked.changed(key, self.now_ms) == []

    def step(self) -> None:
        act = self.random.random()
        self.now_ms += self.random.choice([1, 1, 1, 50, 700])
        self.kafka.send("now", self.now_ms)
        if act < 0.4:
            self.world.change()
        elif act < 0.45 and self.under_way:
            self.under_way.pop(0)  # the connection is lost
        elif act < 0.7 or not self.under_way:
            self.begin(self.random.choice(self.clients))
            if self.random.random() < 0.8:
                self.answer(len(self.under_way) - 1)
        else:
            self.answer(self.random.randrange(len(self.under_way)))

    def begin(self, client: Client) -> None:
        version, request = client.request(self.world)
        names = [f"{uuid_text(one)},{name}" for one, name in self.world.source.names.items()]
        fetched = [
            f"{self.place(version, t, p.partition)},{p.fetch_offset},{p.partition_max_bytes},"
            f"{p.current_leader_epoch},{p.last_fetched_epoch}"
            for t in request.topics
            for p in t.partitions
        ]
        forgotten = [
            self.place(version, t, index) for t in request.forgotten_topics_data for index in t.partitions
        ]
        self.answered += 1
        key = str(self.answered)
        to_read = self.kafka.ask(
            "begin", key, version, client.replica_id, request.session_id, request.session_epoch,
            listed(names), listed(fetched), listed(forgotten),
        )  # fmt: skip
        context = self.sessions.begin(request, version, self.now_ms)
        context.subscription.parked = key, context
        context.leave()
        self.under_way.append((client, request, context, f"{key} {to_read}", client.replica_id))

    def place(self, version: int, topic: FetchTopic | ForgottenTopic, index: int) -> str:
        if version < 13:
            return f"{topic.topic},0,{index}"
        name = self.world.source.names.get(topic.topic_id) or "-"
        return f"{name},{uuid_text(topic.topic_id)},{index}"

    def answer(self, place: int) -> None:
        client, request, context, key_and_reads, replica_id = self.under_way.pop(place)
        key, to_read = key_and_reads.split(" ")
        context.subscription.parked = None
        read = self.read(to_read, Reader(replica_id), max(0, request.max_bytes))
        theirs = self.kafka.ask("answer", key, listed(read))
        error_code, session_id = map(int, theirs.split(" ")[:2])
        if request.session_epoch == 0 and session_id:
            self.ids.append(session_id)
        response = self.sessions.answer(context, self.now_ms)
        assert described(response) == theirs
        assert not self.ids
        client.on_answer(request.session_epoch, error_code, session_id)

    def read(self, to_read: str, reader: Reader, left_bytes: int) -> list[str]:
        """Read the partitions one after the other, as Kafka's broker does for its sessions."""
        served, refused, taken = [], [], 0
        for entry in to_read.split(";") if to_read != "-" else []:
            name, one, index, offset, max_bytes, epoch, last_epoch = entry.split(",")
            place = f"{name},{one},{index}"
            partition = FetchPartition(
                int(index), int(epoch), int(offset), int(last_epoch), partition_max_bytes=int(max_bytes)
            )
            slot = Slot(self.sessions.cache, (name, int(index)), name, parsed(one), partition, 0)  # type: ignore[arg-type]
            topic = self.world.source.topics.get(name)
            if name == "-":
                refused.append(f"{place},{int(ErrorCode.UNKNOWN_TOPIC_ID)},-1,-1,-1,0")
                continue
            limit = min(partition.partition_max_bytes, left_bytes)
            data, size = self.world.source.read(slot, reader, limit, not taken)
            line = f"{place},{int(data.error_code)},{data.high_watermark},{data.log_start_offset}"
            line += f",{data.diverging_epoch.epoch},{size}"
            taken += size
            left_bytes = max(0, left_bytes - size)
            exists = topic is not None and int(index) < len(topic[1])
            (served if exists else refused).append(line)
        return served + refused


def parsed(one: str) -> bytes:
    return bytes(16) if one == "0" else parse_uuid(one)


def described(response: FetchResponse) -> str:
    partitions = [
        f"{topic.topic if topic.topic_id == bytes(16) else uuid_text(topic.topic_id)},{data.partition_index},"
        f"{int(data.error_code)},{data.high_watermark},{data.log_start_offset},{data.diverging_epoch.epoch},"
        f"{len(data.records or b'')}"
        for topic in response.responses
        for data in topic.partitions
    ]
    return f"{int(response.error_code)} {response.session_id} {len(response.responses)} {listed(partitions)}"


def test_random_histories_get_the_answers_of_kafkas_sessions__kip227(kafka: Kafka) -> None:
    evictions = 0
    for seed in range(HISTORIES):
        comparison = Comparison(kafka, seed)
        for _ in range(STEPS):
            comparison.step()
        evictions += comparison.sessions.cache.evictions
    assert evictions > HISTORIES
