"""What others notice of an attack: fetches of a peer, heartbeats, administration and health probes.

A separate process measures. Each kind has one request under way and the next one due an interval later.
A request that fails, or that meets no leader, is sent again to the next leader. Its time counts from when it
was first due. One that is not answered when the measuring ends counts with the time that it has waited.
"""

from __future__ import annotations

import multiprocessing
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from bench.hostile.quorum import ADMIN, Target, connect
from bench.load import (
    CREATE_TOPICS_VERSION,
    FETCH_VERSION,
    HEARTBEAT_VERSION,
    BenchBroker,
    empty_fetch,
    quorum_position,
)
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.wire.error_code import ErrorCode
from testkit.client import Client
from testkit.process import HOST
from testkit.quorum import DESCRIBE

BROKERS = 5
FETCH_EVERY_S, HEARTBEAT_EVERY_S, OPERATION_EVERY_S, HEALTH_EVERY_S = 0.02, 0.02, 0.1, 0.2
GIVE_UP_S = 30.0
HEALTH_TIMEOUT_S = 1.0
PAUSE_S = 0.05

Times = dict[str, list[float]]


class _NotAnsweredError(OSError):
    """The node refuses, for example because it does not lead."""


class _Leader:
    """A connection of the administrator to whatever node leads."""

    def __init__(self, ports: tuple[int, ...]) -> None:
        self.ports = ports
        self.client: Client | None = None

    def get(self) -> Client:
        """The connection; OSError while no node leads."""
        if self.client is None:
            for port in self.ports:
                with suppress(OSError):
                    client = connect(port, ADMIN, timeout_s=GIVE_UP_S)
                    partition = client.call(DESCRIBE, 2).topics[0].partitions[0]
                    if partition.error_code == ErrorCode.NONE:
                        self.client = client
                        return client
                    client.close()
            raise _NotAnsweredError("no node leads")
        return self.client

    def forget(self) -> None:
        if self.client is not None:
            self.client.close()
        self.client = None


class Repeated(threading.Thread):
    """Sends a request at each interval."""

    def __init__(
        self,
        times_ms: list[float],
        interval_s: float,
        ends: threading.Event,
        leader: _Leader,
        request: Callable[[Client], None],
    ) -> None:
        super().__init__(daemon=True)
        self.times_ms, self.interval_s, self.ends = times_ms, interval_s, ends
        self.leader, self.request = leader, request
        self.due_s = 0.0

    def run(self) -> None:
        self.due_s = time.monotonic()
        while not self.ends.wait(max(self.due_s - time.monotonic(), 0)):
            while not self.ends.is_set():
                try:
                    self.request(self.leader.get())
                    break
                except (OSError, ValueError):
                    self.leader.forget()
                    time.sleep(PAUSE_S)
            now_s = time.monotonic()
            self.times_ms.append((now_s - self.due_s) * 1000)
            self.due_s = max(self.due_s + self.interval_s, now_s)

    def end(self, deadline_s: float) -> list[float]:
        """Wait for the request that is under way until then; the times, with that of one still under way."""
        self.join(max(deadline_s - time.monotonic(), 0))
        under_way = [(time.monotonic() - self.due_s) * 1000] if self.is_alive() else []
        return self.times_ms + under_way


