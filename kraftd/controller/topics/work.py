"""The cost of work on topics, in microseconds for the pace, and the amount between two checks of the pace."""

from __future__ import annotations

from typing import Final

PARTITIONS_PER_PACE_CHECK: Final = 500  # of a topic
COUNTED_US: Final = 1  # a topic of which only the partitions are counted
TOPIC_US: Final = 20  # with one question to the authorizer
PLACED_US: Final = 2  # a partition that the placer places, most where brokers are few
ASSIGNED_US: Final = 3  # a partition whose replicas the request names
PARTITION_US: Final = 2  # a partition's record
DELETED_US: Final = 3  # a topic
