"""The hash of a topic is that of Apache Kafka, however long it is, with C and without."""

from __future__ import annotations

import random

import pytest

from kraftd.groups.consumer.metadata_hash import topic_hash
from kraftd.groups.consumer.xxh3 import SHORT_BYTES, lanes_of, xxh3_64
from kraftd.wire.records import ENGINE

RACKS = [["us-east-1b", "us-east-1a"], [], ["é", "us-east-1c"]] * 40


@pytest.mark.skipif(not hasattr(ENGINE, "xxh3_lanes"), reason="the engine in Python has no lanes")
def test_lanes_in_c_are_those_in_python() -> None:
    data = random.Random(3).randbytes(4_096)
    engine = vars(ENGINE)
    for length in [*range(SHORT_BYTES + 1, 1_200), 2_048, 2_049, 4_096]:
        assert engine["xxh3_lanes"](data[:length]) == lanes_of(data[:length])
    with pytest.raises(ValueError, match="too short"):
        engine["xxh3_lanes"](data[:SHORT_BYTES])


def test_hashes_stay_the_same() -> None:
    """They stand in records: a change of one is a rebalance of its groups."""
    assert xxh3_64(bytes(range(256)) * 9) == 6270062947519883826
    assert topic_hash(bytes(range(16)), "tö", RACKS) == 1013909912700962183
    assert topic_hash(bytes(range(16)), "tö", [[]] * 120) == 315460615315477386
