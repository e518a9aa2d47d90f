"""Where new replicas go."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftd.controller.decision import Refusal
from kraftd.controller.topics.placement import Racks, Striper, place
from kraftd.metadata.state import BrokerState
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import SeededDice, directory


def broker(broker_id: int, rack: str | None = None, **more: object) -> BrokerState:
    return BrokerState(broker_id, 1, bytes(16), rack=rack, **{"fenced": False, **more})


brokers = st.lists(
    st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), min_size=1, max_size=12
).map(lambda rows: [broker(i, rack, fenced=fenced) for i, (rack, fenced) in enumerate(rows)])


@given(brokers, st.integers(1, 40), st.integers(1, 6), st.integers())
def test_replicas_are_distinct_the_first_unfenced_and_racks_used_evenly(
    brokers: list[BrokerState], partitions: int, replication_factor: int, seed: int
) -> None:
    try:
        placed = place(Racks(brokers), SeededDice(seed), partitions, replication_factor)
    except Refusal as refusal:
        assert refusal.code is ErrorCode.INVALID_REPLICATION_FACTOR
        assert all(b.fenced for b in brokers) or replication_factor > len(brokers)
        return
    by_id = {b.id: b for b in brokers}
    racks = Counter(b.rack for b in brokers)
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == replication_factor
        assert not by_id[replicas[0]].fenced
        used = Counter(by_id[r].rack for r in replicas)
        assert len(used) == min(len(racks), replication_factor)
        for rack in used:
            # Another rack has more only where this one has no broker left.
            assert used[rack] >= max(used.values()) - 1 or used[rack] == racks[rack]


def test_leaders_are_spread_evenly_over_brokers() -> None:
    placed = place(Racks([broker(i) for i in range(5)]), SeededDice(1), 50, 3)
    assert set(Counter(replicas[0] for replicas in placed).values()) == {10}


def test_a_fenced_broker_gets_replicas_only_when_the_others_are_not_enough() -> None:
    racks = Racks([broker(0), broker(1), broker(2, fenced=True)])
    assert all(2 not in replicas for replicas in place(racks, SeededDice(), 20, 2))
    assert all(replicas[2] == 2 for replicas in place(racks, SeededDice(), 20, 3))


@pytest.mark.parametrize(
    "unusable",
    [
        broker(2, in_controlled_shutdown=True),
        broker(2, directories=(directory(2),), cordoned_directories=(directory(2),)),
    ],
)
def test_a_broker_that_shuts_down_or_is_wholly_cordoned_does_not_count(unusable: BrokerState) -> None:
    racks = Racks([broker(0), broker(1), unusable])
    with pytest.raises(Refusal, match="needs as many brokers"):
        place(racks, SeededDice(), 1, 3)
    assert all(2 not in replicas for replicas in place(racks, SeededDice(), 9, 2))


def test_a_broker_that_has_shut_down_counts_as_a_fenced_one() -> None:
    gone = broker(2, fenced=True, in_controlled_shutdown=True)
    assert place(Racks([broker(0), broker(1), gone]), SeededDice(), 1, 3)[0][2] == 2


def test_nothing_is_placed_when_every_broker_is_fenced() -> None:
    with pytest.raises(Refusal, match="fenced"):
        place(Racks([broker(0, fenced=True)]), SeededDice(), 1, 1)


@pytest.mark.parametrize("seed", range(20))
def test_a_ring_is_placed_as_partition_by_partition_with_the_same_dice(seed: int) -> None:
    racks = Racks([broker(broker_id) for broker_id in range(1, 2 + seed % 7)])
    for replication_factor in range(1, racks.broker_count + 1):
        for count in (1, 2, 5, 40):
            striper = Striper(racks, SeededDice(seed), replication_factor)
            one_by_one = [striper.place() for _ in range(count)]
            assert place(racks, SeededDice(seed), count, replication_factor) == one_by_one


class Zeros:
    """Dice that always fall on 0."""

    def below(self, n: int) -> int:
        return 0

    def uuid(self) -> bytes:
        return bytes(16)


def test_each_next_partition_begins_one_rack_further_and_goes_on_in_their_order() -> None:
    racks = Racks([broker(number, rack) for number, rack in enumerate("abcd")])
    assert place(racks, Zeros(), 4, 3) == [(0, 1, 2), (1, 2, 3), (2, 3, 0), (3, 0, 1)]
