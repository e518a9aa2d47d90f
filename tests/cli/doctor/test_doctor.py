"""``kraftd doctor`` examines a running node, a stopped node, and a remote quorum."""

from __future__ import annotations

import asyncio
import http.server
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftd.cli.doctor.findings import Finding
from kraftd.cli.doctor.judge_peers import Answer
from kraftd.cli.doctor.quorum_probe import Leader, controllers_behind
from kraftd.cli.quorum.leader import Quorum
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest
from kraftd.messages.broker_registration_request import Feature as BrokerFeature
from kraftd.messages.broker_registration_request import Listener as BrokerListener
from kraftd.messages.controller_registration_request import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)
from kraftd.messages.describe_quorum_response import PartitionData, ReplicaState
from kraftd.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftd.metadata.features import supported_features
from testkit.process import free_port, wait_until
from tests.cli.run import run, started, tree, write_config
from tests.runtime.daemon_process import Client

CLUSTER_ID, OTHER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q", "MkU3OEVBNTcwNTJENDM2Qg"
GHOST = 9
Found = list[dict[str, str]]


def examined(*words: object, code: int) -> Found:
    """Return doctor's findings without that of a slow disk, and check its exit code."""
    done = run("doctor", "--timeout", "2", "--json", *words)
    lines = [json.loads(line) for line in done.out.splitlines()]
    found = [one for one in lines if one["level"] == "ok" or not one["text"].startswith("a sync takes")]
    is_slow = len(found) < len(lines)
    assert done.code == code or (is_slow and done.code == 1), (done, lines)
    return found


def wrong(found: Found) -> list[tuple[str, str]]:
    """Return (area, subject) of each fault, and check that each has a remedy."""
    bad = [one for one in found if one["level"] in ("problem", "warning")]
    assert all(one["remedy"] for one in bad), bad
    return [(one["area"], one["subject"]) for one in bad]


def formatted(folder: Path, port: int, cluster_id: str = CLUSTER_ID, **changes: str) -> Path:
    config = write_config(folder, port, **changes)
    assert run("format", "-c", config, "-t", cluster_id, "--standalone").code == 0
    return config


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """The configuration file and the port of a node that leads alone."""
    port = free_port()
    folder = tmp_path_factory.mktemp("node")
    config = formatted(folder, port)
    with started(config):
        describe = ("quorum", "describe", "--bootstrap", f"127.0.0.1:{port}")
        wait_until(lambda: run(*describe).code == 0, "there is a leader")
        yield config, port


def test_a_healthy_stopped_node_is_reported_healthy_and_is_not_changed(tmp_path: Path) -> None:
    port = free_port()
    config = formatted(tmp_path, port)
    before = tree(tmp_path)
    found = examined("--config", config, code=0)
    assert tree(tmp_path) == before
    areas = {one["area"] for one in found}
    assert areas == {"config", "files", "disk", "names", "ports", "voters"}
    (free,) = [one for one in found if one["area"] == "ports"]
    assert (free["subject"], free["text"]) == (f"127.0.0.1:{port}", "it is free: this node does not run")


def test_a_healthy_running_node_is_reported_healthy(running: tuple[Path, int]) -> None:
    config, _ = running
    found = examined("--config", config, code=0)
    findings = {(one["area"], one["text"]) for one in found}
    assert ("ports", "this node answers") in findings
    assert ("versions", "supports all 7 finalized features") in findings
    assert ("voters", f"of the quorum's cluster, {CLUSTER_ID}") in findings
    assert ("clocks", "its clock agrees with this machine's") in findings
    assert not any(one["area"] in ("brokers", "partitions") for one in found)  # there are none


