"""Kafka's metrics of how long the partitions of coordinators' topics took to load.

A process without the broker role has no samples.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftd.broker_node.coordination.coordination import Coordination
from kraftd.broker_node.coordination.late_coordinators import LateCoordinators
from kraftd.metrics.families.family import Bean, Family, ReadOne
from kraftd.metrics.state.readings import Readings, broker_of
from kraftd.recent import Recent

_OF: tuple[tuple[str, str, Callable[[LateCoordinators], Coordination]], ...] = (
    ("group-coordinator-metrics", "__consumer_offsets", lambda all: all.groups),
    ("transaction-coordinator-metrics", "__transaction_state", lambda all: all.transactions),
    ("share-coordinator-metrics", "__share_group_state", lambda all: all.share_states),
)


def _times(find: Callable[[LateCoordinators], Coordination], read: Callable[[Recent, int], float]) -> ReadOne:
    def read_one(readings: Readings) -> float | None:
        broker = broker_of(readings)
        return None if broker is None else read(find(broker.coordinators).load_times, readings.wall_ms)

    return read_one


def _families() -> list[Family]:
    found: list[Family] = []
    for type, topic, find in _OF:
        bean = Bean("kafka.server", type, named=False)
        for name, which, read in (("avg", "average", Recent.average), ("max", "most", Recent.maximum)):
            meaning = f"{which} milliseconds that a partition of {topic} took to load; NaN without one"
            found.append(bean.gauge(f"partition-load-time-{name}", meaning, _times(find, read)))
    return found


FAMILIES = tuple(_families())
