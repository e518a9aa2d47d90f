"""kraftd's codecs beside Java's: the same bytes and messages, encoded and decoded in one thread.

kraftd's engine is the one in use (`kraftd version` names it). Java runs `java/CodecBench.java` on the bytes
that kraftd encodes here. A figure is the best of several rounds: other load on the machine only adds to it.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from random import Random
from typing import Any

from bench.figures import Figures
from bench.measure import Plan
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraftd.messages.partition_record import PartitionRecord
from kraftd.wire.batch import build_batch, read_batch
from kraftd.wire.codec import decode, encode, encode_bytes
from kraftd.wire.crc32c import crc32c
from kraftd.wire.record_frame import VersionedRecord, decode_batch, encode_records
from testkit.java import AS_KAFKA_STARTS, classpath, compile_java, find_java, find_javac
from testkit.node import Kind

BATCH_RECORDS = 1_000
RECORD_VERSION = 1
MIB = 1 << 20
CLOCK_EVERY_S = 0.001


@dataclass(frozen=True)
class Rounds:
    """The number of rounds, and the duration of each."""

    count: int = 9
    round_s: float = 0.2
    warm_s: float = 1.5


FULL, QUICK = Rounds(), Rounds(3, 0.05, 0.5)


@dataclass(frozen=True)
class Work:
    """One timed operation: the bytes for Java, the operations in one call, and the unit of the figure."""

    run: Callable[[], object]
    data: bytes
    inner: int = 1
    unit_s: float = 1e-6


def codecs(kind: Kind, plan: Plan) -> Figures:
    """Every figure of one side. Raises RuntimeError without a Java compiler."""
    rounds = FULL if plan == Plan() else QUICK
    works = all_works()
    if kind == "apache":
        return java_figures(works, rounds)
    return {name: in_unit(name, best_s(work, rounds), work) for name, work in works.items()}


def best_s(work: Work, rounds: Rounds) -> float:
    """CPU seconds of one call in the best round."""
    run, best, many = work.run, float("inf"), 1
    for _ in range(rounds.count + 1):
        calls, began = 0, time.process_time()
        while (took_s := time.process_time() - began) < rounds.round_s:
            for _ in repeat(None, many):
                run()
            calls += many
        best = min(best, took_s / calls)
        many = max(1, int(CLOCK_EVERY_S / best))  # reading the clock costs as much as a small message
    return best


def in_unit(name: str, call_s: float, work: Work) -> float:
    if name == "codec_crc_mb_s":
        return len(work.data) / 1e6 / call_s
    return call_s / work.inner / work.unit_s


def java_figures(works: dict[str, Work], rounds: Rounds) -> Figures:
    javac = find_javac()
    if javac is None:
        raise RuntimeError("no Java compiler: the codecs cannot be measured beside Java's")
    classes = compile_java(javac, Path(__file__).with_name("java") / "CodecBench.java")
    with tempfile.TemporaryDirectory(prefix="kraftd-bench-") as folder:
        for name, work in works.items():
            Path(folder, name).write_bytes(work.data)
        done = subprocess.run(
            [
                *(str(find_java()), *AS_KAFKA_STARTS, "-cp", f"{classes}:{classpath()}", "CodecBench"),
                *(folder, str(rounds.count), str(rounds.round_s), str(rounds.warm_s)),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"CodecBench failed: {done.stderr}")
    figures = dict(line.split() for line in done.stdout.splitlines())
    return {name: in_unit(name, float(figures[name]), work) for name, work in works.items()}


def all_works() -> dict[str, Work]:
    """The timed operations by their figures' keys. Java knows the same names."""
    fetch, many, heartbeat = (
        fetch_request(1, 1),
        fetch_request(100, 10),
        BrokerHeartbeatRequest(3, 77, 123456),
    )
    metadata, records = metadata_response(), [VersionedRecord(record(n), RECORD_VERSION) for n in range(1000)]
    batch = build_batch(encode_records(records), 0, 1, 1_700_000_000_000)
    some = Random(1).randbytes(MIB)

    def decoding(message: Any, version: int, unit_s: float = 1e-6) -> Work:
        cls, data = type(message), encode_bytes(message, version)
        return Work(lambda: decode(cls, version, data, 0), data, unit_s=unit_s)

    return {
        "codec_fetch_request_decode_us": decoding(fetch, 18),
        "codec_fetch_request_encode_us": Work(lambda: encode(fetch, 17), encode_bytes(fetch, 17)),
        "codec_fetch_1000_decode_us": decoding(many, 18),
        "codec_heartbeat_decode_us": decoding(heartbeat, 1),
        "codec_metadata_decode_ms": decoding(metadata, 13, 1e-3),
        "codec_metadata_encode_ms": Work(
            lambda: encode(metadata, 13), encode_bytes(metadata, 13), unit_s=1e-3
        ),
        "codec_record_decode_us": Work(lambda: list(decode_batch(read_batch(batch))), batch, BATCH_RECORDS),
        "codec_record_encode_us": Work(
            lambda: build_batch(encode_records(records), 0, 1, 1_700_000_000_000), batch, BATCH_RECORDS
        ),
        "codec_crc_mb_s": Work(lambda: crc32c(some), some),
    }


def uuid(number: int) -> bytes:
    return (0x7777_0000_1111_2222 + number).to_bytes(8, "big") + (0x1111_2222_3333_4444).to_bytes(8, "big")


def fetch_request(topics: int, partitions: int) -> FetchRequest:
    """A request as a follower sends it."""
    return FetchRequest(
        cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
        replica_state=ReplicaState(3, 77),
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=8 * MIB,
        session_id=12345,
        session_epoch=7,
        topics=[
            FetchTopic(
                topic_id=uuid(topic),
                partitions=[
                    FetchPartition(
                        partition=index,
                        current_leader_epoch=5,
                        fetch_offset=1_000_000 + index,
                        last_fetched_epoch=5,
                        log_start_offset=100,
                        partition_max_bytes=MIB,
                        replica_directory_id=uuid(9_000),
                    )
                    for index in range(partitions)
                ],
            )
            for topic in range(topics)
        ],
    )


def metadata_response() -> MetadataResponse:
    """10,000 topics of 10 partitions on 100 brokers."""

    def partition(topic: int, index: int) -> MetadataResponsePartition:
        replicas = tuple((topic + index + replica) % 100 for replica in range(3))
        return MetadataResponsePartition(
            partition_index=index,
            leader_id=replicas[0],
            leader_epoch=5,
            replica_nodes=replicas,
            isr_nodes=replicas,
        )

    return MetadataResponse(
        cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
        controller_id=1,
        brokers=[
            MetadataResponseBroker(number, f"broker-{number}.kafka.example.com", 9092, f"rack-{number % 3}")
            for number in range(100)
        ],
        topics=[
            MetadataResponseTopic(
                name=f"topic-name-{topic}",
                topic_id=uuid(topic),
                partitions=[partition(topic, index) for index in range(10)],
            )
            for topic in range(10_000)
        ],
    )


def record(number: int) -> PartitionRecord:
    """One of many partition records: most are alike, some differ."""
    leader = number % 97
    replicas = (leader, leader + 1, leader + 2)
    return PartitionRecord(
        partition_id=number % 10,
        topic_id=uuid(number // 10),
        replicas=replicas,
        isr=replicas[:2] if number % 100 == 17 else replicas,
        leader=leader,
        leader_epoch=number % 50,
        partition_epoch=number % 100,
        directories=tuple(uuid(10_000 + replica) for replica in replicas),
    )
