"""The hash of a topic is that of Apache Kafka, however long it is, with C and without."""

from __future__ import annotations

import random
from hashlib import sha256
from struct import pack

import pytest

from kraftd.groups.consumer.metadata_hash import TopicHashing, group_hash, partition_bytes, topic_hash
from kraftd.groups.consumer.xxh3 import Xxh3, add_blocks, xxh3_64
from kraftd.wire.records import ENGINE

RACKS = {1: "us-east-1b", 2: "us-east-1a", 3: "é", 4: "us-east-1c"}
REPLICAS = ((1, 2), (), (5, 3, 4)) * 40
LONG = (*range(239, 320), *range(1_020, 1_030), *range(2_045, 2_055))


@pytest.mark.skipif(not hasattr(ENGINE, "xxh3_blocks"), reason="the engine in Python has no lanes")
def test_lanes_in_c_are_those_in_python() -> None:
    rng, engine = random.Random(3), vars(ENGINE)
    for count in range(5):
        lanes, blocks = [rng.getrandbits(64) for _ in range(8)], rng.randbytes(1_024 * count)
        assert engine["xxh3_blocks"](lanes, blocks) == add_blocks(lanes, blocks)
    for wrong in ([0] * 7, bytes(1_024)), ([0] * 8, bytes(1_000)):
        with pytest.raises(ValueError, match="not eight lanes and whole blocks"):
            engine["xxh3_blocks"](*wrong)


def test_a_hash_by_pieces_is_that_of_the_whole() -> None:
    rng = random.Random(4)
    data = rng.randbytes(3_100)
    for length in [*range(0, 600, 7), 240, 241, *range(1_000, 1_100), 2_048, 2_049, 3_072, 3_073, 3_100]:
        hashed, at = Xxh3(), 0
        while at < length:
            step = rng.choice((1, 63, 64, 65, 700, 1_024, 2_100))
            hashed.add(data[at : min(at + step, length)])
            at += step
        assert hashed.value() == xxh3_64(data[:length])
    hashing = TopicHashing(bytes(range(16)), "tö", len(REPLICAS), RACKS)
    for at in range(0, len(REPLICAS), 50):
        hashing.add(REPLICAS[at : at + 50])
    assert hashing.value() == topic_hash(bytes(range(16)), "tö", REPLICAS, RACKS)


@pytest.mark.skipif(not hasattr(ENGINE, "partition_bytes"), reason="the engine in Python has one only")
def test_partitions_in_c_are_those_in_python() -> None:
    in_c, rng = vars(ENGINE)["partition_bytes"], random.Random(5)
    texts = tuple(rng.randbytes(length) for length in (0, 1, 7, 30))
    for _ in range(200):
        rank_of = {broker_id: rng.randrange(4) for broker_id in rng.sample(range(9), 6)}
        replicas = tuple(tuple(rng.choices(range(9), k=rng.randrange(5))) for _ in range(rng.randrange(9)))
        first = rng.choice((0, 1, 70_000))
        assert in_c(first, replicas, rank_of, texts) == partition_bytes(first, replicas, rank_of, texts)
    with pytest.raises(ValueError, match="no rack has this rank"):
        in_c(0, ((1,),), {1: 4}, texts)


def test_hashes_stay_the_same() -> None:
    """They stand in records: a change of one is a rebalance of its groups."""
    data = bytes(range(7, 256)) * 3  # every rule for short ones; so says the library `xxhash` of Python, too
    short = b"".join(pack(">q", xxh3_64(data[:length])) for length in range(257))
    assert sha256(short).hexdigest()[:16] == "7c2436e1c8d7aa32"
    long = b"".join(pack(">q", xxh3_64((data * 3)[:length])) for length in LONG)
    assert sha256(long).hexdigest()[:16] == "d3c0a341451dc78f"
    assert xxh3_64(bytes(range(256)) * 9) == 6270062947519883826
    assert topic_hash(bytes(range(16)), "tö", REPLICAS, RACKS) == 1013909912700962183
    assert topic_hash(bytes(range(16)), "tö", REPLICAS, {}) == 315460615315477386
    assert group_hash({}) == 0
    assert group_hash({"b": 2, "a": 1}) == group_hash({"a": 1, "b": 2}) == 571542372673154031
