"""The daemon as a process: hostile peers, signals, addresses, directories."""

from __future__ import annotations

import random
import resource
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.metadata.features import supported_features
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import parse_response
from testkit.process import wait_until
from tests.runtime.daemon_process import CLUSTER_ID, Client, DaemonProcess

LOGGER = 8  # a type of resource


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[DaemonProcess]:
    process = DaemonProcess(tmp_path).format().start()
    yield process
    process.stop(signal.SIGKILL)


def register(client: Client, broker_id: int = 1) -> int:
    answer = client.call(
        BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=bytes(15) + b"\7",
            listeners=[Listener("PLAINTEXT", "127.0.0.1", 9092)],
            features=[Feature(name, *levels) for name, levels in supported_features().items()],
            log_dirs=(bytes(14) + b"\1\1",),
        ),
        4,
    )
    assert answer.error_code == ErrorCode.NONE
    return int(answer.broker_epoch)


def creation(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest([CreatableTopic(name, 1, 1)], 30_000)


def test_it_starts_serves_and_ends_with_0_on_sigterm(daemon: DaemonProcess) -> None:
    client = daemon.client()
    assert client.api_versions().finalized_features_epoch >= 0
    assert daemon.stop() == 0
    assert daemon.lines()[-1]["event"] == "stopped"
    with pytest.raises(ConnectionError):
        client.api_versions()


def test_sigint_ends_it_as_well(daemon: DaemonProcess) -> None:
    assert daemon.stop(signal.SIGINT) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_at_any_moment_of_its_start_ends_it_with_0(
    daemon: DaemonProcess, number: signal.Signals
) -> None:
    moments: list[Callable[[], bool]] = [
        lambda: daemon.catches(signal.SIGTERM),  # the last of the two that it handles
        lambda: listens(daemon.port),
        lambda: "active controller" in daemon.log.read_text(),
    ]
    for moment in moments:
        daemon.stop(signal.SIGKILL)
        daemon.log.write_text("")
        daemon.begin()
        wait_until(moment, "its start reaches that moment", poll_s=0.001)
        assert daemon.stop(number) == 0, daemon.log.read_text()
    daemon.start()
    assert daemon.stop() == 0


def test_repeated_signals_end_it_with_0_as_well(daemon: DaemonProcess) -> None:
    assert daemon.process is not None
    deadline_s = time.monotonic() + 60
    while daemon.process.poll() is None and time.monotonic() < deadline_s:
        daemon.process.send_signal(random.choice((signal.SIGTERM, signal.SIGINT)))
    assert daemon.stop() == 0


def listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def test_it_keeps_serving_if_no_process_reads_its_announcement(daemon: DaemonProcess) -> None:
    assert daemon.stop() == 0
    assert daemon.begin().process is not None
    daemon.process.stdout.close()
    wait_until(lambda: listens(daemon.port), "it listens")
    client = daemon.client()
    assert client.api_versions().error_code == ErrorCode.NONE
    client.close()
    assert daemon.stop() == 0


def test_acknowledged_topics_survive_a_kill(daemon: DaemonProcess) -> None:
    client = daemon.client()
    epoch = register(client)
    beat = BrokerHeartbeatRequest(1, epoch, current_metadata_offset=epoch)
    assert not client.call(beat, 1).is_fenced
    for number in range(20):
        answer = client.call(creation(f"t{number}"), 7)
        assert answer.topics[0].error_code == ErrorCode.NONE
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    again = daemon.start().client()
    for number in range(20):
        answer = again.call(creation(f"t{number}"), 7)
        assert answer.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert daemon.stop() == 0


def test_pipelined_requests_are_answered_in_order(daemon: DaemonProcess) -> None:
    client = daemon.client()
    names = [f"t{number}" for number in range(300)]
    answers = client.pipeline([creation(name) for name in names], 7)  # it checks the correlation ids
    assert [answer.topics[0].name for answer in answers] == names


def test_requests_in_flight_are_answered_before_it_ends(daemon: DaemonProcess) -> None:
    client = daemon.client()
    client.api_versions()
    for number in range(200):
        client.socket.sendall(client.frame(creation(f"t{number}"), 7))

    def receive() -> str:
        _, answer = parse_response(ApiKey.CREATE_TOPICS, 7, client.receive_frame())
        return str(answer.topics[0].name)

    received = [receive()]
    ended: list[int] = []
    stopper = threading.Thread(target=lambda: ended.append(daemon.stop()))
    stopper.start()
    try:
        while True:
            received.append(receive())
    except ConnectionError:
        pass
    stopper.join()
    assert ended == [0]
    assert received == [f"t{number}" for number in range(len(received))]  # a prefix, in order


def test_ten_thousand_hostile_frames_close_their_own_connection_with_one_line_each(
    daemon: DaemonProcess,
) -> None:
    rng = random.Random(20)
    bystander = daemon.client()
    bystander.api_versions()
    sent = connections = 0
    while sent < 10_000:
        client = daemon.client()
        connections += 1
        try:
            for _ in range(50):
                client.socket.sendall(hostile_frame(rng))
                sent += 1
        except OSError:
            pass  # closed already
        client.close()
    assert bystander.api_versions().error_code == ErrorCode.NONE
    assert daemon.stop() == 0
    closed = [line for line in daemon.lines() if line["event"] == "connection closed"]
    assert 0 < len(closed) <= connections
    assert not [line for line in daemon.lines() if line["level"] in ("error", "critical")]


def hostile_frame(rng: random.Random) -> bytes:
    kind = rng.randrange(4)
    if kind == 0:
        body = rng.randbytes(rng.randrange(1, 200))
    elif kind == 1:  # a valid header, an invalid body
        key = rng.choice(list(ApiKey))
        body = struct.pack(">hhih", key, rng.randrange(20), 1, -1) + rng.randbytes(rng.randrange(60))
    elif kind == 2:  # an impossible size
        return struct.pack(">i", rng.choice([0, -1, -(2**31), 2**31 - 1])) + rng.randbytes(20)
    else:
        body = struct.pack(">hhih", rng.randrange(-5, 120), rng.randrange(-3, 30), 1, rng.randrange(-9, 50))
    return struct.pack(">i", len(body)) + body


def test_500_announcements_of_90_mib_cost_little_and_stop_no_client(daemon: DaemonProcess) -> None:
    bystander = daemon.client()
    bystander.api_versions()
    before = daemon.rss_bytes()
    hostile = []
    for _ in range(500):
        sock = socket.create_connection(("127.0.0.1", daemon.port))
        sock.sendall(struct.pack(">i", 90 << 20) + bytes(60))
        hostile.append(sock)
    assert bystander.api_versions().error_code == ErrorCode.NONE
    assert daemon.client().api_versions().error_code == ErrorCode.NONE
    assert daemon.rss_bytes() - before < 64 << 20
    for sock in hostile:
        sock.close()
    assert daemon.stop() == 0


def test_a_port_in_use_is_reported_and_nothing_is_damaged(daemon: DaemonProcess, tmp_path: Path) -> None:
    home = tmp_path / "second"
    home.mkdir()
    second = DaemonProcess(home, daemon.port).format()
    done = second.kraftd("start", str(second.properties), check=False)
    assert done.returncode != 0
    assert f"127.0.0.1:{daemon.port}" in done.stderr
    assert daemon.client().api_versions().error_code == ErrorCode.NONE


def test_a_directory_locked_by_another_process_is_refused(daemon: DaemonProcess, tmp_path: Path) -> None:
    home = tmp_path / "second"
    home.mkdir()
    second = DaemonProcess(home)
    text = second.properties.read_text().replace(str(home / "data"), str(daemon.home / "data"))
    second.properties.write_text(text)
    done = second.kraftd("start", str(second.properties), check=False)
    assert done.returncode != 0
    assert str(daemon.home / "data") in done.stderr
    assert daemon.client().api_versions().error_code == ErrorCode.NONE


def test_an_unformatted_directory_is_refused_with_the_command_to_run(tmp_path: Path) -> None:
    done = DaemonProcess(tmp_path).kraftd("start", str(tmp_path / "controller.properties"), check=False)
    assert done.returncode != 0
    assert "kraftd format" in done.stderr


def test_a_write_that_fails_ends_the_process_and_loses_nothing_acknowledged(daemon: DaemonProcess) -> None:
    daemon.stop()
    with daemon.properties.open("a") as properties:
        properties.write("kraftd.log.level=warning\n")  # limits apply to the log of lines, too
    client = daemon.start().client()
    epoch = register(client)
    beat = BrokerHeartbeatRequest(1, epoch, current_metadata_offset=epoch)
    assert not client.call(beat, 1).is_fenced
    assert daemon.process is not None
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (16_384, 16_384))  # in place of a disk's end
    acknowledged = []
    with pytest.raises((ConnectionError, OSError)):
        for number in range(1_000):
            answer = client.call(creation(f"t{number}"), 7)
            assert answer.topics[0].error_code == ErrorCode.NONE
            acknowledged.append(f"t{number}")
    assert daemon.process.wait(60) == 1
    (line,) = [line for line in daemon.lines() if line["level"] == "critical"]
    assert str(daemon.home / "data") in line["error"]
    again = daemon.start().client()
    for name in acknowledged:
        answer = again.call(creation(name), 7)
        assert answer.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert acknowledged


def test_the_log_level_changes_while_the_daemon_runs__kip412(daemon: DaemonProcess) -> None:
    client = daemon.client()
    for level in ("ERROR", "DEBUG", "INFO"):
        resource = AlterConfigsResource(LOGGER, "100", [AlterableConfig("root", 0, level)])
        changed = client.call(IncrementalAlterConfigsRequest([resource]), 1)
        assert [one.error_code for one in changed.responses] == [ErrorCode.NONE]
        request = DescribeConfigsRequest([DescribeConfigsResource(LOGGER, "100")])
        assert [one.value for one in client.call(request, 4).results[0].configs] == [level]
    client.close()
    # each warning is written at the level before it: that of DEBUG was left out
    said = [line["root"] for line in daemon.lines() if line["event"] == "the log level changes"]
    assert said == ["ERROR", "INFO"]
