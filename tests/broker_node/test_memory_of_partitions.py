"""The memory of one of very many idle partitions: each object of it counts a hundred thousand times."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from kraftd.broker_node.partitions.replicas import Hosted
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.segment import DataSegment
from kraftd.log.epochs import EpochCache
from kraftd.partition.isr import InSyncReplicas
from kraftd.partition.partition import Partition
from tests.broker_node.harness import BrokerHarness

OWN = (Hosted, Partition, InSyncReplicas, DataLog, DataSegment, EpochCache, list, tuple, str, int, float)
MOST_BYTES = 728


def objects_of(hosted: Hosted) -> dict[int, object]:
    """What a partition is made of, by id: objects of its classes, and plain values."""
    found: dict[int, object] = {}
    waiting: list[object] = [hosted]
    while waiting:
        one = waiting.pop()
        if id(one) not in found and isinstance(one, OWN):
            found[id(one)] = one
            waiting += gc.get_referents(one)
    return found


def test_an_idle_partition_that_is_led_takes_few_objects_of_its_own(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", 3)
    harness.pass_time(100)
    first, second, third = (one for one in harness.broker.replicas if one.topic == "t")
    assert second.partition is not None and second.partition.is_leader and second.log is not None
    shared = objects_of(first) | objects_of(third)
    shared[id(second.log.parent)] = second.log.parent  # of all logs of a directory
    own = {key: one for key, one in objects_of(second).items() if key not in shared}
    sizes = sorted((sys.getsizeof(one), repr(one)) for one in own.values())
    assert {type(one) for one in own.values()} >= {Hosted, Partition, DataLog, DataSegment}
    assert sum(size for size, _ in sizes) <= MOST_BYTES, sizes
