"""The metrics listener of a real daemon."""

from __future__ import annotations

import json
import signal
import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from kraftd.net.tls.contexts import TlsContexts
from kraftd.wire.error_code import ErrorCode
from testkit.certificates import Authority
from testkit.process import free_port, wait_until
from tests.metrics.scrape import Scrape, get, ready
from tests.runtime.daemon_process import CLUSTER_ID, DaemonProcess
from tests.runtime.test_daemon import creation, register
from tests.security.secured_daemon import tls_keys, tls_of


class Watched(DaemonProcess):
    """A daemon with a metrics listener."""

    def __init__(self, home: Path, **settings: Any) -> None:
        self.metrics_port = free_port()
        listener = {"kraftd__metrics__listener": f"127.0.0.1:{self.metrics_port}"}
        super().__init__(home, **listener, **settings)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Watched]:
    process = Watched(tmp_path)
    process.format()
    yield process
    process.stop(signal.SIGKILL)


def test_it_exposes_metrics_of_cluster_requests_and_process(daemon: Watched) -> None:
    client = daemon.start().client()
    register(client)
    for _ in range(2):
        client.call(creation("t"), 7)
    assert get(daemon.metrics_port, "/healthz")[0] == 200
    status, found = ready(daemon.metrics_port)
    assert (status, found["state"], found["records"]["loaded"]) == (200, "serving", found["records"]["total"])
    scrape = Scrape(daemon.metrics_port)
    controller = "kafka_controller_KafkaController_"
    assert scrape.value(f"{controller}ActiveControllerCount") == 1
    assert scrape.value(f"{controller}FencedBrokerCount") == 1
    requests = "kafka_network_RequestMetrics_RequestsPerSec_total"
    assert scrape.value(requests, request="CreateTopics", version="7") == 2
    assert scrape.value("kafka_network_RequestMetrics_TotalTimeMs_count", request="CreateTopics") == 2
    assert scrape.value("kafka_network_RequestMetrics_RequestBytes_count", request="CreateTopics") == 2
    errors = dict(scrape.samples("kafka_network_RequestMetrics_ErrorsPerSec_total"))
    refused = ErrorCode.INVALID_REPLICATION_FACTOR.name  # the only broker is fenced
    assert errors == {frozenset({("request", "CreateTopics"), ("error", refused)}): 2}
    assert scrape.value("kraftd_fsync_seconds_count") > 0
    assert scrape.value("kraftd_loop_step_seconds_count") > 0
    assert scrape.value("kraftd_disk_full") == 0
    assert scrape.value("kraftd_ready") == 1
    assert scrape.value("process_resident_memory_bytes") > 0
    assert daemon.stop() == 0


def test_it_exposes_metrics_of_snapshots_made_and_loaded(tmp_path: Path) -> None:
    daemon = Watched(tmp_path, metadata__max__idle__interval__ms=0, kraftd__metrics__names="strimzi")
    daemon.format().start()
    controller, emitter = "kafka_controller_KafkaController_", "kafka_server_SnapshotEmitter_"
    try:
        client = daemon.client()
        register(client)
        path, _, printed_size = daemon.kraftd("snapshot", str(daemon.properties)).stdout.partition(" ")
        size, end = int(printed_size.strip("() bytes\n")), int(Path(path).name[:20])
        assert size == Path(path).stat().st_size
        scrape = Scrape(daemon.metrics_port)
        assert scrape.value(f"{controller}SnapshotSizeBytes") == size
        assert scrape.value(f"{emitter}LatestSnapshotGeneratedBytes") == size
        assert 0 <= scrape.value(f"{emitter}LatestSnapshotGeneratedAgeMs") < 60_000
        assert scrape.value(f"{controller}GenSnapshotLatencyMs_count") == 1
        assert scrape.value(f"{controller}SnapshotLag") == 0
        assert scrape.value("kafka_server_raftmetrics_current_state", current_state="leader") == 1
        register(client)  # register again: records follow the snapshot
        scrape = Scrape(daemon.metrics_port)
        lag = scrape.value("kafka_server_raft_metrics_high_watermark") - end
        assert scrape.value(f"{controller}SnapshotLag") == lag > 0
        assert (scrape.value("kraftd_snapshot_making"), scrape.value("kraftd_snapshots_failed_total")) == (
            0,
            0,
        )
        assert daemon.stop() == 0
        daemon.start()
        scrape = Scrape(daemon.metrics_port)
        assert scrape.value("kafka_server_MetadataLoader_HandleLoadSnapshotCount") == 1
        assert scrape.value(f"{controller}LoadSnapshotLatencyMs_count") == 1
        assert scrape.value(f"{controller}SnapshotSizeBytes") == size
        assert daemon.stop() == 0
    finally:
        daemon.stop(signal.SIGKILL)