def test_faults_of_this_machine_are_reported_with_remedies(tmp_path: Path) -> None:
    config = formatted(tmp_path, free_port())
    partition = tmp_path / "data" / "__cluster_metadata-0"
    partition.mkdir(exist_ok=True)
    (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {OTHER_ID}")
    write_config(tmp_path, 0, node__id="2", controller__quorum__bootstrap__servers="nowhere.invalid:9093")
    found = examined("--config", config, code=1)
    assert wrong(found) == [
        ("files", str(tmp_path / "data")),  # of node 1
        ("files", str(partition)),
        ("names", "nowhere.invalid"),
    ]


def test_an_advertised_name_that_does_not_resolve_is_reported(tmp_path: Path) -> None:
    config = formatted(tmp_path, free_port())
    advertised = "CONTROLLER://nowhere.invalid:9093"
    write_config(tmp_path, free_port(), advertised__listeners=advertised)
    assert wrong(examined("--config", config, code=1)) == [("names", "nowhere.invalid")]


def test_each_error_of_a_configuration_file_is_a_finding(tmp_path: Path) -> None:
    config = write_config(tmp_path, 9093, num__partitions="many", log__retention__hrs="3")
    assert wrong(examined("--config", config, code=1)) == [("config", str(config))] * 2


def test_a_port_that_another_cluster_uses_is_reported(running: tuple[Path, int], tmp_path: Path) -> None:
    _, port = running
    config = formatted(tmp_path, port, OTHER_ID)
    found = examined("--config", config, code=1)
    assert wrong(found) == [("ports", f"127.0.0.1:{port}")]


def test_peers_of_another_cluster_or_protocol_are_reported(running: tuple[Path, int], tmp_path: Path) -> None:
    _, port = running
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    closed, web = free_port(), server.server_address[1]
    peers = ",".join(f"127.0.0.1:{one}" for one in (port, web, closed))
    config = formatted(tmp_path, free_port(), OTHER_ID, controller__quorum__bootstrap__servers=peers)
    try:
        found = examined("--config", config, code=1)
    finally:
        server.shutdown()
        server.server_close()
    texts = {one["subject"]: one["text"] for one in found if one["area"] == "peers"}
    assert texts == {
        f"127.0.0.1:{port}": f"it is of cluster {CLUSTER_ID}, not of {OTHER_ID}",
        f"127.0.0.1:{web}": "an HTTP server answers there, no controller",
        f"127.0.0.1:{closed}": "the connection is refused: nothing listens there",
    }


def test_a_peer_with_a_tls_listener_is_reported(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # without a certificate: it answers with an alert
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    accepted, _ = server.accept()
                    with context.wrap_socket(accepted, server_side=True):
                        pass
                except ssl.SSLError:
                    accepted.close()
                except OSError:
                    return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        at = f"127.0.0.1:{server.getsockname()[1]}"
        found = examined("--bootstrap", at, code=1)
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)
    assert [one["text"] for one in found if one["subject"] == at] == [
        "it speaks TLS, and this node PLAINTEXT"
    ]


def test_a_ghost_registration_is_reported_until_it_is_forgotten(running: tuple[Path, int]) -> None:
    _, port = running
    at = f"127.0.0.1:{port}"
    assert wrong(examined("--bootstrap", at, code=0)) == []
    client = Client(port)
    features = [Feature("metadata.version", 1, 30)]
    listeners = [Listener("CONTROLLER", "gone", 9093, 0)]
    request = ControllerRegistrationRequest(GHOST, b"g" * 16, False, listeners, features)
    assert client.call(request, 0).error_code == 0
    client.close()
    assert wrong(examined("--bootstrap", at, code=1)) == [("registrations", f"node {GHOST}")]
    forget = ("quorum", "forget-controller", "--bootstrap", at, "--controller-id", GHOST)
    assert run(*forget).code == 0
    assert wrong(examined("--bootstrap", at, code=0)) == []


def test_a_silent_voter_whose_port_accepts_connections_is_held_up(
    running: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a node does whose disk is full; the leader here stands for one of three."""
    now_ms = int(time.time() * 1000)

    async def described(*_: object) -> Leader:
        voters = [
            ReplicaState(node_id, bytes(16), 5, now_ms - 60_000 * (node_id > 1), now_ms)
            for node_id in (1, 2, 3)
        ]
        partition = PartitionData(leader_id=1, high_watermark=5, current_voters=voters)
        endpoints = {2: [f"CONTROLLER://127.0.0.1:{held_up}"], 3: [f"CONTROLLER://127.0.0.1:{free_port()}"]}
        return Leader(Quorum(CLUSTER_ID, partition, ("127.0.0.1", 1), endpoints), now_ms, now_ms, [])

    monkeypatch.setattr("kraftd.cli.doctor.quorum_probe.probe_quorum", described)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        held_up = silent.getsockname()[1]
        found = examined("--bootstrap", f"127.0.0.1:{running[1]}", code=1)
    texts = {one["subject"]: one["text"] for one in found if one["area"] == "voters"}
    assert texts["node 2"] == "a voter that runs, silent for 60 s"
    assert texts["node 3"] == "a voter, silent for 60 s"


def test_a_node_that_hangs_differs_from_a_host_that_is_gone_and_from_a_free_port() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as hung,
        socket.create_server(("127.0.0.1", 0), backlog=0) as gone,
        socket.create_connection(gone.getsockname()),  # fills its queue: packets of further ones are dropped
    ):
        addresses = [
            f"127.0.0.1:{port}" for port in (hung.getsockname()[1], gone.getsockname()[1], free_port())
        ]
        found = examined("--bootstrap", ",".join(addresses), "--timeout", "0.5", code=1)
    texts = {one["subject"]: one["text"] for one in found}
    assert [texts[one] for one in addresses] == [
        "it accepts connections and answers nothing",
        "its host does not answer in time",
        "the connection is refused: nothing listens there",
    ]
    assert texts["quorum"] == f"the quorum was not asked: no node answers at {', '.join(addresses)}"


def test_a_registered_broker_that_hangs_is_reported_before_and_after_it_is_fenced(
    running: tuple[Path, int],
) -> None:
    at = f"127.0.0.1:{running[1]}"
    with socket.create_server(("127.0.0.1", 0)) as hung:
        client = Client(running[1])
        listener = BrokerListener("PLAINTEXT", *hung.getsockname(), 0)
        features = [BrokerFeature(name, *levels) for name, levels in supported_features().items()]
        request = BrokerRegistrationRequest(
            GHOST, CLUSTER_ID, b"g" * 16, [listener], features, log_dirs=(b"d" * 16,), rack=None
        )
        epoch = client.call(request, 4).broker_epoch
        texts = []
        for wants_fence in (False, True):
            assert not client.call(BrokerHeartbeatRequest(GHOST, epoch, epoch, wants_fence), 1).error_code
            found = examined("--bootstrap", at, "--timeout", "0.5", code=1)
            texts.append([one["text"] for one in found if one["subject"] == f"node {GHOST}"])
        client.call(UnregisterBrokerRequest(GHOST), 0)
        client.close()
    hangs = f"its listener PLAINTEXT at 127.0.0.1:{listener.port} accepts connections and answers nothing"
    fenced = "this broker is fenced: it leads no partition and gets no clients"
    assert texts == [[hangs], [fenced, hangs]]


def test_a_broker_that_gets_no_answer_of_the_controllers_is_no_wrong_address() -> None:
    asked = Answer("", served=frozenset({0, 18}))
    found: list[Finding] = []
    with socket.create_server(("127.0.0.1", 0)) as forwards:
        own = forwards.getsockname()
        addresses = {
            own: asked._replace(at="a broker"),
            ("127.0.0.1", free_port()): asked._replace(at="another"),
        }
        assert asyncio.run(controllers_behind(addresses, 0.4, found)) == []
    assert [(one.subject, one.is_wrong, one.text.partition(": ")[0]) for one in found] == [
        (
            "a broker",
            True,
            "a broker answers, and gets no answer in time to what it forwards to the controllers",
        ),
        ("another", True, "a broker answers, and names no controllers"),
    ]


def test_the_table_lists_the_worst_findings_first_and_counts_them(tmp_path: Path) -> None:
    config = formatted(tmp_path, free_port())
    (tmp_path / "data" / "meta.properties").write_text("version=1\n")
    done = run("doctor", "--config", config)
    lines = done.out.splitlines()
    assert done.code == 1
    assert lines[0].split() == ["LEVEL", "AREA", "WHERE", "FINDING", "REMEDY"]
    assert lines[1].startswith("problem") and "cluster.id is missing" in lines[1]
    assert lines[-1].startswith("Found: problem 1, warning 0,")
