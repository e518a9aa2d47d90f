"""The attacks by name. Each runs in a process of its own until it is ended, on a number of connections."""

from __future__ import annotations

import multiprocessing
import random
import resource
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from multiprocessing.sharedctypes import Synchronized
from typing import NamedTuple

from bench.hostile.quorum import READER, STRANGER, Target, connect
from kraftd.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntityData, EntryData
from kraftd.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.incremental_alter_configs_request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.wire.api import ApiKey, listeners, request_class, valid_versions
from kraftd.wire.frames import encode_request
from kraftd.wire.message import Message
from kraftd.wire.table import api_key
from testkit.process import HOST
from testkit.random_messages import damaged, grown

ELEMENTS = 1_000_000
TOPICS = 200_000
PRODUCER_IDS = 100
SMALL_TOPICS, PIPELINED = 1_000, 50
HELLOS = 1_000
HALF_OPEN, MIXED = 500, 5_000
SCRAPES = 64
ANSWER_S = 120.0
HELD_S = 2.0
CONNECT_S = 4.0  # the system retries when the listener's queue is full
RANDOM_REQUESTS = 1_000
MOST_DIGITS = 5.3
LARGEST_BYTES = 4 << 20
RANDOM_ANSWER_S = 20.0
# A login is a dialogue of its own, which `bench.intruders` attacks.
_LOGIN = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
_KEYS = [key for key in ApiKey if "controller" in listeners(key) and key not in _LOGIN]


class Counts(NamedTuple):
    """What an attack has done: requests or connections made, and those answered."""

    made: Synchronized[int]
    answered: Synchronized[int]


Attack = Callable[[Target, int, Counts], None]


def _add(count: Synchronized[int], number: int = 1) -> None:
    with count.get_lock():
        count.value += number


# -- large requests of a principal without rights


def _create_topics(count: int) -> Message:
    return CreateTopicsRequest([CreatableTopic(f"n{at}", 1, 1) for at in range(count)], 10_000)


def _delete_topics(count: int) -> Message:
    return DeleteTopicsRequest([DeleteTopicState(f"n{at}") for at in range(count)], timeout_ms=10_000)


def _describe_configs(count: int) -> Message:
    return DescribeConfigsRequest([DescribeConfigsResource(2, f"n{at}", None) for at in range(count)])


def _alter_configs(count: int) -> Message:
    return IncrementalAlterConfigsRequest([AlterConfigsResource(2, f"n{at}", []) for at in range(count)])


def _create_partitions(count: int) -> Message:
    topics = [CreatePartitionsTopic(f"n{at}", 3, None) for at in range(count)]
    return CreatePartitionsRequest(topics, 10_000)


def _alter_quotas(count: int) -> Message:
    return AlterClientQuotasRequest([EntryData([EntityData("user", f"n{at}")], []) for at in range(count)])


def _alter_scram(count: int) -> Message:
    return AlterUserScramCredentialsRequest([ScramCredentialDeletion(f"n{at}", 1) for at in range(count)])


class Large(NamedTuple):
    """One request of very many elements, again and again on each connection."""

    make: Callable[[int], Message]
    elements: int = ELEMENTS
    through_broker: bool = False

    def prepared(self, target: Target) -> Attack:
        """The attack with its request encoded, which takes seconds."""
        request = self.make(target.elements or self.elements)
        key = api_key(request)
        frame = b"".join(encode_request(key, valid_versions(key)[1], 7, "hostile", request))
        return partial(self.attack, frame=frame)

    def attack(self, target: Target, connections: int, counts: Counts, *, frame: bytes) -> None:
        port = target.broker_port if self.through_broker else target.port
        _on_each(connections, lambda: _send_again_and_again(target.attacker, port, frame, 1, counts))


def _on_each(connections: int, work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work, daemon=True) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _send_again_and_again(
    attacker: str, port: int, frame: bytes, times: int, counts: Counts, user: str = STRANGER
) -> None:
    """Send frames in one write, read as many answers, and so on; until the process ends."""
    while True:
        try:
            with connect(port, user, host=attacker, timeout_s=ANSWER_S) as client:
                while True:
                    _add(counts.made, times)
                    client.socket.sendall(frame * times)
                    for _ in range(times):
                        _skip_frame(client.socket)
                        _add(counts.answered)
        except OSError:
            time.sleep(0.2)


