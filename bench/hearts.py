"""The heartbeats of many brokers, from a separate process, and their durations.

Every broker has one connection and at most one open heartbeat. A heartbeat that is due while the one before
is unanswered goes out late, and its time counts from when it was due. After a restart of the controller it
connects again, and forgets unanswered heartbeats.
"""

from __future__ import annotations

import multiprocessing
import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from bench.load import HEARTBEAT_VERSION, take_frames
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.wire.api import ApiKey
from kraftd.wire.frames import encode_request, parse_response
from testkit.process import HOST

_CONNECT_AGAIN_S = 0.05
_POLL_S = 0.002


class Beat(NamedTuple):
    """One heartbeat: its broker, when it was due (time.time), its duration, and the answer."""

    broker_id: int
    due_s: float
    took_s: float
    error_code: int
    is_fenced: bool
    should_shut_down: bool


@dataclass
class _Broker:
    broker_id: int
    epoch: int
    due_s: float
    connection: socket.socket | None = None
    waiting: float | None = None
    buffer: bytearray = field(default_factory=bytearray)
    silent: bool = False
    wants_shutdown: bool = False

    def frame(self) -> bytes:
        request = BrokerHeartbeatRequest(
            self.broker_id, self.epoch, self.epoch, want_shut_down=self.wants_shutdown
        )
        return b"".join(encode_request(ApiKey.BROKER_HEARTBEAT, HEARTBEAT_VERSION, 1, "bench", request))


class Hearts:
    """Sends heartbeats of these brokers, (id, epoch) each, at every interval during the block."""

    def __init__(self, port: int, brokers: Sequence[tuple[int, int]], interval_s: float) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(
            target=_beat, args=(other, port, list(brokers), interval_s), daemon=True
        )

    def __enter__(self) -> Hearts:
        self._process.start()
        self._ask("take")
        return self

    def __exit__(self, *_: object) -> None:
        self._ask("stop")
        self._process.join(10)

    def take(self) -> list[Beat]:
        """The answers since the last call."""
        beats: list[Beat] = self._ask("take")
        return beats

    def every(self, interval_s: float) -> None:
        """Use another interval from now on."""
        self._ask("every", interval_s)

    def silence(self, broker_id: int) -> None:
        """Stop the heartbeats of that broker."""
        self._ask("silence", broker_id)

    def shut_down(self, broker_id: int) -> None:
        """Let that broker request its shutdown from now on, beginning at once."""
        self._ask("shut_down", broker_id)

    def _ask(self, *command: Any) -> Any:
        self._pipe.send(command)
        return self._pipe.recv()


def _beat(pipe: Connection, port: int, brokers: list[tuple[int, int]], interval_s: float) -> None:
    """Alternate heartbeats and commands until a command stops it; the target of the process."""
    selector = selectors.DefaultSelector()
    selector.register(pipe, selectors.EVENT_READ, None)
    now_s = time.time()
    known = {
        broker_id: _Broker(broker_id, epoch, now_s + interval_s * number / len(brokers))
        for number, (broker_id, epoch) in enumerate(brokers)
    }
    beats: list[Beat] = []
    while True:
        now_s = time.time()
        for broker in known.values():
            if broker.due_s <= now_s and broker.waiting is None and not broker.silent:
                _send(selector, broker, port, now_s)
        for key, _ in selector.select(_POLL_S):
            if key.data is not None:
                _receive(selector, key.data, beats, interval_s)
                continue
            command, *arguments = pipe.recv()
            sent: list[Beat] = []
            if command == "stop":
                pipe.send(sent)
                return
            if command == "take":
                sent, beats = beats, []
            elif command == "every":
                (interval_s,) = arguments
                for number, broker in enumerate(known.values()):
                    broker.due_s = now_s + interval_s * number / len(known)
            elif command == "silence":
                known[arguments[0]].silent = True
            elif command == "shut_down":
                known[arguments[0]].wants_shutdown, known[arguments[0]].due_s = True, now_s
            pipe.send(sent)


def _send(selector: selectors.BaseSelector, broker: _Broker, port: int, now_s: float) -> None:
    try:
        if broker.connection is None:
            broker.connection = socket.create_connection((HOST, port), timeout=5)
            broker.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(broker.connection, selectors.EVENT_READ, broker)
            broker.due_s = now_s
        broker.connection.sendall(broker.frame())
    except OSError:
        _lose(selector, broker, now_s)
    else:
        broker.waiting = broker.due_s


def _receive(selector: selectors.BaseSelector, broker: _Broker, beats: list[Beat], interval_s: float) -> None:
    assert broker.connection is not None
    try:
        chunk = broker.connection.recv(1 << 16)
    except OSError:
        chunk = b""
    now_s = time.time()
    if not chunk:
        _lose(selector, broker, now_s)
        return
    broker.buffer += chunk
    done, frame = take_frames(broker.buffer)
    if done and broker.waiting is not None:
        _, answer = parse_response(ApiKey.BROKER_HEARTBEAT, HEARTBEAT_VERSION, frame)
        verdict = answer.error_code, answer.is_fenced, answer.should_shut_down  # type: ignore[attr-defined]
        beats.append(Beat(broker.broker_id, broker.waiting, now_s - broker.waiting, *verdict))
        broker.due_s = max(broker.waiting + interval_s, now_s)
        broker.waiting = None
        broker.silent = broker.silent or answer.should_shut_down  # type: ignore[attr-defined]


def _lose(selector: selectors.BaseSelector, broker: _Broker, now_s: float) -> None:
    if broker.connection is not None:
        if broker.connection in selector.get_map():
            selector.unregister(broker.connection)
        broker.connection.close()
    broker.connection, broker.waiting, broker.due_s = None, None, now_s + _CONNECT_AGAIN_S
    broker.buffer.clear()
