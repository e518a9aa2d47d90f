"""A voter stops on a signal, even if no other voter can take its place."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from testkit.process import free_port
from tests.cli.run import announcement, command, run, write_config

CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"
VERY_LONG_MS = "600000"


def test_one_of_two_voters_stops_although_the_other_is_down(tmp_path: Path) -> None:
    ports = [free_port(), free_port()]
    servers = ",".join(f"127.0.0.1:{port}" for port in ports)
    ids = [run("random-uuid").out.strip() for _ in ports]
    voters = ",".join(
        f"{at}@127.0.0.1:{port}:{uuid}" for at, (port, uuid) in enumerate(zip(ports, ids, strict=True), 1)
    )
    processes = []
    for at, port in enumerate(ports, 1):
        folder = tmp_path / str(at)
        folder.mkdir()
        config = write_config(
            folder,
            port,
            node__id=str(at),
            controller__quorum__bootstrap__servers=servers,
            kraftd__shutdown__timeout__ms=VERY_LONG_MS,
        )
        assert run("format", "-c", config, "-t", CLUSTER_ID, "--initial-controllers", voters).code == 0
        processes.append(
            subprocess.Popen(
                command("start", config), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
    try:
        for process in processes:
            announcement(process)
        assert run("quorum", "describe", "--bootstrap", servers, "--timeout", "30").code == 0
        first, second = processes
        first.kill()
        first.communicate(timeout=30)
        second.send_signal(signal.SIGTERM)
        second.communicate(timeout=60)  # far less than the shutdown timeout allows
        assert second.returncode == 0
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
