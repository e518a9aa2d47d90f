"""The assignors compared with Kafka's classes: the same partitions for every member, of random groups."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from kraftd.groups.consumer.assignors import ASSIGNORS
from kraftd.groups.consumer.assignors.spec import Assigned, GroupSpec, MemberSpec, Partitions, finish
from kraftd.groups.java_hashes import grown_order, hash_map_order, uuid_hash
from kraftd.groups.share.assignor import SIMPLE, assign_simply
from kraftd.types import uuid_text
from testkit.java import QUICK_START, classpath, compile_java, find_java, find_javac

pytestmark = pytest.mark.kafka

CASES = 25
CHANGES = 4  # of each case: the assignment of one is the beginning of the next


class Kafka:
    """Kafka's assignors in a process of their own."""

    def __init__(self, classes: Path) -> None:
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        path = os.pathsep.join([str(classes), classpath()])
        self.process = subprocess.Popen(
            [str(find_java()), *QUICK_START, quiet, "-cp", path, "AssignorOracle"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def assign(self, name: str, spec: GroupSpec, assignable: Partitions | None = None) -> str:
        kind = "HOMOGENEOUS" if spec.is_homogeneous else "HETEROGENEOUS"
        topics = [f"{uuid_text(topic)}={count}" for topic, count in spec.partition_counts.items()]
        members = [
            f"{member_id}|{member.instance_id or '-'}|{','.join(map(uuid_text, member.topic_ids))}|"
            + listed(member.assigned)
            for member_id, member in spec.members.items()
        ]
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        words = [name, kind, ";".join(topics), ";".join(members), listed(assignable or {})]
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


def listed(partitions: Partitions) -> str:
    return ",".join(f"{uuid_text(topic)}:{dotted(indexes)}" for topic, indexes in partitions.items())


def dotted(indexes: object) -> str:
    return ".".join(map(str, sorted(indexes)))  # type: ignore[call-overload]


def text_of(assigned: Assigned) -> str:
    def of_topics(partitions: Partitions) -> str:
        rows = grown_order(list(partitions), uuid_hash)
        return "{" + ", ".join(f"{uuid_text(topic)}={dotted(partitions[topic])}" for topic in rows) + "}"

    return "".join(f"{member}{of_topics(assigned[member])};" for member in sorted(assigned))


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    javac = find_javac()
    if javac is None:
        pytest.skip("no javac")
    oracle = Kafka(compile_java(javac, Path(__file__).parents[1] / "java" / "AssignorOracle.java"))
    yield oracle
    oracle.close()


class Group:
    """A group whose members and topics come, change and go."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.is_homogeneous = random.random() < 0.5
        most = random.choice([3, 8, 40])
        self.few_buckets = random.random() < 0.5
        self.topics = {self.topic_id(): random.randint(1, most) for _ in range(random.randint(1, 6))}
        self.members: dict[str, tuple[str | None, frozenset[bytes]]] = {}
        self.assigned: Assigned = {}
        for _ in range(random.randint(1, random.choice([3, 12, 30]))):
            self.join()
        self.level()

    def topic_id(self) -> bytes:
        """One of any hash, or of one of two, so that topics share a bucket of Java's maps."""
        return self.random.randbytes(16) if not self.few_buckets else self.colliding_id()

    def colliding_id(self) -> bytes:
        half = self.random.randbytes(8)
        other = int.from_bytes(half, "big") ^ self.random.choice([5, 6])
        return half + other.to_bytes(8, "big")

    def subscription(self) -> frozenset[bytes]:
        some = self.random.sample(sorted(self.topics), self.random.randint(0, len(self.topics)))
        return frozenset(some)

    def join(self) -> None:
        instance = f"i{self.random.randint(0, 99)}" if self.random.random() < 0.3 else None
        if instance not in {one for one, _ in self.members.values() if one}:
            self.members[f"m{self.random.getrandbits(30)}"] = (instance, self.subscription())

    def level(self) -> None:
        """In a homogeneous group all members get the same subscription."""
        if self.is_homogeneous:
            shared = self.subscription()
            self.members = {name: (instance, shared) for name, (instance, _) in self.members.items()}

    def change(self) -> None:
        act = self.random.random()
        if act < 0.3:
            for _ in range(self.random.randint(1, 4)):
                self.join()
        elif act < 0.55 and len(self.members) > 1:
            gone = self.random.choice(sorted(self.members))
            del self.members[gone]
            self.assigned.pop(gone, None)
        elif act < 0.75:
            topic = self.random.choice(sorted(self.topics))
            self.topics[topic] += self.random.randint(1, 9)
        elif act < 0.9:
            self.topics[self.topic_id()] = self.random.randint(1, 20)
        else:
            changed = self.random.choice(sorted(self.members))
            self.members[changed] = (self.members[changed][0], self.subscription())
        self.level()

    def spec(self) -> GroupSpec:
        members = {}
        for name in hash_map_order(self.members):
            instance, topics = self.members[name]
            ordered = grown_order(sorted(topics), uuid_hash)
            members[name] = MemberSpec(instance, ordered, self.assigned.get(name, {}))
        return GroupSpec(members, self.is_homogeneous, self.topics)


@pytest.mark.parametrize("name", ["uniform", "range"])
def test_every_member_gets_what_kafka_gives_it(kafka: Kafka, name: str) -> None:
    random = Random(f"assignors-{name}")
    for case in range(CASES):
        group = Group(random)
        for _ in range(CHANGES):
            spec = group.spec()
            ours = finish(ASSIGNORS[name](spec))
            theirs = kafka.assign(name, spec)
            assert text_of(ours) == theirs, f"case {case}: {spec!r}"
            group.assigned = ours
            group.change()


def test_every_member_of_a_share_group_gets_what_kafka_gives_it__kip932(kafka: Kafka) -> None:
    random = Random("share groups")
    for case in range(3 * CASES):
        group = Group(random)
        assignable: dict[bytes, set[int]] = {}
        for _ in range(CHANGES):
            spec = group.spec()
            for topic, count in group.topics.items():  # partitions are initialized one after the other
                initialized = {index for index in range(count) if random.random() < 0.7}
                assignable.setdefault(topic, set()).update(initialized)
            ours = finish(assign_simply(spec, assignable))
            theirs = kafka.assign(SIMPLE, spec, assignable)
            assert text_of(ours) == theirs, f"case {case}: {spec!r} {assignable!r}"
            group.assigned = ours
            group.change()
