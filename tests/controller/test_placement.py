"""The placement of new replicas."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftd.controller.topics.placement import Racks, Striper, place, rounds, shuffled
from kraftd.ground.refusal import Refusal
from kraftd.metadata.state import BrokerState
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import SeededRandomness, directory


def broker(broker_id: int, rack: str | None = None, **more: object) -> BrokerState:
    return BrokerState(broker_id, 1, bytes(16), rack=rack, **{"fenced": False, **more})


brokers = st.lists(
    st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), min_size=1, max_size=12
).map(lambda rows: [broker(i, rack, fenced=fenced) for i, (rack, fenced) in enumerate(rows)])


@given(brokers, st.integers(1, 40), st.integers(1, 6), st.integers())
def test_replicas_are_distinct_the_first_unfenced_and_spread_over_racks(
    brokers: list[BrokerState], partitions: int, replication_factor: int, seed: int
) -> None:
    try:
        placed = place(Racks(brokers), SeededRandomness(seed), partitions, replication_factor)
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
            # Another rack has more only if this one has no broker left.
            assert used[rack] >= max(used.values()) - 1 or used[rack] == racks[rack]


def test_leaders_are_spread_evenly_over_brokers() -> None:
    placed = place(Racks([broker(i) for i in range(5)]), SeededRandomness(1), 50, 3)
    assert set(Counter(replicas[0] for replicas in placed).values()) == {10}


def test_a_fenced_broker_gets_replicas_only_if_the_others_are_too_few() -> None:
    racks = Racks([broker(0), broker(1), broker(2, fenced=True)])
    assert all(2 not in replicas for replicas in place(racks, SeededRandomness(), 20, 2))
    assert all(replicas[2] == 2 for replicas in place(racks, SeededRandomness(), 20, 3))


@pytest.mark.parametrize(
    "unusable",
    [
        broker(2, in_controlled_shutdown=True),
        broker(2, directories=(directory(2),), cordoned_directories=(directory(2),)),
    ],
)
def test_a_stopping_or_wholly_cordoned_broker_gets_no_replicas(unusable: BrokerState) -> None:
    racks = Racks([broker(0), broker(1), unusable])
    with pytest.raises(Refusal, match="needs as many brokers"):
        place(racks, SeededRandomness(), 1, 3)
    assert all(2 not in replicas for replicas in place(racks, SeededRandomness(), 9, 2))


def test_a_broker_that_has_shut_down_counts_as_fenced() -> None:
    gone = broker(2, fenced=True, in_controlled_shutdown=True)
    assert place(Racks([broker(0), broker(1), gone]), SeededRandomness(), 1, 3)[0][2] == 2


def test_nothing_is_placed_when_every_broker_is_fenced() -> None:
    with pytest.raises(Refusal, match="fenced"):
        place(Racks([broker(0, fenced=True)]), SeededRandomness(), 1, 1)


@pytest.mark.parametrize("seed", range(20))
def test_placing_all_at_once_equals_placing_one_by_one(seed: int) -> None:
    racks = Racks([broker(broker_id) for broker_id in range(1, 2 + seed % 7)])
    for replication_factor in range(1, racks.broker_count + 1):
        for count in (1, 2, 5, 40):
            striper = Striper(racks, SeededRandomness(seed), replication_factor)
            one_by_one = [striper.place() for _ in range(count)]
            assert place(racks, SeededRandomness(seed), count, replication_factor) == one_by_one


class Zeros:
    """Draws that are always 0."""

    def below(self, n: int) -> int:
        return 0

    def uuid(self) -> bytes:
        return bytes(16)


def test_each_partition_begins_one_rack_after_the_one_before() -> None:
    racks = Racks([broker(number, rack) for number, rack in enumerate("abcd")])
    assert place(racks, Zeros(), 4, 3) == [(0, 1, 2), (1, 2, 3), (2, 3, 0), (3, 0, 1)]


def test_brokers_without_a_rack_come_first_then_racks_by_name() -> None:
    rows = [(3, "b"), (2, "a"), (1, None), (0, "a")]
    racks = Racks([broker(number, rack) for number, rack in rows])
    assert racks.unfenced == [[1], [0, 2], [3]]
    assert place(racks, Zeros(), 1, 4) == [(1, 0, 3, 2)]


def test_an_unusable_broker_does_not_exclude_others() -> None:
    cordoned = {"directories": (directory(2),), "cordoned_directories": (directory(2),)}
    unusable = [broker(0, in_controlled_shutdown=True), broker(1, **cordoned)]
    racks = Racks([*unusable, broker(2), broker(3, fenced=True)])
    assert (racks.unfenced, racks.fenced) == ([[2]], [[3]])
    assert (racks.unfenced_count, racks.broker_count) == (1, 2)


class NotingRandomness:
    """Draws that are always the highest number; their bounds are noted."""

    def __init__(self) -> None:
        self.bounds: list[int] = []

    def below(self, n: int) -> int:
        self.bounds.append(n)
        return n - 1

    def uuid(self) -> bytes:
        return bytes(16)


def test_a_list_is_shuffled_from_its_end_as_java_does() -> None:
    rng = NotingRandomness()
    assert shuffled([1, 2, 3, 4], rng) == [1, 2, 3, 4]
    assert rng.bounds == [4, 3, 2]
    assert shuffled([1, 2, 3, 4], Zeros()) == [2, 3, 4, 1]
    assert shuffled([1, 2], Zeros()) == [2, 1]


@pytest.mark.parametrize(
    ("racks", "bounds"),
    [
        ([broker(0), broker(1), broker(2)], [3, 1]),  # the first broker of the rack, the first rack
        ([broker(0, "a"), broker(1, "b"), broker(2, "b", fenced=True)], [1, 1, 1, 2]),
    ],
)
def test_random_numbers_are_drawn_in_kafkas_order(racks: list[BrokerState], bounds: list[int]) -> None:
    rng = NotingRandomness()
    place(Racks(racks), rng, 1, 1)
    assert rng.bounds == bounds


@pytest.mark.parametrize(
    ("brokers", "factor", "problem"),
    [
        ([broker(0)], 0, "a replication factor of 0 is not positive"),
        ([broker(0)], -1, "a replication factor of -1 is not positive"),
        ([], 1, "every broker is fenced, shutting down or has all its log directories cordoned"),
        (
            [broker(0, fenced=True)],
            1,
            "every broker is fenced, shutting down or has all its log directories cordoned",
        ),
        (
            [broker(0), broker(1, fenced=True)],
            3,
            "a replication factor of 3 needs as many brokers, but only 2 are registered and not shutting "
            "down or cordoned",
        ),
    ],
)
def test_a_failed_placement_has_the_reason(brokers: list[BrokerState], factor: int, problem: str) -> None:
    with pytest.raises(Refusal) as refused:
        place(Racks(brokers), Zeros(), 1, factor)
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REPLICATION_FACTOR, problem)


def test_a_large_placement_is_made_in_parts() -> None:
    racks = Racks([broker(0, "a"), broker(1, "b")])
    parts = list(rounds(racks, SeededRandomness(3), 250, 2))
    assert [len(part) for part in parts] == [100, 100, 50]
    ring = list(rounds(Racks([broker(0), broker(1)]), SeededRandomness(3), 250, 2))
    assert [len(part) for part in ring] == [100, 100, 50]  # not one for each round of two
    assert Counter(replicas[0] for part in parts for replicas in part) == {0: 125, 1: 125}


def test_a_rack_of_fenced_brokers_leaves_the_leader_to_the_next_rack() -> None:
    racks = Racks([broker(0, "a", fenced=True), broker(1, "b"), broker(2, "c")])
    assert place(racks, Zeros(), 1, 3) == [(1, 0, 2)]
