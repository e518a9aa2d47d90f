"""A client says which partition has no leader, and where its replicas are."""

from __future__ import annotations

import pytest

from kraftd.client.cluster import why_without_leader
from kraftd.client.metadata_cache import Leader, Partition

NONE = Leader(-1, 3)


@pytest.mark.parametrize(
    ("known", "why"),
    [
        (None, "t-0: its metadata has no such partition"),
        (
            Partition(NONE, (1, 2), (2,), 5, (2,)),
            "t-0 has no leader; its replicas are on brokers 1, 2, the last in sync on broker 2, "
            "offline on broker 2; kraftd doctor says why",
        ),
        (
            Partition(NONE, (1,), (), 5),
            "t-0 has no leader; its replicas are on broker 1; kraftd doctor says why",
        ),
        (
            Partition(Leader(1, 3), (1, 2), (1,), 0),
            "t-0: its leader is broker 1 in epoch 3, and epoch 4 was seen before",
        ),
    ],
)
def test_a_partition_without_a_leader_is_named(known: Partition | None, why: str) -> None:
    assert why_without_leader("t", 0, known, 4) == why