def _skip_frame(sock: socket.socket) -> None:
    """Read an answer and keep nothing of it."""
    left, head = 4, b""
    while left:
        chunk = sock.recv(min(left, 1 << 20))
        if not chunk:
            raise ConnectionError("the connection was closed")
        left -= len(chunk)
        if len(head) < 4:
            head += chunk
            if len(head) == 4:
                left = int.from_bytes(head, "big")


def small_requests(target: Target, connections: int, counts: Counts) -> None:
    """CreateTopics of as many names as a small frame holds, fifty at once on each connection."""
    request = _create_topics(target.elements or SMALL_TOPICS)
    frame = b"".join(encode_request(ApiKey.CREATE_TOPICS, 7, 7, "hostile", request))
    _on_each(
        connections,
        lambda: _send_again_and_again(target.attacker, target.port, frame, PIPELINED, counts),
    )


def init_producer_ids(target: Target, connections: int, counts: Counts) -> None:
    """A hundred InitProducerId at once on each connection, of a principal that may write nowhere."""
    request = InitProducerIdRequest(None, 60_000)
    frame = b"".join(encode_request(ApiKey.INIT_PRODUCER_ID, 4, 7, "hostile", request))
    _on_each(
        connections,
        lambda: _send_again_and_again(
            target.attacker, target.client_port, frame, PRODUCER_IDS, counts, READER
        ),
    )


# -- connections without credentials


