"""The logs of a broker: work in threads whose log is deleted meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from kraftd.broker_node.effects import DeleteLog
from kraftd.host.broker_logs.broker_logs import BrokerLogs
from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.host.ports import Ports
from kraftd.log.data.resources import LogResources
from kraftd.log.disk import RealDisk
from kraftd.log_dirs.directories import LogDirectories, LogDirectory
from kraftd.partition.config import PartitionConfig
from tests.log.data.logs import NOW_MS, append, batch
from tests.log_dirs.test_log_directories import ID_A, SETTINGS, TOPIC_ID, UNIQUE


class Loop:
    """All ports of BrokerLogs: what is to be called soon is called at once, and threads run when told to."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], None]] = []
        self.errors: list[BaseException | str] = []
        self.ports = Ports(*[cast(Any, self)] * 5, self.errors.append)

    def now_ms(self) -> int:
        return NOW_MS

    def wall_ahead_ms(self) -> int:
        return 0

    def call_soon(self, act: Callable[..., None], *arguments: Any) -> None:
        act(*arguments)

    def error(self, text: str, **fields: Any) -> None:
        self.errors.append(text)

    def run(
        self, job: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]
    ) -> None:
        def act() -> None:
            try:
                result = job()
            except Exception as error:
                failed(error)
            else:
                done(result)

        self.jobs.append(act)


def test_a_flush_whose_log_is_deleted_meanwhile_fails_no_directory(tmp_path: Path) -> None:
    loop = Loop()
    directory = LogDirectory(str(tmp_path), ID_A)
    directories = LogDirectories(LogResources(RealDisk()), [directory], lambda topic: SETTINGS)
    logs = BrokerLogs(
        directories,
        {},
        loop.ports,
        lambda event: None,
        lambda: UNIQUE,
        lambda key, at: (),
        lambda key: ReplayedProducers(PartitionConfig(), NOW_MS),
        dict,
    )
    log = directories.create("t", 0, TOPIC_ID, NOW_MS)
    append(log, batch(0, 1))
    logs.flush()
    logs.delete(DeleteLog("t", 0))
    assert len(loop.jobs) > 1, "the flush is still under way"
    for job in loop.jobs:
        job()
    assert loop.errors == [] and len(directories.online) == 1
