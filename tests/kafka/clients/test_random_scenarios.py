"""Ordinary clients of a kraftd quorum and its observer, while random events from a seed disturb both.

No consumer loses a committed metadata record or gets one twice. Leader epochs never go back. No client waits
for longer than its timeouts. A topic that is created again has its new id. kraftd's commands print what the
log has.

KRAFTD_CLIENTS_SEED and KRAFTD_CLIENTS_STEPS choose other events, and more of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testkit.node import Kind
from testkit.process import wait_until
from tests.kafka.clients.agreement import Watcher, assert_commands_agree, assert_watch_printed_all
from tests.kafka.clients.listeners import records_on_disk
from tests.kafka.clients.readers import LogReader
from tests.kafka.clients.scenario import Scenario, Scene
from tests.kafka.clients.test_metadata_log import JavaReader
from tests.kafka.quorum.clients import Clients

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(1800)]
SEED = int(os.environ.get("KRAFTD_CLIENTS_SEED", "1"))
STEPS = int(os.environ.get("KRAFTD_CLIENTS_STEPS", "5"))


@contextmanager
def reading(*readers: LogReader) -> Iterator[None]:
    """Run the readers' threads during the block."""
    for one in readers:
        one.start()
    try:
        yield
    finally:
        for one in readers:
            one.stop()


def assert_read_all(seen: list[tuple[int, bytes]], skipped: list[tuple[int, int]], scene: Scene) -> None:
    """Check that each of the archive's records was read, up to the last read, except those skipped."""
    archived = records_on_disk(scene.archive, seen[-1][0] + 1)
    expected = [one for one in archived if not any(start <= one[0] < end for start, end in skipped)]
    assert seen == expected, f"{len(seen)} of {len(expected)}"


def test_clients_survive_a_random_scenario(kind: Kind, tmp_path: Path) -> None:
    if kind != "kraftd":
        pytest.skip("Apache Kafka's controllers serve no clients")
    with Scene(tmp_path) as scene:
        scene.start(1)
        scenario = Scenario(scene, SEED)
        readers = [LogReader("of-voters", scene.log_bootstrap), LogReader("of-observer", scene.observed.log)]
        java = JavaReader(tmp_path / "java", scene.bootstrap)
        java.start()
        watcher = Watcher(scene, ",".join(one.address for one in scene.controllers.values()))
        watcher.start()
        with reading(*readers):
            with Clients(scene, scene.bootstrap) as clients:
                scenario.play(STEPS)
                clients.wait_for_more()
            end = scene.described().high_watermark  # type: ignore[union-attr]
            scenario.assert_every_node_has_the_new_ids()
            for one in readers:
                wait_until(
                    lambda one=one: one.failures or one.position >= end - 2,  # type: ignore[misc]
                    f"{one!r} has read {end}: {scenario!r}",
                )
            assert [one.failures for one in readers] == [[], []], f"{scenario!r} {readers!r}"
            assert not scenario.hangs, f"{scenario!r}: {scenario.hangs}"
            assert_watch_printed_all(watcher, scene)
            assert_commands_agree(scene, scene.controller.address, random.Random(SEED), sorted(scenario.ids))
            assert_commands_agree(scene, scene.observer.address, random.Random(SEED), sorted(scenario.ids))
        watcher.kill()
        java.kill()
        for one in readers:
            assert_read_all(one.seen, one.skipped, scene)
        assert_read_all(java.seen(), [], scene)
