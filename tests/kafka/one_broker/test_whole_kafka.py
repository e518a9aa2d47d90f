"""One kraftd process as a whole Kafka: Kafka's tools use it, and its directory moves to Kafka and back."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.cluster import random_uuid
from testkit.java import ToolRun, java_command, tools
from testkit.node import CombinedNode, Kind
from tests.kafka.one_broker.flow import GROUP, PARTITIONS, TOPIC, Flow

pytestmark = pytest.mark.kafka

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class WholeKafka:
    """A combined node of either kind; the kind may change while it is stopped."""

    def __init__(self, home: Path) -> None:
        self.home = home
        # A killed broker may register again after its session; a group waits for no further members.
        short = {
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            "group.initial.rebalance.delay.ms": 0,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
        }
        self.node = CombinedNode("kraftd", home / "node", short)
        self.bootstrap = self.node.bootstrap
        self.node.format(random_uuid(), "--standalone")
        self.start("kraftd")

    def __repr__(self) -> str:
        return f"<WholeKafka {self.node!r}>"

    def start(self, kind: Kind) -> None:
        """Start it, and wait until its broker serves."""
        self.node.kind = kind
        self.node.start()
        self.node.wait_ready()

    def tool(self, name: str, *arguments: object, **how: Any) -> ToolRun:
        return tools().run(name, "--bootstrap-server", self.bootstrap, *arguments, **how).check()

    def verifiable(self, name: str, *arguments: object) -> list[dict[str, Any]]:
        """The lines of a tool that reports most of them when its process ends."""
        words = [str(each) for each in ("--bootstrap-server", self.bootstrap, *arguments)]
        command = java_command(f"org.apache.kafka.tools.Verifiable{name}", *words)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def produce(self, topic: str, *lines: str) -> None:
        self.tool("console-producer", "--topic", topic, stdin="".join(f"{line}\n" for line in lines))

    def consume(self, topic: str, group: str, count: int) -> list[str]:
        """Lines from the group's offsets on, or from the beginning."""
        limits = ("--max-messages", count, "--timeout-ms", 15_000)
        done = self.tool("console-consumer", "--topic", topic, "--group", group, "--from-beginning", *limits)
        return done.out.split()

    def offsets(self, group: str) -> dict[str, tuple[int, int]]:
        """The committed offset and the log end of each partition that a group has read."""
        rows = [
            row.split()
            for row in self.tool("consumer-groups", "--describe", "--group", group).out.splitlines()
        ]
        return {f"{row[1]}-{row[2]}": (int(row[3]), int(row[4])) for row in rows if row[:1] == [group]}


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[WholeKafka]:
    kafka = WholeKafka(tmp_path)
    yield kafka
    kafka.node.kill()


def numbers(first: int, end: int) -> list[str]:
    return [f"line-{number}" for number in range(first, end)]


