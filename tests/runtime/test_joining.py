"""A controller that cannot join its quorum reports the reason at once, and exits if waiting cannot help."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.process import free_port, wait_until
from tests.metrics.scrape import ready
from tests.runtime.daemon_process import CLUSTER_ID, DaemonProcess

NO_LEADER = "no leader: a controller does not help to find one"
ANOTHER_CLUSTER = "aW4gYW5vdGhlciBjbHVzdA"


class Joining(DaemonProcess):
    """A controller that is about to join a quorum at that address."""

    def __init__(self, home: Path, servers: str, node_id: int = 101, **settings: Any) -> None:
        home.mkdir()
        self.metrics_port = free_port()
        listener = f"127.0.0.1:{self.metrics_port}"
        super().__init__(home, kraftd__metrics__listener=listener, **settings)
        text = self.properties.read_text()
        text = text.replace("node.id=100", f"node.id={node_id}")
        text = text.replace(f"bootstrap.servers=127.0.0.1:{self.port}", f"bootstrap.servers={servers}")
        self.properties.write_text(text)

    def format_to_join(self, cluster_id: str = CLUSTER_ID) -> Joining:
        config = str(self.properties)
        self.kraftd("format", "--config", config, "--cluster-id", cluster_id, "--no-initial-controllers")
        return self

    def describe(self) -> subprocess.CompletedProcess[str]:
        options = ("--bootstrap", f"127.0.0.1:{self.port}", "--timeout", "0.5")
        return self.kraftd("quorum", "describe", *options, check=False)

    def reasons(self) -> list[str]:
        return [line["why"] for line in self.lines() if line["event"] == NO_LEADER]

    def wait_for_reason(self, text: str) -> None:
        wait_until(lambda: any(text in why for why in self.reasons()), f"logs {text!r}", 20)


@pytest.fixture(scope="module")
def leader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    process = DaemonProcess(tmp_path_factory.mktemp("leader"), kraftd__client__listener__names="CLIENT")
    text = process.properties.read_text().replace(",PLAINTEXT:PLAINTEXT", ",CLIENT:PLAINTEXT")
    listener = f"listeners=CONTROLLER://127.0.0.1:{process.port}"
    text = text.replace(listener, f"{listener},CLIENT://127.0.0.1:{free_port()}")
    process.properties.write_text(text)
    process.format().start()
    yield process
    process.stop(signal.SIGKILL)


@pytest.fixture
def joining(tmp_path: Path) -> Iterator[list[Joining]]:
    """Ends every process that the test appends."""
    started: list[Joining] = []
    yield started
    for one in started:
        if one.process is not None:
            one.stop(signal.SIGKILL)


def test_a_controller_of_another_cluster_exits_with_a_remedy(
    leader: DaemonProcess, joining: list[Joining], tmp_path: Path
) -> None:
    one = Joining(tmp_path / "one", f"127.0.0.1:{leader.port}").format_to_join(ANOTHER_CLUSTER)
    joining.append(one)
    one.begin()
    assert one.process is not None
    assert one.process.wait(20) == 3
    (line,) = [line for line in one.lines() if line["event"].startswith("fatal")]
    both = f"it is of cluster {CLUSTER_ID}, and this node of {ANOTHER_CLUSTER}"
    for part in (f"127.0.0.1:{leader.port}", both, "format this node"):
        assert part in line["error"]
    refused = [line for line in leader.lines() if line["event"] == "a node is refused"]
    assert f"it names cluster '{ANOTHER_CLUSTER}', and this node is of {CLUSTER_ID}" in refused[-1]["why"]


def test_an_observer_waits_for_its_quorum_beside_an_address_of_another(
    leader: DaemonProcess, joining: list[Joining], tmp_path: Path
) -> None:
    servers = f"127.0.0.1:{leader.port},127.0.0.1:{free_port()}"
    one = Joining(tmp_path / "one", servers).format_to_join(ANOTHER_CLUSTER)
    joining.append(one)
    one.begin()
    one.wait_for_reason("nothing listens there")
    one.wait_for_reason(f"it is of cluster {CLUSTER_ID}")
    wait_until(lambda: re.search(r"no leader for ([5-9]|\d\d+) s", one.describe().stderr), "it waits on", 20)
    assert len(ready(one.metrics_port)[1]["troubles"]) == 2


def test_a_controller_with_the_leaders_id_exits_with_the_reason(
    leader: DaemonProcess, joining: list[Joining], tmp_path: Path
) -> None:
    one = Joining(tmp_path / "one", f"127.0.0.1:{leader.port}", node_id=100).format_to_join()
    joining.append(one)
    one.begin()
    assert one.process is not None
    assert one.process.wait(20) == 3
    (line,) = [line for line in one.lines() if line["event"].startswith("fatal")]
    assert "has the id of this node, 100" in line["error"]
    assert "node.id" in line["error"]
    refused = [line for line in leader.lines() if line["event"] == "a node is refused"]
    assert "id of this node" in refused[-1]["why"]
    described = leader.kraftd("quorum", "describe", "--bootstrap", f"127.0.0.1:{leader.port}")
    assert "node 100 at 127.0.0.1 is refused" in described.stderr
    assert "node.id" in described.stderr


def test_a_brokers_listener_in_a_controllers_place_is_reported(
    leader: DaemonProcess, joining: list[Joining], tmp_path: Path
) -> None:
    (clients,) = re.findall(r"CLIENT://(\S+)", leader.properties.read_text())
    one = Joining(tmp_path / "one", clients).format_to_join()
    joining.append(one)
    one.begin()
    one.wait_for_reason("a broker answers there")
    described = leader.kraftd("quorum", "describe", "--bootstrap", clients)  # it forwards the request
    assert "LeaderId:               100" in described.stdout


def test_peers_that_do_not_answer_are_reported_with_the_reason(
    joining: list[Joining], tmp_path: Path
) -> None:
    dead = free_port()
    servers = f"127.0.0.1:{dead},no-such-host.invalid:9093"
    one = Joining(tmp_path / "one", servers).format_to_join()
    joining.append(one)
    one.begin()
    one.wait_for_reason("nothing listens there")
    one.wait_for_reason("does not resolve")
    status, readiness = ready(one.metrics_port)
    assert status == 503
    assert any(f"127.0.0.1:{dead}: the connection is refused" in line for line in readiness["troubles"])
    described = one.describe()
    assert described.returncode == 1
    assert all(line in described.stderr for line in readiness["troubles"])
    assert len(one.reasons()) == 2  # once a minute


@pytest.mark.parametrize(
    ("greeting", "why", "command"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "an HTTP server answers there", "it speaks HTTP"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "it speaks TLS", "it speaks TLS"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak Kafka's protocol", "does not speak Kafka"),
    ],
)
def test_another_server_in_a_controllers_place_is_reported(
    joining: list[Joining], tmp_path: Path, greeting: bytes, why: str, command: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(greeting)
                    connection.recv(1 << 16)

        threading.Thread(target=serve, daemon=True).start()
        one = Joining(tmp_path / "one", f"127.0.0.1:{server.getsockname()[1]}").format_to_join()
        joining.append(one)
        one.begin()
        one.wait_for_reason(why)
        at = f"127.0.0.1:{server.getsockname()[1]}"
        described = one.kraftd("quorum", "describe", "--bootstrap", at, check=False)
        assert (described.returncode, command in described.stderr) == (5, True)
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("greeting", "protocol"),
    [(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"), (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", "TLS")],
)
def test_a_client_of_another_protocol_is_logged(
    leader: DaemonProcess, greeting: bytes, protocol: str
) -> None:
    with socket.create_connection(("127.0.0.1", leader.port), 10) as client:
        client.sendall(greeting)
        assert client.recv(1) == b""
    closings = [line for line in leader.lines() if line["event"] == "connection closed"]
    assert f"speaks {protocol} on a plaintext connection" in closings[-1]["reason"]


def test_an_advertised_address_of_another_node_is_reported(
    leader: DaemonProcess, joining: list[Joining], tmp_path: Path
) -> None:
    address = f"127.0.0.1:{leader.port}"
    advertised = {"advertised__listeners": f"CONTROLLER://{address}"}
    one = Joining(tmp_path / "one", f"localhost:{leader.port}", **advertised).format_to_join()
    joining.append(one)
    one.begin()
    event = "an advertised address does not lead to its node"
    wait_until(lambda: any(line["event"] == event for line in one.lines()), "it is logged", 20)
    (line,) = ready(one.metrics_port)[1]["addresses"]
    assert line.startswith(f"node 101 (this node) advertises {address}, and another node answers there; ")
    assert event not in {line["event"] for line in leader.lines()}
