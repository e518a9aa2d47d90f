"""Compressed records whose stream ends too early, or is not the end of the batch: both nodes answer alike."""

from __future__ import annotations

from random import Random

import pytest

from kraftd.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.wire.compression import compress
from testkit.random_batches import Parts, random_record
from tests.kafka.broker.pair import BrokerPair

pytestmark = pytest.mark.kafka

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
PRODUCERS, RECOMPRESSED = "ends", "codec.ends"
COUNT = 40


def sound(seed: int = 1) -> Parts:
    random = Random(seed)
    records = [random_record(random, 0, offset, False) for offset in range(COUNT)]
    return Parts(records, count=COUNT, last_offset_delta=COUNT - 1)


def bodies() -> dict[str, tuple[int, bytes]]:
    """Codecs and compressed records, by what is wrong with them."""
    records = sound().records
    whole = b"".join(records)
    halves = b"".join(records[:20]), b"".join(records[20:])
    gzip, snappy, lz4, zstd = (compress(codec, whole) for codec in (GZIP, SNAPPY, LZ4, ZSTD))
    two = [compress(GZIP, half) for half in halves]
    frames = [compress(LZ4, half) for half in halves]
    return {
        "a gzip stream without data": (GZIP, gzip[:10]),
        "half of a gzip header": (GZIP, gzip[:5]),
        "half of a gzip stream": (GZIP, gzip[: len(gzip) // 2]),
        "a gzip stream without its trailer": (GZIP, gzip[:-8]),
        "a gzip stream with half of its trailer": (GZIP, gzip[:-4]),
        "a gzip stream with a wrong checksum": (GZIP, gzip[:-8] + b"1234" + gzip[-4:]),
        "two bytes behind a gzip stream": (GZIP, gzip + b"xx"),
        "many bytes behind a gzip stream": (GZIP, gzip + b"x" * 40),
        "half of the records in each of two gzip streams": (GZIP, b"".join(two)),
        "a second gzip stream that is cut": (GZIP, two[0] + two[1][: len(two[1]) // 2]),
        "a gzip stream behind all records": (GZIP, gzip + two[0]),
        "half of the records in a gzip stream": (GZIP, two[0]),
        "bytes behind an LZ4 frame": (LZ4, lz4 + b"xxxxxx"),
        "a second LZ4 frame": (LZ4, lz4 + frames[0]),
        "half of the records in each of two LZ4 frames": (LZ4, b"".join(frames)),
        "half of an LZ4 frame": (LZ4, lz4[: len(lz4) // 2]),
        "half of a snappy block": (SNAPPY, snappy[: len(snappy) // 2]),
        "half of a zstd frame": (ZSTD, zstd[: len(zstd) // 2]),
    }


@pytest.fixture(scope="module", autouse=True)
def _topics(pair: BrokerPair) -> None:
    zstd = [CreatableTopicConfig("compression.type", "zstd")]
    topics = [CreatableTopic(PRODUCERS, 1, 1), CreatableTopic(RECOMPRESSED, 1, 1, configs=zstd)]
    pair.ask(CreateTopicsRequest(topics, 10_000), 7)
    pair.settle()


@pytest.mark.parametrize("what", bodies())
@pytest.mark.parametrize("topic", [PRODUCERS, RECOMPRESSED])
def test_records_are_taken_or_refused_as_by_a_stock_node(pair: BrokerPair, what: str, topic: str) -> None:
    parts = sound()
    parts.codec, parts.body = bodies()[what]
    data = TopicProduceData(topic, partition_data=[PartitionProduceData(0, parts.encoded())])
    request = ProduceRequest(None, 1, 10_000, [data])
    kafka, kraftd = pair.views(request, 12, pair.ask(request, 12))
    assert kafka == kraftd