def test_another_node_shows_the_quorum_as_the_leader_describes_it(daemon: Watched, tmp_path: Path) -> None:
    daemon.start()
    home = tmp_path / "observer"
    home.mkdir()
    urls = f"100@127.0.0.1:{daemon.metrics_port}"
    observer = Watched(home, kraftd__metrics__nodes=urls)
    text = observer.properties.read_text().replace("node.id=100", "node.id=101")
    at = "controller.quorum.bootstrap.servers=127.0.0.1:"
    observer.properties.write_text(text.replace(f"{at}{observer.port}", f"{at}{daemon.port}"))
    observer.kraftd(
        *("format", "--config", str(observer.properties), "--cluster-id", CLUSTER_ID),
        "--no-initial-controllers",
    )
    observer.begin()

    def described() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(get(observer.metrics_port, "/status.json")[2])
        knows = found["replicas_known_by"] == 100 and len(found["replicas"]) == 2
        return found if knows and found["events"] else {}

    def listens() -> bool:
        with suppress(OSError):
            return bool(described())
        return False

    try:
        wait_until(listens, "the leader has described the quorum to the observer")
        found = described()
        rows = [(one["id"], one["is_leader"], one["is_voter"], one["url"]) for one in found["replicas"]]
        url = f"http://127.0.0.1:{daemon.metrics_port}/"
        assert rows == [(100, True, True, url), (101, False, False, None)]
        assert found["releases"]["metadata.version"] == "4.3-IV0"
        events = [one["event"] for one in found["events"]]
        assert events == ["leader found"]
        daemon.stop(signal.SIGKILL)

        def told() -> bool:
            found = json.loads(get(observer.metrics_port, "/status.json")[2])
            return found["replicas_known_by"] is None and bool(found["causes"])

        wait_until(told, "the observer names the leader that does not answer")
    finally:
        observer.stop(signal.SIGKILL)


def test_other_pages_and_methods_are_refused(daemon: Watched) -> None:
    daemon.start()
    assert get(daemon.metrics_port, "/metrics/")[0] == 404
    assert get(daemon.metrics_port, "/metrics", method="POST")[0] == 405
    status, headers, body = get(daemon.metrics_port, "/metrics", method="HEAD")
    assert (status, body) == (200, "")
    assert int(headers["Content-Length"]) > 1_000
    assert daemon.stop() == 0


def test_without_a_majority_it_is_alive_and_not_ready(tmp_path: Path) -> None:
    port = free_port()
    voters = f"100@127.0.0.1:{port},101@127.0.0.1:{free_port()}"
    daemon = Watched(tmp_path, controller__quorum__voters=voters)
    daemon.port = port
    text = daemon.properties.read_text()
    lines = [
        line for line in text.splitlines() if not line.startswith(("listeners", "controller.quorum.boot"))
    ]
    daemon.properties.write_text("\n".join([*lines, f"listeners=CONTROLLER://127.0.0.1:{port}\n"]))
    daemon.kraftd("format", "--config", str(daemon.properties), "--cluster-id", "Nx_7lyWBRrSmxW_wwvmA5Q")
    daemon.begin()
    wait_until(lambda: get(daemon.metrics_port, "/healthz")[0] == 200, "it lives")
    status, found = ready(daemon.metrics_port)
    assert (status, found["ready"], found["state"], found["leader"]) == (503, False, "no leader", -1)
    scrape = Scrape(daemon.metrics_port)
    assert scrape.value("kraftd_ready") == 0
    assert scrape.value("kafka_server_raft_metrics_current_leader") == -1
    assert daemon.stop(signal.SIGTERM) == 0


def test_an_address_in_use_prevents_the_start_and_is_named(daemon: Watched) -> None:
    daemon.start()
    other = daemon.home / "other"
    other.mkdir()
    second = Watched(other)
    text = second.properties.read_text().replace(str(second.metrics_port), str(daemon.metrics_port))
    second.properties.write_text(text)
    second.format()
    done = second.kraftd("start", str(second.properties), check=False)
    assert done.returncode == 4
    assert f"kraftd.metrics.listener=127.0.0.1:{daemon.metrics_port}: cannot listen there" in done.stderr
    assert daemon.stop() == 0


def test_it_is_served_over_tls_to_clients_with_the_password(tmp_path: Path) -> None:
    authority = Authority()
    keys = tls_keys(tmp_path, authority, "CN=node", "listener.name.metrics.")
    daemon = Watched(
        tmp_path,
        **{key.replace(".", "__"): value for key, value in keys.items()},
        kraftd__metrics__user="prometheus",
        kraftd__metrics__password="metrics:secret",
        connection__failed__authentication__delay__ms="20",
    )
    text = daemon.properties.read_text()
    daemon.properties.write_text(text.replace("kraftd.metrics.listener=", "kraftd.metrics.listener=https://"))
    daemon.format()
    try:
        daemon.start()

        def status(credentials: str | None, contexts: TlsContexts) -> int:
            connection = HTTPSConnection(
                "127.0.0.1", daemon.metrics_port, timeout=60, context=contexts.client
            )
            headers = {}
            if credentials is not None:
                headers["Authorization"] = "Basic " + b64encode(credentials.encode()).decode()
            connection.request("GET", "/healthz", headers=headers)
            answer = connection.getresponse()
            if answer.status == HTTPStatus.UNAUTHORIZED:
                assert answer.headers["WWW-Authenticate"].startswith("Basic")
            connection.close()
            return answer.status

        trusted = tls_of(authority)
        assert status("prometheus:metrics:secret", trusted) == HTTPStatus.OK
        for wrong in (None, "prometheus:wrong", "admin:metrics:secret", ""):
            assert status(wrong, trusted) == HTTPStatus.UNAUTHORIZED
        with pytest.raises(ssl.SSLCertVerificationError):
            status("prometheus:metrics:secret", tls_of(Authority("CN=Another")))
        with pytest.raises((OSError, HTTPException)):
            get(daemon.metrics_port, "/metrics")
        renewed = authority.issue("CN=node,OU=Renewed")
        renewed.write_pem(tmp_path / "node.pem")
        wait_until(lambda: "new certificates are used" in daemon.log.read_text(), "the certificate is taken")
        assert status("prometheus:metrics:secret", trusted) == HTTPStatus.OK
        logged = daemon.log.read_text()
        assert "wrong user or password" in logged and "metrics:secret" not in logged
    finally:
        daemon.stop(signal.SIGKILL)
