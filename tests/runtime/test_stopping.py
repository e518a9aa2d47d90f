"""A voter stops on a signal, even if no other voter can take its place."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace

from kraftd.runtime.daemon import Daemon
from kraftd.runtime.stop_limit import StopLimit
from testkit.process import free_port
from tests.cli.run import announcement, command, run, write_config

LIMIT_MS = 10_000
CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"
VERY_LONG_MS = "600000"


def test_a_stop_waits_while_leaderships_move_away() -> None:
    """A controlled shutdown of 100,000 partitions takes longer than a stop may wait for one request."""
    limit = StopLimit(LIMIT_MS, 100_000)
    assert not limit.is_reached(60_000) and not limit.is_reached(0)
    assert limit.is_reached(0), "the controller grants nothing"


def test_a_stop_does_not_wait_for_a_controller_that_moves_no_leadership() -> None:
    assert StopLimit(LIMIT_MS, 3).is_reached(3)
    assert StopLimit(LIMIT_MS, 0).is_reached(0)


def test_a_stop_waits_no_longer_than_apache_kafkas_for_its_controlled_shutdown() -> None:
    limit = StopLimit(LIMIT_MS, 1_000)
    assert [limit.is_reached(1_000 - number) for number in range(1, 31)] == [False] * 29 + [True]


class Stopping:
    """A daemon with brokers that lead partitions, as its stop sees it."""

    def __init__(self) -> None:
        self.runner = SimpleNamespace(led_count=0, node=SimpleNamespace(decisions=SimpleNamespace(parked=())))
        self.log = SimpleNamespace(warning=lambda *_, **__: None)
        self.loop = self
        self.later: list[float] = []
        self.is_over = False

    def call_later(self, delay_s: float, *_: object) -> None:
        self.later.append(delay_s)

    def _finish(self) -> None:
        self.is_over = True

    _out_of_time = Daemon._out_of_time


def test_the_daemon_asks_again_after_as_long() -> None:
    stopping, limit = Stopping(), StopLimit(LIMIT_MS, 2)
    stopping.runner.led_count = 1
    stopping._out_of_time(limit)  # type: ignore[misc]
    assert stopping.later == [LIMIT_MS / 1000] and not stopping.is_over
    stopping._out_of_time(limit)  # type: ignore[misc]
    assert stopping.is_over


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
