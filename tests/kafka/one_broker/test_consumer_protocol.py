"""Java's consumers with the new protocol (KIP-848) on one kraftd process, and on a stock one in between."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from testkit.cluster import random_uuid
from testkit.java import classpath, compile_java, find_java, find_javac, tools
from testkit.node import CombinedNode, Kind
from testkit.process import wait_until

pytestmark = pytest.mark.kafka

PROPERTIES = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 2,
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.heartbeat.interval.ms": 500,
    "group.consumer.min.heartbeat.interval.ms": 500,
}
PARTITIONS = 4


class Members:
    """Consumers of a JVM, by name."""

    def __init__(self, classes: Path, bootstrap: str) -> None:
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        command = [str(find_java()), quiet, "-cp", f"{classes}:{classpath()}", "GroupMembers", bootstrap]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def open(
        self, name: str, topic: str, *, group: str = "g", instance: str = "-", protocol: str = "consumer"
    ) -> None:
        assert self.ask("open", name, group, instance, topic, protocol) == "opened"

    def assigned(self, name: str) -> list[str]:
        partitions, _, problem = self.ask("show", name).split("|")
        assert not problem, problem
        return [one for one in partitions.split(",") if one]

    def read(self, *names: str) -> list[str]:
        """All that members have read: what two have read is there twice."""
        return sorted(one for name in names for one in self.ask("show", name).split("|")[1].split(",") if one)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(20)
        finally:
            self.process.kill()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[CombinedNode]:
    node = CombinedNode("kraftd", tmp_path / "node", PROPERTIES)
    node.format(random_uuid(), "--standalone")
    node.start()
    node.wait_ready()
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    wanted = [NewTopic("orders", PARTITIONS, 1), NewTopic("other", 1, 1)]
    for created in admin.create_topics(wanted).values():
        created.result(10)
    yield node
    node.kill()


@pytest.fixture
def members(node: CombinedNode) -> Iterator[Members]:
    javac = find_javac()
    if javac is None:
        pytest.skip("no javac")
    classes = compile_java(javac, Path(__file__).parents[1] / "java" / "GroupMembers.java")
    members = Members(classes, node.bootstrap)
    yield members
    members.close()


def produce(node: CombinedNode, *values: str) -> None:
    made = Producer({"bootstrap.servers": node.bootstrap})
    for number, value in enumerate(values):
        made.produce("orders", value, partition=number % PARTITIONS)
    assert made.flush(30) == 0


def shared(members: Members, *names: str) -> bool:
    """Return whether the members have all partitions of the topic, each one of them."""
    everything = sorted(one for name in names for one in members.assigned(name))
    return everything == [f"orders-{index}" for index in range(PARTITIONS)]


def restart(node: CombinedNode, kind: Kind) -> None:
    node.stop()
    node.kind = kind
    node.start()
    node.wait_ready()


def test_members_of_java_share_partitions_through_restarts_and_another_broker(
    node: CombinedNode, members: Members
) -> None:
    first = [f"a{number}" for number in range(8)]
    produce(node, *first)
    members.open("one", "orders")
    wait_until(lambda: shared(members, "one"), "the first member has all partitions", 20)
    members.open("two", "orders", instance="i2")
    wait_until(lambda: len(members.assigned("two")) == 2, "the second member has its half", 20)
    wait_until(lambda: shared(members, "one", "two"), "the first one has the other half", 20)
    members.open("three", "/ot.*r", group="h")
    wait_until(lambda: members.assigned("three") == ["other-0"], "a pattern is resolved", 20)

    had = members.assigned("two")
    members.ask("close", "two")  # a static member, which will be back
    time.sleep(1)
    assert len(members.assigned("one")) == 2
    members.open("two", "orders", instance="i2")
    wait_until(lambda: members.assigned("two") == had, "the static member has its partitions again", 20)

    shown = tools().run("consumer-groups", "--bootstrap-server", node.bootstrap, "--list", "--type").check()
    listed = dict(line.split() for line in shown.out.splitlines()[1:])
    assert (listed["g"], listed["h"]) == ("Consumer", "Consumer")

    kinds: list[Kind] = ["apache", "kraftd"]
    for number, kind in enumerate(kinds):
        restart(node, kind)
        values = [f"{number}-{index}" for index in range(PARTITIONS)]
        produce(node, *values)
        wait_until(partial(has_read, members, values), f"records are read at {kind}", 40)
        assert shared(members, "one", "two") and members.assigned("two") == had
    described = tools().run(
        "consumer-groups", "--bootstrap-server", node.bootstrap, "--describe", "--group", "g", "--state"
    )
    assert "Stable" in described.check().out and "uniform" in described.out


def test_members_of_java_change_the_protocol_of_their_group(node: CombinedNode, members: Members) -> None:
    """One after the other, as in a rolling upgrade; and back, as when it is undone."""
    produce(node, *(f"a{number}" for number in range(8)))
    members.open("old", "orders", protocol="classic")
    wait_until(lambda: shared(members, "old"), "the classic member has all partitions", 20)
    members.open("new", "orders")
    wait_until(lambda: len(members.assigned("new")) == 2, "the new member has its half", 30)
    wait_until(lambda: shared(members, "old", "new"), "the classic one has the other half", 20)
    restart(node, "kraftd")
    produce(node, *(f"b{number}" for number in range(PARTITIONS)))
    values = [f"b{number}" for number in range(PARTITIONS)]

    def has_all() -> bool:
        return set(values) <= set(members.read("old", "new"))

    wait_until(has_all, "both read on", 30)
    members.ask("close", "new")
    wait_until(lambda: shared(members, "old"), "the classic member has all partitions again", 30)


def has_read(members: Members, values: list[str]) -> bool:
    return set(values) <= set(members.read("one", "two"))
