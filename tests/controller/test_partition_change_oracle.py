"""Changes of partitions and placement against Kafka's own classes, on the same random cases."""

from __future__ import annotations

import random

import pytest

from kraftd.controller.partitions.change import Assignment, ChangeRules, Election, partition_change
from kraftd.controller.partitions.reassignment import reassigned, reverted
from kraftd.controller.topics.placement import Racks, place
from kraftd.ground.refusal import Refusal
from kraftd.metadata import metadata_version as mv
from kraftd.metadata.state import NO_LEADER, BrokerState, PartitionState
from tests.controller.oracle import ask

pytestmark = pytest.mark.kafka

CASES = 20_000
TOPIC = bytes(7) + b"\x07" + bytes(7) + b"\x07"
BROKERS = range(8)
VERSIONS = (7, 11, 12, 16, 17, 22, 23, 30)


def directory(number: int) -> bytes:
    return number.to_bytes(16, "big")


def some(rng: random.Random, pool, least: int = 0) -> tuple[int, ...]:
    pool = list(pool)
    return tuple(rng.sample(pool, rng.randint(min(least, len(pool)), len(pool))))


def random_partition(rng: random.Random, with_directories: bool) -> PartitionState:
    replicas = tuple(rng.sample(BROKERS, rng.randint(1, 6)))
    isr = some(rng, replicas, least=rng.choice((0, 1, 1, 1)))
    elr = tuple(sorted(some(rng, set(replicas).difference(isr)))) if rng.random() < 0.4 else ()
    leader = rng.choice((*isr, *isr, *isr, *replicas, NO_LEADER))
    moving = rng.random() < 0.5
    removing = some(rng, replicas) if moving else ()
    adding = some(rng, set(replicas).difference(removing)) if moving else ()
    return PartitionState(
        replicas=replicas,
        directories=tuple(
            directory(rng.choice((0, 1, 100 + r, 200 + r)) if with_directories else 0) for r in replicas
        ),
        isr=isr,
        removing_replicas=removing,
        adding_replicas=adding,
        elr=elr,
        last_known_elr=rng.choice(((), (), (rng.choice(replicas),), some(rng, replicas)[:2])),
        leader=leader,
        leader_recovery_state=rng.choice((0, 0, 1)),
        leader_epoch=rng.randint(0, 9),
        partition_epoch=rng.randint(0, 9),
    )


def number(uuid: bytes) -> int:
    return int.from_bytes(uuid, "big")


def words(**values: object) -> str:
    def text(value: object) -> str:
        if isinstance(value, tuple):
            return ",".join(text(item) for item in value)
        return str(number(value)) if isinstance(value, bytes) else str(value)

    return " ".join(f"{name}={text(value)}" for name, value in values.items() if value is not None)


