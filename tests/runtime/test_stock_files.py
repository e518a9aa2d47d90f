"""Files with the keys of those that Apache Kafka delivers (config/server.properties, broker.properties and
controller.properties of 4.3.1) start unchanged; only addresses and directories are the test's.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kraftd.config import load
from testkit.process import free_port
from tests.runtime.daemon_process import CLUSTER_ID, DaemonProcess

QUORUM = {
    "controller.quorum.bootstrap.servers": "localhost:{controller}",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": (
        "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
    ),
}
THREADS_AND_SOCKETS = {
    "num.network.threads": "3",
    "num.io.threads": "8",
    "socket.send.buffer.bytes": "102400",
    "socket.receive.buffer.bytes": "102400",
    "socket.request.max.bytes": "104857600",
    "num.recovery.threads.per.data.dir": "2",
}
LOGS = {
    "num.partitions": "1",
    "log.retention.hours": "168",
    "log.segment.bytes": "1073741824",
    "log.retention.check.interval.ms": "300000",
}
# On kraftd one loop serves, and sockets have the system's buffers.
SHARE_STATE = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
STOCK_FILES = {
    "server": {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://:{clients},CONTROLLER://:{controller}",
        "advertised.listeners": "PLAINTEXT://localhost:{clients},CONTROLLER://localhost:{controller}",
        "inter.broker.listener.name": "PLAINTEXT",
        "offsets.topic.replication.factor": "1",
        **QUORUM,
        **THREADS_AND_SOCKETS,
        **LOGS,
        **SHARE_STATE,
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    },
    "broker": {
        "process.roles": "broker",
        "node.id": "2",
        "listeners": "PLAINTEXT://localhost:{clients}",
        "advertised.listeners": "PLAINTEXT://localhost:{clients}",
        "inter.broker.listener.name": "PLAINTEXT",
        **QUORUM,
        **THREADS_AND_SOCKETS,
        **LOGS,
    },
    "controller": {
        "process.roles": "controller",
        "node.id": "3",
        "listeners": "CONTROLLER://:{controller}",
        "advertised.listeners": "CONTROLLER://localhost:{controller}",
        **QUORUM,
        **THREADS_AND_SOCKETS,
        **LOGS,
    },
}
WITHOUT_EFFECT = THREADS_AND_SOCKETS.keys() - {"socket.request.max.bytes"}


def write(file: Path, name: str, clients: int = 9092, controller: int = 9093) -> None:
    """Write a stock file with these ports; its directory lies beside it."""
    keys = {**STOCK_FILES[name], "log.dirs": str(file.parent / "data")}
    lines = [f"{key}={value.format(clients=clients, controller=controller)}\n" for key, value in keys.items()]
    file.write_text("".join(lines))


@pytest.mark.parametrize("name", STOCK_FILES)
def test_each_key_of_a_stock_file_is_known_and_named_where_it_has_no_effect(
    tmp_path: Path, name: str
) -> None:
    file = tmp_path / f"{name}.properties"
    write(file, name)
    config = load(str(file))
    unused = WITHOUT_EFFECT.intersection(STOCK_FILES[name])
    if name == "controller":
        unused |= {"log.retention.check.interval.ms"}
    assert list(config.warnings) == [f"these keys have no effect on kraftd: {', '.join(sorted(unused))}"]


def test_a_stock_combined_nodes_file_is_formatted_started_and_written_to(tmp_path: Path) -> None:
    clients, controller = free_port(), free_port()
    daemon = DaemonProcess(tmp_path, controller)
    write(daemon.properties, "server", clients, controller)
    unformatted = daemon.kraftd("start", str(daemon.properties), check=False)
    assert unformatted.returncode == 3
    assert "Run kraftd format first, with --config and --cluster-id; --standalone" in unformatted.stderr
    daemon.format().start()

    def client(*words: str, lines: str = "") -> str:
        command = [sys.executable, "-m", "kraftd", *words, "--bootstrap-server", f"localhost:{clients}"]
        done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    client("produce", "t", lines="one\n")
    reading = ("consume", "t", "--group", "g", "--from-beginning", "--max-messages", "1", "--json")
    assert json.loads(client(*reading))["value"] == "one"
    assert f"cluster.id={CLUSTER_ID}" in (tmp_path / "data" / "meta.properties").read_text()
    assert daemon.stop() == 0
