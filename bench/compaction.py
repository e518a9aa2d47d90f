"""Compaction of a large log: CPU of the server's process, and fetches of another topic beside it."""

from __future__ import annotations

import time
from pathlib import Path

from bench.figures import Figures
from bench.load import CREATE_TOPICS_VERSION
from bench.measure import Plan, percentile
from bench.whole import FETCH_VERSION, check_produced, client_of, make_topic, produce_frame, whole_kafka
from kraftd.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from testkit.client import Client
from testkit.keyed_batches import keyed_batch
from testkit.node import CombinedNode, Kind
from testkit.process import wait_until

TOPIC, TOPIC_RESOURCE = "compacted", 2
SEGMENTS = 10
RECORDS, QUICK_RECORDS = 1 << 20, 1 << 16
BATCH_RECORDS, VALUE_BYTES, RECORD_BYTES = 512, 1_000, 1_024
KEYS_SHARE = 10  # one record in so many has a live key
FETCH_PAUSE_S, FETCHED_BATCHES = 0.005, 100
LIMIT_S = 170
NEVER, ALWAYS = "1.0", "0.01"  # min.cleanable.dirty.ratio
PROPERTIES = {"log.cleaner.backoff.ms": 500}
PRODUCE_VERSION = 11


def compaction(kind: Kind, plan: Plan) -> Figures:
    """1 GiB of records of 1 KiB, of which a tenth has the last value of its key."""
    records = QUICK_RECORDS if plan.starts < Plan().starts else RECORDS
    with whole_kafka(kind, PROPERTIES) as node, client_of(node) as client:
        beside_id = make_topic(node, "t")
        for _ in range(FETCHED_BATCHES):
            client.socket.sendall(produce_frame(client, 10))
            check_produced(client.receive_frame())
        make_compacted(client, records * RECORD_BYTES // SEGMENTS)
        fill(client, records)
        log = Path(str(node.data)) / f"{TOPIC}-0"
        before_bytes, before_s, began = size_bytes(log), node.cpu_s(), time.monotonic()
        set_ratio(client, ALWAYS)
        took_ms: list[float] = []
        while not is_cleaned(node, log):
            took_ms.append(fetch_ms(client, beside_id))
            time.sleep(FETCH_PAUSE_S)
            if time.monotonic() - began > LIMIT_S:
                raise TimeoutError("the log was not compacted")
        return {
            "compaction_cpu_s": node.cpu_s() - before_s,
            "compaction_wall_s": time.monotonic() - began,
            "compaction_left_percent": size_bytes(log) / before_bytes * 100,
            "compaction_fetch_p99_ms": percentile(took_ms, 0.99),
        }


def make_compacted(client: Client, segment_bytes: int) -> None:
    """The topic, which is compacted when its ratio is changed."""
    configs = {
        "cleanup.policy": "compact",
        "segment.bytes": str(segment_bytes),
        "min.cleanable.dirty.ratio": NEVER,
    }
    rows = [CreatableTopicConfig(name, value) for name, value in configs.items()]
    request = CreateTopicsRequest([CreatableTopic(TOPIC, 1, 1, configs=rows)])
    (answer,) = client.call(request, CREATE_TOPICS_VERSION).topics
    if answer.error_code:
        raise RuntimeError(f"the topic was refused: {answer!r}")


def fill(client: Client, records: int) -> None:
    """Produce the records; keys come round in the same order, ten times."""
    keys, value = records // KEYS_SHARE, b"x" * VALUE_BYTES

    def is_taken(first: int) -> bool:
        rows = [(b"key-%012d" % (number % keys), value) for number in range(first, first + BATCH_RECORDS)]
        batch = keyed_batch(rows, 0, -1, int(time.time() * 1000))
        topic = TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, batch)])
        answer = client.call(ProduceRequest(None, 1, 30_000, [topic]), PRODUCE_VERSION)
        return not answer.responses[0].partition_responses[0].error_code

    for first in range(0, records, BATCH_RECORDS):
        wait_until(lambda at=first: is_taken(at), "records are taken")  # type: ignore[misc]


def set_ratio(client: Client, ratio: str) -> None:
    """Set min.cleanable.dirty.ratio of the topic."""
    resource = AlterConfigsResource(
        TOPIC_RESOURCE, TOPIC, [AlterableConfig("min.cleanable.dirty.ratio", 0, ratio)]
    )
    (answer,) = client.call(IncrementalAlterConfigsRequest([resource]), 1).responses
    if answer.error_code:
        raise RuntimeError(f"the change was refused: {answer!r}")


def fetch_ms(client: Client, topic_id: bytes) -> float:
    """The time of a fetch of a few batches of another topic."""
    position = FetchPartition(0, partition_max_bytes=8_192)
    request = FetchRequest(session_epoch=-1, topics=[FetchTopic(topic_id=topic_id, partitions=[position])])
    frame = client.frame(request, FETCH_VERSION)
    began = time.perf_counter()
    client.socket.sendall(frame)
    client.receive_frame()
    return (time.perf_counter() - began) * 1000


def is_cleaned(node: CombinedNode, log: Path) -> bool:
    """Return whether everything before the last segment is compacted, by the checkpoint of the cleaner."""
    try:
        lines = (Path(str(node.data)) / "cleaner-offset-checkpoint").read_text().splitlines()
    except OSError:
        return False
    offsets = [int(line.split()[2]) for line in lines[2:] if line.split()[0] == TOPIC]
    return bool(offsets) and offsets[0] >= max(int(path.stem) for path in log.glob("*.log"))


def size_bytes(log: Path) -> int:
    """The bytes of its segments."""
    return sum(path.stat().st_size for path in log.glob("*.log"))