class _Fetches:
    """Empty fetches at the end of the log, as a peer sends them, without a wait."""

    def __init__(self, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self.position: tuple[int, int] | None = None

    def __call__(self, client: Client) -> None:
        if self.position is None:
            self.position = quorum_position(client)
        answer = client.call(empty_fetch(self.cluster_id, *self.position), FETCH_VERSION)
        partition = answer.responses[0].partitions[0]
        if answer.error_code or partition.error_code or partition.high_watermark < 0:
            self.position = None
            raise _NotAnsweredError("the fetch was refused")
        self.position = self.position[0], partition.high_watermark


class _Heartbeats:
    """Heartbeats of one broker after the other."""

    def __init__(self, brokers: list[BenchBroker]) -> None:
        self.brokers, self.next = brokers, 0

    def __call__(self, client: Client) -> None:
        broker = self.brokers[self.next % len(self.brokers)]
        answer = client.call(broker.heartbeat(), HEARTBEAT_VERSION)
        if answer.error_code:
            raise _NotAnsweredError("the heartbeat was refused")
        self.next += 1


class _Creates:
    """A new topic each time."""

    def __init__(self, prefix: str) -> None:
        self.prefix, self.number = prefix, 0

    def __call__(self, client: Client) -> None:
        topic = CreatableTopic(f"{self.prefix}-{self.number}", 1, 1)
        answer = client.call(CreateTopicsRequest([topic], 10_000, False), CREATE_TOPICS_VERSION)
        code = answer.topics[0].error_code
        if code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise _NotAnsweredError(f"the topic was refused: {code}")
        self.number += 1


def _probe_health(port: int, times_ms: list[float], failed: list[float], ends: threading.Event) -> None:
    """Ask /healthz on new connections, as a probe does; the target of a thread."""
    while not ends.wait(HEALTH_EVERY_S):
        began = time.monotonic()
        try:
            with socket.create_connection((HOST, port), HEALTH_TIMEOUT_S) as sock:
                sock.sendall(f"GET /healthz HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
                well = sock.recv(4096).split(b" ")[1:2] == [b"200"]
        except OSError:
            well = False
        (times_ms if well else failed).append((time.monotonic() - began) * 1000)


def _measure(pipe: Any, target: Target, name: str, first_broker: int) -> None:
    """Measure from the parent's word to its next; the target of the process."""
    times: Times = {"fetch": [], "heartbeat": [], "operation": [], "health": [], "health_failed": []}
    brokers: list[BenchBroker] = []
    first = _Leader(target.ports)
    deadline = time.monotonic() + GIVE_UP_S
    while len(brokers) < BROKERS:
        try:
            brokers.append(BenchBroker(first_broker + len(brokers), 0, target.cluster_id, client=first.get()))
            brokers[-1].unfence()
        except (OSError, RuntimeError):
            first.forget()
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE_S)
    ends = threading.Event()
    jobs: list[tuple[str, float, Callable[[Client], None]]] = [
        ("fetch", FETCH_EVERY_S, _Fetches(target.cluster_id)),
        ("heartbeat", HEARTBEAT_EVERY_S, _Heartbeats(brokers)),
        ("operation", OPERATION_EVERY_S, _Creates(name)),
    ]
    repeated = {}
    for kind, interval_s, request in jobs:
        leader = _Leader(target.ports)
        with suppress(OSError):  # an election; the thread looks again
            leader.get()
        repeated[kind] = Repeated(times[kind], interval_s, ends, leader, request)
    threads: list[threading.Thread] = list(repeated.values())
    if target.metrics_port:
        arguments = (target.metrics_port, times["health"], times["health_failed"], ends)
        threads.append(threading.Thread(target=_probe_health, args=arguments, daemon=True))
    pipe.send("ready")
    pipe.recv()
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + pipe.recv()
    ends.set()
    pipe.send(times | {kind: one.end(deadline) for kind, one in repeated.items()})


class Others:
    """Measures between `start` and `end`, in a process of its own; EOFError if that ends early."""

    def __init__(self, target: Target, name: str, first_broker: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(
            target=_measure, args=(other, target, name, first_broker), daemon=True
        )
        self._process.start()
        other.close()  # the process alone holds it, so that its end is noticed
        self._pipe.recv()

    def start(self) -> None:
        self._pipe.send("start")

    def end(self, patience_s: float) -> Times:
        """Milliseconds of each request, by kind. Waits for those that are under way, but not longer."""
        self._pipe.send(patience_s)
        times: Times = self._pipe.recv()
        self._process.join()
        return times
