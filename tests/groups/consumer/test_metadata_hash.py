"""The hash of a topic is that of Apache Kafka, however long it is, with C and without."""

from __future__ import annotations

import random

import pytest

from kraftd.groups.consumer.metadata_hash import partition_bytes, topic_hash
from kraftd.groups.consumer.xxh3 import SHORT_BYTES, lanes_of, xxh3_64
from kraftd.wire.records import ENGINE

RACKS = {1: "us-east-1b", 2: "us-east-1a", 3: "é", 4: "us-east-1c"}
REPLICAS = ((1, 2), (), (5, 3, 4)) * 40


@pytest.mark.skipif(not hasattr(ENGINE, "xxh3_lanes"), reason="the engine in Python has no lanes")
def test_lanes_in_c_are_those_in_python() -> None:
    data = random.Random(3).randbytes(4_096)
    engine = vars(ENGINE)
    for length in [*range(SHORT_BYTES + 1, 1_200), 2_048, 2_049, 4_096]:
        assert engine["xxh3_lanes"](data[:length]) == lanes_of(data[:length])
    with pytest.raises(ValueError, match="too short"):
        engine["xxh3_lanes"](data[:SHORT_BYTES])


@pytest.mark.skipif(not hasattr(ENGINE, "partition_bytes"), reason="the engine in Python has one only")
def test_partitions_in_c_are_those_in_python() -> None:
    in_c, rng = vars(ENGINE)["partition_bytes"], random.Random(5)
    texts = tuple(rng.randbytes(length) for length in (0, 1, 7, 30))
    for _ in range(200):
        rank_of = {broker_id: rng.randrange(4) for broker_id in rng.sample(range(9), 6)}
        replicas = tuple(tuple(rng.choices(range(9), k=rng.randrange(5))) for _ in range(rng.randrange(9)))
        assert in_c(replicas, rank_of, texts) == partition_bytes(replicas, rank_of, texts)
    with pytest.raises(ValueError, match="no rack has this rank"):
        in_c(((1,),), {1: 4}, texts)


def test_hashes_stay_the_same() -> None:
    """They stand in records: a change of one is a rebalance of its groups."""
    assert xxh3_64(bytes(range(256)) * 9) == 6270062947519883826
    assert topic_hash(bytes(range(16)), "tö", REPLICAS, RACKS) == 1013909912700962183
    assert topic_hash(bytes(range(16)), "tö", REPLICAS, {}) == 315460615315477386
