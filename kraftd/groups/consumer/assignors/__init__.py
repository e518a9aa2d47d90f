"""Server-side assignors of consumer groups (KIP-848): which member is to read which partition.

    target = finish(ASSIGNORS["uniform"](GroupSpec(members, is_homogeneous, partition_counts)))

An assignor is a generator: it yields between slices of its work, so a large group does not hold the event
loop, and returns the partitions of each member. It chooses as Apache Kafka's class of the same name does.
"""

from __future__ import annotations

from kraftd.groups.consumer.assignors.range import assign_ranges
from kraftd.groups.consumer.assignors.spec import Assignor
from kraftd.groups.consumer.assignors.uniform import assign_uniformly

UNIFORM = "uniform"
RANGE = "range"
ASSIGNORS: dict[str, Assignor] = {UNIFORM: assign_uniformly, RANGE: assign_ranges}
