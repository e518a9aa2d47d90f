"""A voter stops on a signal, even if no other voter can take its place."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from kraftd.runtime.stop_limit import StopLimit, StopWatch
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


class Loop:
    """A runner whose brokers lead partitions, with the timers and lines of its stop."""

    def __init__(self, led_count: int, limit_ms: int = LIMIT_MS) -> None:
        self.led_count = led_count
        self.node = SimpleNamespace(decisions=SimpleNamespace(parked=("a call",)))
        self.lines: list[tuple[str, dict[str, int]]] = []
        self.is_over = False
        self.now_s = 0.0
        self._later: list[tuple[float, Callable[[], None]]] = []
        log = SimpleNamespace(info=self.line, warning=self.line)
        StopWatch(self, limit_ms, self.call_later, log, self.finish).start()  # type: ignore[arg-type]

    def call_later(self, delay_s: float, act: Callable[[], None]) -> None:
        self._later.append((self.now_s + delay_s, act))

    def line(self, text: str, **fields: int) -> None:
        self.lines.append((text, fields))

    def finish(self) -> None:
        self.is_over = True

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        due, self._later = (
            [one for one in self._later if one[0] <= self.now_s],
            [one for one in self._later if one[0] > self.now_s],
        )
        for _, act in due:
            act()


def test_a_stop_that_goes_on_is_looked_at_again_after_as_long() -> None:
    loop = Loop(led_count=2)
    loop.led_count = 1
    loop.pass_time(10)
    assert not loop.is_over and loop.lines == [("still stopping", {"led_partitions": 1, "in_flight": 1})]
    loop.pass_time(10)
    assert loop.is_over
    assert loop.lines[1:] == [("stopping took too long", {"led_partitions": 1, "in_flight": 1})]
    loop.pass_time(10)
    assert len(loop.lines) == 2


def test_a_stop_with_a_long_limit_logs_every_10_seconds_how_many_are_led() -> None:
    loop = Loop(led_count=300, limit_ms=600_000)
    for led_count in (200, 100, 0):
        loop.led_count = led_count
        loop.pass_time(10)
    assert [fields["led_partitions"] for _, fields in loop.lines] == [200, 100, 0] and not loop.is_over


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
