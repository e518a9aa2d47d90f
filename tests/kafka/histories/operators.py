"""Runs Kafka's own tools in a loop, through the brokers and at the controllers: each run must succeed."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from testkit.java import ToolRun, tools
from testkit.quorum import Quorum

Command = tuple[object, ...]
# Kafka's own controllers answer this to a tool while they start: they have not read their metadata.version.
STARTS = "Direct-to-controller communication is not supported"
# Printed by a tool when a controller of Kafka's knew no leader during an election: it asks no other one.
NO_CONTROLLER = "Timed out waiting for a node assignment"


class Operator(threading.Thread):
    """Runs one tool after the other and keeps the output of those that failed. They retry as by default."""

    def __init__(self, quorum: Quorum, seed: int) -> None:
        super().__init__(daemon=True)
        self.failures: list[str] = []
        self.done = 0
        self._quorum, self._random = quorum, random.Random(seed)
        self._topics: list[str] = []
        self._stopping = threading.Event()

    def __repr__(self) -> str:
        return f"<Operator {self.done} commands, {len(self.failures)} failed>"

    def __enter__(self) -> Operator:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.join(180)

    def run(self) -> None:
        while not self._stopping.wait(0.1):
            choice = self._random.choice(self.COMMANDS)
            name, *arguments = choice(self)
            at_controllers = self._random.random() < 0.5
            done = self._run(str(name), arguments, at_controllers)
            if done.code and not self._is_kafkas_own(done, at_controllers):
                self.failures.append(f"{name} {arguments}: exit {done.code}\n{done.out}\n{done.err}")
            self.done += 1

    def _is_kafkas_own(self, done: ToolRun, at_controllers: bool) -> bool:
        """Return whether a failure is one that Kafka's controllers are known for."""
        text = done.out + done.err
        is_one_there = any(one.kind == "apache" for one in list(self._quorum.controllers.values()))
        return STARTS in text or (at_controllers and is_one_there and NO_CONTROLLER in text)

    def _run(self, name: str, arguments: list[object], at_controllers: bool) -> ToolRun:
        if at_controllers and name != "topics" and "--describe" not in arguments:
            servers = ",".join(one.address for one in list(self._quorum.controllers.values()) if one.alive)
            if servers:
                return tools().run(name, "--bootstrap-controller", servers, *arguments)
        servers = ",".join(broker.address for broker in self._quorum.brokers.values())
        return tools().run(name, "--bootstrap-server", servers, *arguments)

    # --- commands

    def _create(self) -> Command:
        self._topics.append(f"by-tool-{len(self._topics)}")
        topic = self._topics[-1]  # of one replica, since the other broker may be down
        return "topics", "--create", "--if-not-exists", "--topic", topic, "--partitions", 2

    def _topic(self) -> str:
        """A topic that was created long enough ago for every broker to know it."""
        return self._random.choice(["stream", *self._topics[:-3]])

    def _configure_topic(self) -> Command:
        change = f"retention.ms={self._random.randrange(10**6, 10**7)}"
        return "configs", "--alter", "--entity-type", "topics", "--entity-name", self._topic(), *add(change)

    def _configure_brokers(self) -> Command:
        change = f"log.cleaner.threads={self._random.randrange(1, 3)}"
        return "configs", "--alter", "--entity-type", "brokers", "--entity-default", *add(change)

    def _show_configs(self) -> Command:
        return "configs", "--describe", "--entity-type", "topics", "--entity-name", self._topic()

    def _describe(self) -> Command:
        return "metadata-quorum", "describe", self._random.choice(("--status", "--replication"))

    def _features(self) -> Command:
        return "features", "describe"

    COMMANDS: tuple[Callable[[Operator], Command], ...] = (
        _create,
        _create,
        _configure_topic,
        _configure_brokers,
        _show_configs,
        _describe,
        _features,
    )


def add(change: str) -> tuple[str, str]:
    return "--add-config", change