def random_case(rng: random.Random) -> tuple[str, str]:
    """A case as the oracle reads it, and our answer to it as the oracle writes it."""
    level = rng.choice(VERSIONS)
    directories = mv.allows_directory_assignment(level)
    partition = random_partition(rng, directories)
    elr = rng.random() < 0.7
    min_isr = rng.randint(1, 4)
    leading = some(rng, BROKERS)
    election = rng.choice(list(Election))
    rules = ChangeRules(
        may_lead=lambda broker, _: broker in leading,
        default_directory=lambda broker: directory(1000 + broker),
        elr=elr,
        directories=directories,
        shrink_bumps_leader_epoch=mv.bumps_leader_epoch_on_isr_shrink(level),
        record_version=mv.partition_change_record_version(level),
    )
    to_isr = assignment = recovery = place_of = reassign = None
    unclean = NO_LEADER
    cancel = None
    kind = rng.choice(("isr", "isr", "isr", "reassign", "cancel", "elect", "directory", "unclean"))
    if kind == "isr":
        to_isr = some(rng, partition.replicas, least=1)
        recovery = rng.choice((None, 0, 1))
    elif kind == "reassign":
        reassign = tuple(rng.sample(BROKERS, rng.randint(1, 5)))
        assignment = reassigned(partition, reassign)
        election = Election.ONLINE  # as Kafka does: a joining replica has no directory to lead in yet
    elif kind == "cancel":
        cancel = 1
    elif kind == "directory":
        place_of = (rng.choice(partition.replicas), directory(300))
    elif kind == "unclean":
        unclean = rng.choice(partition.replicas)
        to_isr = tuple(r for r in partition.isr if r != unclean)
        leading = tuple(r for r in leading if r != unclean)
    case = "change " + words(
        metadata_version=level,
        elr_enabled=int(elr),
        min_isr=min_isr,
        election=election.name,
        may_lead=leading,
        replicas=partition.replicas,
        directories=partition.directories,
        isr=partition.isr,
        removing=partition.removing_replicas,
        adding=partition.adding_replicas,
        elr=partition.elr,
        last_known_elr=partition.last_known_elr,
        leader=partition.leader,
        recovery=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        to_isr=to_isr,
        to_recovery=recovery,
        reassign=reassign,
        cancel=cancel,
        unclean_shutdown=None if unclean == NO_LEADER else unclean,
        directory=None if place_of is None else f"{place_of[0]}:{number(place_of[1])}",
    )
    try:
        if cancel:
            to_isr, replicas, _ = reverted(partition)
            assignment = Assignment(replicas)
        change = partition_change(
            rules,
            TOPIC,
            3,
            partition,
            min_isr,
            election=election,
            isr=to_isr,
            assignment=assignment,
            recovery_state=recovery,
            directory=place_of,
            unclean_shutdown=unclean,
        )
    except Refusal:
        return case, "refused InvalidReplicaAssignmentException"
    if change is None:
        return case, "nothing"
    after = partition.merged(change)
    return case, words(
        version=rules.record_version,
        isr=change.isr,
        leader=change.leader,
        replicas=change.replicas,
        removing_replicas=change.removing_replicas,
        adding_replicas=change.adding_replicas,
        leader_recovery_state=change.leader_recovery_state,
        directories=change.directories,
        eligible_leader_replicas=change.eligible_leader_replicas,
        last_known_elr=change.last_known_elr,
    ) + " " + words(
        **{
            f"after.{name}": getattr(after, name)
            for name in (
                "replicas",
                "directories",
                "isr",
                "removing_replicas",
                "adding_replicas",
                "elr",
                "last_known_elr",
                "leader",
                "leader_recovery_state",
                "leader_epoch",
                "partition_epoch",
            )
        }
    )


def test_a_change_of_a_partition_is_the_same_as_kafkas() -> None:
    rng = random.Random(20240)
    pairs = [random_case(rng) for _ in range(CASES)]
    answers = ask([case for case, _ in pairs])
    wrong = [
        f"{case}\n  kafka  {theirs}\n  kraftd {ours}"
        for (case, ours), theirs in zip(pairs, answers, strict=True)
        if ours != theirs
    ]
    assert not wrong, f"{len(wrong)} of {CASES} differ, the first:\n" + "\n".join(wrong[:3])
    assert 0.05 < sum(ours == "nothing" for _, ours in pairs) / CASES < 0.6


class JavaRandom:
    """java.util.Random, so that the random numbers are the same on both sides."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ 0x5DEECE66D) & (1 << 48) - 1

    def _next(self, bits: int) -> int:
        self._state = (self._state * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        return self._state >> 48 - bits

    def below(self, n: int) -> int:
        if n & -n == n:
            return n * self._next(31) >> 31
        while True:
            bits = self._next(31)
            if bits - bits % n + n - 1 < 1 << 31:
                return bits % n

    def uuid(self) -> bytes:
        raise AssertionError("placement throws no uuids")


def random_placement(rng: random.Random) -> tuple[str, str]:
    # Single letters: their order in Kafka's hash map is the sorted one.
    racks = rng.choice(((None,), ("a", "b"), ("a", "b", "c", "d"), (None, "a", "e")))
    brokers = [
        BrokerState(id_, 1, bytes(16), rack=rng.choice(racks), fenced=rng.random() < 0.25)
        for id_ in range(rng.randint(1, 12))
    ]
    rng.shuffle(brokers)
    partitions, replicas = rng.randint(1, 30), rng.randint(1, 7)
    seed = rng.randrange(1 << 40)
    listed = ",".join(f"{b.id}:{b.rack or ''}:{int(b.fenced)}" for b in brokers)
    case = "place " + words(seed=seed, partitions=partitions, replicas=replicas, brokers=listed)
    try:
        placed = place(Racks(brokers), JavaRandom(seed), partitions, replicas)
    except Refusal:
        return case, "refused InvalidReplicationFactorException"
    return case, " ".join(",".join(map(str, assignment)) for assignment in placed)


def test_replicas_are_placed_exactly_where_kafka_places_them_from_one_seed() -> None:
    rng = random.Random(77)
    pairs = [random_placement(rng) for _ in range(3_000)]
    answers = ask([case for case, _ in pairs])
    for (case, ours), theirs in zip(pairs, answers, strict=True):
        assert ours == theirs, case
