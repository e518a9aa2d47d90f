"""The assignors compared with Kafka's classes: the same partitions for every member, of random groups."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from kraftd.groups.consumer.assignors.spec import GroupSpec, Partitions
from kraftd.groups.share.assignor import SIMPLE
from kraftd.types import uuid_text
from testkit.java import QUICK_START, classpath, compile_java, find_java, find_javac
from tests.groups.consumer.random_groups import KAFKAS, assignments, listed, share_assignments

pytestmark = pytest.mark.kafka


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


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    javac = find_javac()
    if javac is None:
        pytest.skip("no javac")
    oracle = Kafka(compile_java(javac, Path(__file__).parents[1] / "java" / "AssignorOracle.java"))
    yield oracle
    oracle.close()


@pytest.mark.parametrize("name", ["uniform", "range"])
def test_every_member_gets_what_kafka_gives_it(kafka: Kafka, name: str) -> None:
    digest = sha256()
    for number, (spec, ours, _) in enumerate(assignments(name)):
        theirs = kafka.assign(name, spec)
        assert ours == theirs, f"group {number}: {spec!r}"
        digest.update(theirs.encode())
    assert digest.hexdigest()[:16] == KAFKAS[name]  # with which tests without Java compare


def test_every_member_of_a_share_group_gets_what_kafka_gives_it__kip932(kafka: Kafka) -> None:
    digest = sha256()
    for number, (spec, assignable, ours, _) in enumerate(share_assignments()):
        theirs = kafka.assign(SIMPLE, spec, assignable)
        assert ours == theirs, f"group {number}: {spec!r} {assignable!r}"
        digest.update(theirs.encode())
    assert digest.hexdigest()[:16] == KAFKAS[SIMPLE]