def hello(target: Target) -> bytes:
    """A ClientHello."""
    context = ssl.create_default_context(cadata=target.authority_pem)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def wave(target: Target, openings: list[bytes], counts: Counts, until_answered: bool) -> None:
    """Open connections at once, and send a text on each. Wait for answers, or hold them; then close all."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with selectors.DefaultSelector() as selector, ExitStack() as opened:
        for opening in openings:
            sock = opened.enter_context(socket.socket())
            sock.setblocking(False)
            sock.bind((target.attacker, 0))
            sock.connect_ex((HOST, target.secure_port))
            selector.register(sock, selectors.EVENT_WRITE, opening)
        connected = []
        ends_s = time.monotonic() + CONNECT_S
        while selector.get_map() and time.monotonic() < ends_s:
            for key, _ in selector.select(0.1):
                connected.append((selector.unregister(key.fileobj).fileobj, key.data))
        _add(counts.made, len(connected))
        for sock, opening in connected:  # type: ignore[assignment]
            with suppress(OSError):
                sock.send(opening)
            selector.register(sock, selectors.EVENT_READ)
        ends_s = time.monotonic() + (20 if until_answered else HELD_S)
        while selector.get_map() and time.monotonic() < ends_s:
            for key, _ in selector.select(0.1):
                with suppress(OSError):
                    if key.fileobj.recv(1 << 16):  # type: ignore[union-attr]
                        _add(counts.answered)
                selector.unregister(key.fileobj)
            if until_answered and all(
                key.events & selectors.EVENT_WRITE for key in selector.get_map().values()
            ):
                break  # the system still retries to connect the others


def handshakes(target: Target, _: int, counts: Counts) -> None:
    """A thousand ClientHellos at once, and again when all are answered."""
    hellos = [hello(target)] * (target.elements or HELLOS)
    while True:
        wave(target, hellos, counts, until_answered=True)


def half_open(target: Target, _: int, counts: Counts) -> None:
    """Waves of 500 connections that begin a handshake and stop."""
    openings = [b"", b"\x16\x03\x01\x02\x00\x01\x00"] * ((target.elements or HALF_OPEN) // 2)
    while True:
        wave(target, openings, counts, until_answered=False)


def mixed(target: Target, _: int, counts: Counts) -> None:
    """Waves of 5,000 connections: silent ones, pieces of handshakes, whole hellos, random bytes."""
    kinds = [b"", b"\x16\x03\x01\x02\x00\x01\x00", hello(target), random.randbytes(500)]
    while True:
        wave(target, kinds * ((target.elements or MIXED) // 4), counts, until_answered=False)


def scrapes(target: Target, _: int, counts: Counts) -> None:
    """64 connections to the metrics listener that stay open, with a request now and then."""
    held: list[socket.socket] = []
    request = f"GET /healthz HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    while True:
        while len(held) < (target.elements or SCRAPES):
            with suppress(OSError):
                held.append(socket.create_connection((HOST, target.metrics_port), 5, (target.attacker, 0)))
                _add(counts.made)
        for sock in list(held):
            try:
                sock.settimeout(0.5)
                sock.sendall(request)
                if not sock.recv(1 << 16):
                    raise ConnectionError("closed")
                _add(counts.answered)
            except TimeoutError:
                pass
            except OSError:
                sock.close()
                held.remove(sock)
        time.sleep(0.5)


# -- random requests


def random_requests(target: Target, connections: int, counts: Counts) -> None:
    """A number of requests of any API, version, size and principal, some damaged, to all nodes."""
    numbers = iter(range(target.seed, target.seed + (target.elements or RANDOM_REQUESTS)))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            rng = random.Random(number)
            frame = random_frame(rng)
            with suppress(OSError):
                _send_random(target, frame, rng, counts)

    _on_each(connections, work)


def random_frame(rng: random.Random) -> bytes:
    """A request of a controller's API, with its length; one of five is damaged."""
    key = rng.choice(_KEYS)
    version = rng.randint(*valid_versions(key))
    count = int(10 ** rng.uniform(0, MOST_DIGITS))
    while True:
        request = grown(rng, request_class(key), version, count)
        frame = b"".join(encode_request(key, version, 7, "hostile", request))
        if len(frame) <= LARGEST_BYTES or count == 1:
            break
        count = max(1, count * LARGEST_BYTES // len(frame) // 2)
    if rng.random() < 0.2:
        body = damaged(rng, frame[4:])
        frame = len(body).to_bytes(4, "big") + body
    return frame


def _send_random(target: Target, frame: bytes, rng: random.Random, counts: Counts) -> None:
    node = rng.randrange(len(target.ports))
    is_secure, user = rng.random() < 0.5, rng.choice(("", STRANGER, READER))
    port = (target.secure_ports if is_secure else target.ports)[node]
    pem = target.authority_pem if is_secure else ""
    with connect(port, user, pem, host=target.attacker, timeout_s=RANDOM_ANSWER_S) as client:
        _add(counts.made)
        client.socket.sendall(frame)
        _skip_frame(client.socket)
        _add(counts.answered)


ROWS: dict[str, Attack | Large | None] = {
    "nothing": None,
    "CreateTopics": Large(_create_topics, TOPICS),
    "DeleteTopics": Large(_delete_topics),
    "DescribeConfigs": Large(_describe_configs),
    "IncrementalAlterConfigs": Large(_alter_configs),
    "CreatePartitions": Large(_create_partitions),
    "AlterClientQuotas": Large(_alter_quotas),
    "AlterUserScramCredentials": Large(_alter_scram),
    "CreateTopics-by-broker": Large(_create_topics, TOPICS, through_broker=True),
    "DeleteTopics-by-broker": Large(_delete_topics, through_broker=True),
    "small": small_requests,
    "handshakes": handshakes,
    "InitProducerId": init_producer_ids,
    "scrapes": scrapes,
    "half-open": half_open,
    "mixed": mixed,
    "random": random_requests,
}


class Attacker:
    """An attack in a process of its own, between `start` and `end`."""

    def __init__(self, name: str, target: Target, connections: int) -> None:
        context = multiprocessing.get_context("fork")
        self.counts = Counts(context.Value("q", 0), context.Value("q", 0))
        attack = ROWS[name]
        if isinstance(attack, Large):
            attack = attack.prepared(target)
        self._process = None
        if attack is not None:
            arguments = (target, connections, self.counts)
            self._process = context.Process(target=attack, args=arguments, daemon=True)

    def start(self) -> None:
        if self._process is not None:
            self._process.start()

    def has_ended(self) -> bool:
        """Return whether the attack ended by itself, because it has a number of requests."""
        return self._process is not None and not self._process.is_alive()

    def end(self) -> tuple[int, int]:
        """Kill it; the numbers made and answered."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        return self.counts.made.value, self.counts.answered.value
