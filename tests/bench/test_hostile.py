"""Hostile load with small numbers: no leader is deposed, and the benchmark measures and draws it."""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
import threading
import time
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from bench.hostile import plot
from bench.hostile.__main__ import measure, table, within
from bench.hostile.others import Others, Repeated
from bench.hostile.quorum import (
    ACLS_PER_REQUEST,
    ACLS_VERSION,
    ADMIN,
    HOSTILE_HOST,
    READER,
    STRANGER,
    Attacked,
    Target,
    connect,
)
from bench.hostile.rows import LARGEST_BYTES, Counts, hello, random_frame, wave
from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.wire.error_code import ErrorCode

REQUESTS, TOPICS = 60, 150_000
HELLOS = 60  # of each address; more than 64 at once would have to wait for places
DENIED_LENGTHS, ALLOWED_NAMES = 240, 4_000
# Starved of processor time by other work, nodes lose their leader within the default of two seconds.
PATIENT = {"controller.quorum.fetch.timeout.ms": 10_000, "controller.quorum.election.timeout.ms": 5_000}
ALL_S = 600  # until all requests are made
TIMED_NODE = Path(__file__).with_name("timed_node.py")
# Of the loop's own processor time, so other work on the machine counts for little. Seen: below 20 ms; with
# requests decoded or served in one step: hundreds.
LONGEST_TURN_MS = 100.0


def ask_for_much(port: int) -> None:
    """Ask to create very many topics without the right to; one name is twice, so the request is decoded."""
    topics = [CreatableTopic(f"n{max(number, 1)}", 1, 1) for number in range(TOPICS)]
    with connect(port, STRANGER, host=HOSTILE_HOST, timeout_s=ALL_S) as client:
        answer = client.call(CreateTopicsRequest(topics, 10_000), 7)
    assert all(topic.error_code for topic in answer.topics)


def greet_at_once(target: Target) -> None:
    """Begin handshakes from several addresses: their cryptography costs hundreds of milliseconds together."""
    context = multiprocessing.get_context("fork")
    counts, opening = Counts(context.Value("q", 0), context.Value("q", 0)), hello(target)

    def greet(address: str) -> None:
        wave(target._replace(attacker=address), [opening] * HELLOS, counts, until_answered=True)

    with ThreadPoolExecutor() as threads:
        list(threads.map(greet, ("127.0.0.2", "127.0.0.3", "127.0.0.4")))
    assert counts.answered.value > 2 * HELLOS


def ask_where_acls_deny(target: Target) -> None:
    """Ask whether any topic may be written to: each allowed name is looked up among denied prefixes."""
    denied = [*("y" * length for length in range(1, DENIED_LENGTHS)), "x" * DENIED_LENGTHS]
    allowed = [f"{denied[-1]}{number:04}" for number in range(ALLOWED_NAMES)]
    acls = [
        AclCreation(AclResourceType.TOPIC, name, kind, f"User:{READER}", "*", AclOperation.WRITE, permission)
        for kind, names, permission in (
            (AclPatternType.PREFIXED, denied, AclPermission.DENY),
            (AclPatternType.LITERAL, allowed, AclPermission.ALLOW),
        )
        for name in names
    ]
    with connect(target.port, ADMIN, timeout_s=ALL_S) as client:
        for start in range(0, len(acls), ACLS_PER_REQUEST):
            request = CreateAclsRequest(acls[start : start + ACLS_PER_REQUEST])
            assert not any(one.error_code for one in client.call(request, ACLS_VERSION).results)
    with connect(target.client_port, READER, host=HOSTILE_HOST, timeout_s=ALL_S) as client:
        answer = client.call(InitProducerIdRequest(None, 60_000), 4)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def timed_command(properties_file: Path, times: Path) -> list[str]:
    return [sys.executable, str(TIMED_NODE), str(times), "start", str(properties_file)]


def test_random_hostile_requests_depose_no_leader_and_hold_no_loop(tmp_path: Path) -> None:
    """Of any API, version, size and principal, to leader and followers, in plaintext and over TLS."""
    options = Namespace(seconds=ALL_S, recovery=ALL_S, settle=0, elements=REQUESTS, seed=0)
    options.follower, options.source = False, HOSTILE_HOST
    nodes = Attacked(tmp_path, "kraftd", with_broker=False, properties=PATIENT)
    times = {node_id: tmp_path / f"turns-{node_id}" for node_id in nodes.quorum.controllers}
    for node_id, one in nodes.quorum.controllers.items():
        one.command_line = partial(timed_command, one.properties_file, times[node_id])
    try:
        nodes.start()
        target = nodes.target()
        ask_for_much(target.port)
        greet_at_once(target)
        ask_where_acls_deny(target)
        found = measure(nodes, "random", 4, options)
    finally:
        nodes.quorum.close()
    longest_ms = [float(file.read_text()) for file in times.values()]
    assert all(0 < turn_ms < LONGEST_TURN_MS for turn_ms in longest_ms), longest_ms
    assert found["depositions"] == 0
    assert found["made"] > REQUESTS / 2
    assert table({"random x4": {"kraftd": found}}).row_count == 1


def test_measuring_that_fails_is_noticed() -> None:
    """On a busy machine the process may find no leader; the benchmark must not wait for it."""
    with pytest.raises(EOFError):
        Others(None, "no target", 20)  # type: ignore[arg-type]


def test_a_request_without_an_answer_counts_with_its_wait() -> None:
    """The benchmark ends in time although a node answers nothing."""
    ends, asked, answers = threading.Event(), threading.Event(), threading.Event()

    def request(client: object) -> None:
        asked.set()
        answers.wait()

    leader = Namespace(get=lambda: None, forget=lambda: None)
    one = Repeated([5.0], 0.0, ends, leader, request)  # type: ignore[arg-type]
    one.start()
    asked.wait()
    ends.set()
    answered, waiting = one.end(time.monotonic())
    assert answered == 5.0 and waiting > 0
    answers.set()
    one.join()
    assert len(one.end(time.monotonic())) == 2


def test_a_quorum_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    answers = threading.Event()
    assert within(0.01, lambda: int(answers.wait())) is None
    answers.set()
    assert within(60, lambda: 7) == 7
    row = {"x50": {"Kafka": {"fetch_max_ms": 30_000.0, "depositions": None}}}
    assert b"30,000 ms, no leader afterwards" in plot.draw(row, tmp_path).read_bytes()


def test_random_frames_have_their_length_and_many_sizes() -> None:
    frames = [random_frame(random.Random(seed)) for seed in range(40)]
    assert all(int.from_bytes(frame[:4], "big") == len(frame) - 4 for frame in frames)
    assert min(map(len, frames)) < 200
    assert 20_000 < max(map(len, frames)) < 2 * LARGEST_BYTES
    assert random_frame(random.Random(3)) == frames[3]


def test_the_plot_keeps_other_sides_and_shows_epochs(tmp_path: Path) -> None:
    before = {"CreateTopics x1": {"before": {"fetch_max_ms": 8_000.0, "depositions": 3}}}
    after = {"CreateTopics x1": {"kraftd": {"fetch_max_ms": 12.0, "depositions": 0}}}
    plot.remember(before, tmp_path)
    results = plot.remember(after, tmp_path)
    assert results == json.loads((tmp_path / "hostile.json").read_text())
    first = plot.draw(results, tmp_path).read_bytes()
    assert b"8,000 ms, 3 new epochs" in first and b"12 ms<" in first
    assert plot.draw(results, tmp_path).read_bytes() == first