def test_kafkas_tools_use_it(kafka: WholeKafka) -> None:
    kafka.tool("topics", "--create", "--topic", "t", "--partitions", 1, "--replication-factor", 1)
    assert "Leader: 1\tReplicas: 1\tIsr: 1" in kafka.tool("topics", "--describe", "--topic", "t").out
    for which, lists_it in (("under", False), ("at", True)):
        listed = kafka.tool("topics", "--describe", f"--{which}-min-isr-partitions").out
        assert ("Topic: t\tPartition: 0" in listed) is lists_it
    kafka.produce("t", *numbers(0, 20))
    assert kafka.consume("t", "g", 20) == numbers(0, 20)
    assert kafka.offsets("g") == {"t-0": (20, 20)}

    reset = ("--group", "g", "--topic", "t", "--reset-offsets", "--execute")
    kafka.tool("consumer-groups", *reset, "--to-offset", 15)
    assert kafka.consume("t", "g", 5) == numbers(15, 20)
    kafka.tool("consumer-groups", *reset, "--shift-by", -2)
    assert kafka.offsets("g") == {"t-0": (18, 20)}
    kafka.tool("consumer-groups", *reset, "--to-datetime", "2020-01-01T00:00:00.000")
    assert kafka.offsets("g") == {"t-0": (0, 20)}
    kafka.tool("consumer-groups", "--group", "g", "--delete")
    assert kafka.tool("consumer-groups", "--list").out.split() == []

    plan = kafka.home / "delete.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "offset": 12}]}))
    assert "low_watermark: 12" in kafka.tool("delete-records", "--offset-json-file", plan).out
    assert kafka.tool("get-offsets", "--topic", "t", "--time", -2).out.split() == ["t:0:12"]
    assert kafka.tool("get-offsets", "--topic", "t", "--time", -1).out.split() == ["t:0:20"]
    assert kafka.consume("t", "g", 8) == numbers(12, 20)
    (described,) = (
        json.loads(line)
        for line in kafka.tool("log-dirs", "--describe", "--topic-list", "t").out.splitlines()
        if line.startswith("{")
    )
    (directory,) = described["brokers"][0]["logDirs"]
    assert [(one["partition"], one["size"] > 0) for one in directory["partitions"]] == [("t-0", True)]


def test_kafkas_measuring_tools_use_it(kafka: WholeKafka) -> None:
    for codec in CODECS:
        to = ("--producer-props", f"bootstrap.servers={kafka.bootstrap}", f"compression.type={codec}")
        size = ("--num-records", 2000, "--record-size", 100, "--throughput", -1)
        sent = tools().run("producer-perf", "--topic", codec, *size, *to).check().out
        assert "2000 records sent" in sent
        row = kafka.tool("consumer-perf", "--topic", codec, "--num-records", 2000).out.splitlines()[-1]
        assert row.split(", ")[4] == "2000"
    many = ("--topic", "verified", "--max-messages", 300)
    sent_lines = kafka.verifiable("Producer", *many)
    assert [(one["sent"], one["acked"]) for one in sent_lines if one["name"] == "tool_data"] == [(300, 300)]
    read = kafka.verifiable("Consumer", *many, "--group-id", "v", "--reset-policy", "earliest")
    assert sum(one["count"] for one in read if one["name"] == "records_consumed") == 300
    assert all(one["success"] for one in read if one["name"] == "offsets_committed")
    assert kafka.offsets("v")["verified-0"] == (300, 300)


def test_its_directory_moves_to_kafka_and_back_under_a_producer_and_a_group(kafka: WholeKafka) -> None:
    kafka.tool("topics", "--create", "--topic", TOPIC, "--partitions", PARTITIONS)
    kafka.produce("moved", *numbers(0, 10))
    assert kafka.consume("moved", "g", 10) == numbers(0, 10)
    kafka.produce("moved", *numbers(10, 20))
    end = 20
    reigns: list[tuple[Kind, bool]] = [
        ("apache", False),
        ("kraftd", False),
        ("apache", True),
        ("kraftd", True),
    ]
    flow = Flow(kafka.bootstrap)
    try:
        for kind, is_killed in reigns:
            flow.wait_for_more()
            if is_killed:
                kafka.node.kill()
            else:
                kafka.node.stop()
            committed = dict(flow.committed)
            kafka.start(kind)
            found = kafka.offsets(GROUP)
            assert all(found[f"{TOPIC}-{index}"][0] >= offset for index, offset in committed.items())
            assert kafka.offsets("g") == {"moved-0": (end - 10, end)}
            assert kafka.consume("moved", "g", 10) == numbers(end - 10, end)
            kafka.produce("moved", *numbers(end, end + 10))
            end += 10
        assert kafka.consume("moved", "all", end) == numbers(0, end)
        flow.wait_for_more()
        flow.finish()
    finally:
        flow.stop()
    flow.check()
    assert '"level":"error"' not in kafka.node.log_text()
