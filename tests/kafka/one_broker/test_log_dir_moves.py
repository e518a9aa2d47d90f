"""Kafka's tools move logs between a kraftd broker's directories, and Kafka ends a move that kraftd began."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from testkit.cluster import random_uuid
from testkit.java import tools
from testkit.node import CombinedNode, Kind
from testkit.process import wait_until

pytestmark = pytest.mark.kafka

TOPIC = "t"
THROTTLE_BYTES = 20_000  # a second; the log has 50 times as much
SHORT = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}


class TwoDirectories:
    """A combined node with two log directories, and a topic of one partition in one of them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        paths = [home / "a", home / "b"]
        self.paths = [str(path) for path in paths]
        self.node = CombinedNode("kraftd", home / "node", SHORT | {"log.dirs": ",".join(self.paths)})
        self.node.format(random_uuid(), "--standalone")
        self.start("kraftd")
        self.tool("topics", "--create", "--topic", TOPIC, "--partitions", 1, "--replication-factor", 1)
        producer = Producer({"bootstrap.servers": self.node.bootstrap, "log_level": 0})
        for number in range(1000):
            producer.produce(TOPIC, b"%06d" % number + bytes(1000))
        assert producer.flush(30) == 0
        (self.source,) = self.with_log()
        (self.target,) = (path for path in self.paths if path != self.source)

    def start(self, kind: Kind) -> None:
        self.node.kind = kind
        self.node.start()
        self.node.wait_ready()

    def tool(self, name: str, *arguments: object) -> str:
        return tools().run(name, "--bootstrap-server", self.node.bootstrap, *arguments).check().out

    def reassign(self, *arguments: object) -> str:
        plan = self.home / "plan.json"
        row = {"topic": TOPIC, "partition": 0, "replicas": [1], "log_dirs": [self.target]}
        plan.write_text(json.dumps({"version": 1, "partitions": [row]}))
        return self.tool("reassign", "--reassignment-json-file", plan, *arguments)

    def described(self) -> dict[str, Any]:
        """What kafka-log-dirs says of the log in each directory that has one."""
        lines = self.tool("log-dirs", "--describe", "--topic-list", TOPIC).splitlines()
        (found,) = (json.loads(line) for line in lines if line.startswith("{"))
        return {
            directory["logDir"]: one
            for directory in found["brokers"][0]["logDirs"]
            for one in directory["partitions"]
        }

    def with_log(self) -> list[str]:
        return [path for path in self.paths if (Path(path) / f"{TOPIC}-0").is_dir()]

    def futures(self) -> list[str]:
        return [str(path.parent) for base in self.paths for path in Path(base).glob(f"{TOPIC}-0.*-future")]

    def content(self, path: str) -> bytes:
        return b"".join(one.read_bytes() for one in sorted((Path(path) / f"{TOPIC}-0").glob("*.log")))


def test_a_move_outlasts_a_kill_and_a_change_to_kafka__kip113(tmp_path: Path) -> None:
    two = TwoDirectories(tmp_path)
    try:
        before = two.content(two.source)
        done = two.reassign("--execute", "--replica-alter-log-dirs-throttle", THROTTLE_BYTES)
        assert f"Successfully started moving log directory to {two.target}" in done
        assert two.futures() == [two.target] and two.with_log() == [two.source]
        described = two.described()
        assert [described[one]["isFuture"] for one in (two.source, two.target)] == [False, True]
        assert described[two.target]["offsetLag"] > 0
        assert "is still in progress" in two.reassign("--verify")

        two.node.kill()
        two.start("kraftd")
        wait_until(lambda: two.target in two.described(), "the move goes on", 30)
        assert two.node.stop() == 0
        two.start("apache")
        two.reassign("--execute", "--additional", "--replica-alter-log-dirs-throttle", 1 << 30)
        wait_until(lambda: two.with_log() == [two.target], "Kafka ends the move", 60)
        assert two.content(two.target) == before and not two.futures()
        assert "completed successfully" in two.reassign("--verify")

        two.node.stop()
        two.start("kraftd")
        two.source, two.target = two.target, two.source
        two.reassign("--execute")
        wait_until(lambda: two.with_log() == [two.target], "kraftd moves it back", 30)
        assert two.content(two.target) == before
        assert "completed successfully" in two.reassign("--verify")
        assert '"level":"error"' not in two.node.log_text()
    finally:
        two.node.kill()
