"""When a keeper orders a snapshot, for which share of changes, and its log lines for a bad directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import structlog

from kraftd.host.snapshots.checkpointing import CheckpointMade, CheckpointOrder, make_checkpoint
from kraftd.host.upkeep.retention import RetentionRules
from kraftd.host.upkeep.snapshot_keeper import KeeperSettings, SnapshotKeeper
from kraftd.host.upkeep.snapshot_request import request_snapshot
from kraftd.log.errors import StorageFailure
from kraftd.requests.repeats import Repeats
from tests.controller_node.harness import Harness


class Clock:
    ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def wall_ahead_ms(self) -> int:
        return 0


class Log:
    def __init__(self) -> None:
        self.seen: list[int] = []

    def error(self, text: str, **fields: Any) -> None:
        self.seen.append(fields["seen"])


class Keeper(SnapshotKeeper):
    """A keeper whose polls fail, without the rest of a node."""

    def __init__(self) -> None:
        self._timer = Clock()  # type: ignore[assignment]
        self._repeats = Repeats()
        self.log = Log()

    def start(self, first_poll_ms: int = 0) -> None: ...

    def poll(self) -> None:
        raise StorageFailure("cannot list /data: Too many open files")


def test_a_directory_that_cannot_be_read_is_logged_at_once_and_then_once_a_minute() -> None:
    keeper = Keeper()
    for _ in range(121):  # two polls a second
        keeper._poll_again()
        keeper._timer.ms += 500  # type: ignore[attr-defined]
    assert keeper.log.seen == [1, 120]


RATIO = 0.5
INTERVAL_MS = 3_600_000
KEEP_ALL = RetentionRules()


class Orders:
    """Executes the keeper's orders at once, and keeps them."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.given: list[CheckpointOrder] = []
        self.made: list[CheckpointMade] = []

    def make_checkpoint(self, order: CheckpointOrder, ended: Callable[[Any], None]) -> Any:
        self.given.append(order)
        self.made.append(make_checkpoint(self.harness.disk, order, self.harness.clock.ms))
        self.ended = ended
        return SimpleNamespace(pid=1)

    def finish(self) -> CheckpointMade:
        self.ended(self.made[-1])
        return self.made[-1]


def keeper_of(
    harness: Harness, max_bytes: int, rules: RetentionRules = KEEP_ALL
) -> tuple[SnapshotKeeper, Orders]:
    class WorkThreads:
        def run(self, work: Callable[[], Any], done: Callable[[Any], object], failed: object) -> None:
            done(work())

    ports: Any = SimpleNamespace(timer=harness.clock, work_threads=WorkThreads())
    executor: Any = SimpleNamespace(
        storage=harness.storage, log=structlog.get_logger(), ports=ports, fail=None, tidy=lambda: None
    )
    orders: Any = Orders(harness)
    settings = KeeperSettings(max_bytes, INTERVAL_MS, RATIO, 60_000, 0, rules)
    core = harness.node.core
    return SnapshotKeeper(executor, core, lambda: core.high_watermark, orders, settings, harness.step), orders


def test_a_fault_while_it_looks_for_requests_keeps_nothing_else_from_being_done(tmp_path: Path) -> None:
    harness = Harness(tmp_path).start()
    keeper, orders = keeper_of(harness, max_bytes=1 << 30)
    harness.unfenced(1)
    disk, directory = harness.disk, harness.storage.log.directory
    request_snapshot(disk, directory, "mine")

    list_names = disk.list_names

    def fails_once(directory: str) -> list[str]:
        disk.list_names = list_names  # type: ignore[method-assign]
        raise StorageFailure("a fault")

    disk.list_names = fails_once  # type: ignore[method-assign]
    harness.clock.ms += INTERVAL_MS
    keeper.poll()
    assert keeper._answering == []
    assert orders.finish().outcome == "made", "by time"
    harness.create("another")
    keeper.poll()
    assert keeper._answering == ["mine"]


def test_bytes_make_a_snapshot_only_with_the_share_of_changes__kip630(tmp_path: Path) -> None:
    harness = Harness(tmp_path).start()
    harness.unfenced(1)
    keeper, orders = keeper_of(harness, max_bytes=2_000)
    harness.create(*(f"topic-{at}" for at in range(20)), partitions=3)
    keeper.poll()
    assert orders.finish().outcome == "made", "the first snapshot has none before it to compare with"
    harness.create(*(f"more-{at}" for at in range(20)), partitions=3)
    keeper.poll()
    assert (orders.given[-1].min_changed_ratio, orders.finish().outcome) == (RATIO, "unchanged")
    keeper.poll()
    assert len(orders.given) == 2, "put off for as many bytes more"
    harness.clock.ms += INTERVAL_MS
    keeper.poll()
    assert (orders.given[-1].min_changed_ratio, orders.finish().outcome) == (0, "made"), "by time alone"


def test_a_snapshot_that_is_requested_needs_no_share_of_changes__kip630(tmp_path: Path) -> None:
    harness = Harness(tmp_path).start()
    harness.unfenced(1)
    keeper, orders = keeper_of(harness, max_bytes=2_000)
    harness.create(*(f"topic-{at}" for at in range(20)), partitions=3)
    keeper.poll()
    orders.finish()
    harness.create(*(f"more-{at}" for at in range(20)), partitions=3)
    request_snapshot(harness.disk, harness.storage.log.directory, "now")
    keeper.poll()
    assert (orders.given[-1].min_changed_ratio, orders.finish().outcome) == (0, "made")


def test_a_leader_keeps_the_log_that_a_live_observer_still_fetches__kip630(tmp_path: Path) -> None:
    harness = Harness(tmp_path).start()
    harness.unfenced(1)
    keeper, orders = keeper_of(harness, 1 << 30, RetentionRules(max_bytes=0, after_read_ms=0))
    ends = []
    for name in ("early", "late"):
        harness.create(name)
        request_snapshot(harness.disk, harness.storage.log.directory, name)
        keeper.poll()
        assert orders.finish().outcome == "made"
        ends.append(orders.given[-1].end_offset)
    harness.fetch(ends[0])
    keeper.clean(harness.clock.ms)
    assert harness.storage.log.log_start == ends[0]
    harness.fetch(ends[1])
    keeper.clean(harness.clock.ms)
    assert harness.storage.log.log_start == ends[1]
