"""When a controller is ready, and its reports until then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from kraftd.controller_node import events
from kraftd.host.snapshots.checkpointing import MADE, CheckpointOrder, make_checkpoint
from kraftd.log.memory_disk import MemoryDisk
from kraftd.metrics.state.health import Health, Progress, health
from kraftd.raft import events as raft_events
from kraftd.types import OffsetAndEpoch
from tests.controller_node.harness import START_MS, Harness
from tests.metrics.watched import readings


def filled(tmp_path: Path, **settings: Any) -> Harness:
    """A controller with some thousand records."""
    harness = Harness(tmp_path, **settings).start()
    harness.unfenced(1)
    for first in range(0, 900, 300):
        harness.create(*(f"topic-{at}" for at in range(first, first + 300)), partitions=2)
    return harness


def started_again(tmp_path: Path, disk: MemoryDisk, **settings: Any) -> tuple[Harness, list[Health]]:
    """Start another process on the same disk; return it and its health after each step until it is idle."""
    harness = Harness(tmp_path, disk, **settings)
    found = [health(readings(harness))]
    harness.events.append(raft_events.Started())
    while harness.events:
        harness.one_step(harness.events.popleft())
        found.append(health(readings(harness)))
    return harness, found


def left_by(harness: Harness) -> MemoryDisk:
    """The disk, for another process."""
    harness.disk.locked.clear()
    return harness.disk


def test_during_the_load_it_reports_the_progress_and_then_readiness(tmp_path: Path) -> None:
    harness = filled(tmp_path)
    end = harness.storage.log.log_end
    harness, found = started_again(tmp_path, left_by(harness))
    loading = [one for one in found if one.state == "loading"]
    assert len(loading) > 3
    assert not any(one.ready for one in loading)
    loaded = [one.records.loaded for one in found]
    assert loaded == sorted(loaded)
    assert (loaded[0], loading[-1].records.total) == (0, end + 1)  # one of them begins the new epoch
    for one in found:
        assert one.records.total is not None and one.bytes.total is not None
        assert 0 <= one.records.loaded <= one.records.total
        assert 0 <= one.bytes.loaded <= one.bytes.total
    assert (found[-1].ready, found[-1].state, found[-1].role) == (True, "serving", "leader")
    assert found[-1].records == Progress(harness.storage.log.log_end, harness.storage.log.log_end)


def test_of_a_snapshot_it_reports_bytes_and_later_records(tmp_path: Path) -> None:
    harness = filled(tmp_path)
    log, end_offset = harness.storage.log, harness.node.core.high_watermark
    order = CheckpointOrder(
        directory=log.directory, end_offset=end_offset, epoch=1, base=None, position=log.position_near(0)
    )
    checkpoint = make_checkpoint(harness.disk, order, START_MS)
    assert checkpoint.outcome == MADE
    harness.create("later")
    harness, found = started_again(tmp_path, left_by(harness))
    loading = [one for one in found if one.state == "loading"]
    of_snapshot = [one for one in loading if one.records.total is None]
    assert len(of_snapshot) > 2
    assert 0 < of_snapshot[-1].bytes.loaded < checkpoint.size_bytes
    assert of_snapshot[-1].records.loaded > 0
    assert found[-1].ready
    behind = harness.storage.log.log_end - end_offset
    assert found[-1].records == Progress(checkpoint.record_count + behind, checkpoint.record_count + behind)
    assert found[-1].bytes.loaded == found[-1].bytes.total
    assert harness.node.following.load_progress.snapshots == 1
    assert OffsetAndEpoch(end_offset, 1) in harness.storage.log.snapshots


def test_without_a_leader_it_reports_not_ready(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    found = health(readings(harness))  # only a leader knows which records are committed
    assert (found.ready, found.state, found.leader) == (False, "no leader", -1)
    harness.start()
    lost = msgspec.structs.replace(harness.node.core.metrics(harness.clock.ms), current_leader=-1)
    found = health(readings(harness, raft=lost))
    assert (found.ready, found.state, found.leader) == (False, "no leader", -1)


def test_on_a_full_disk_and_during_a_stop_it_reports_not_ready(tmp_path: Path) -> None:
    harness = Harness(tmp_path).start()
    assert health(readings(harness)).ready
    harness.step(events.DiskFilled("no room"))
    assert (health(readings(harness)).ready, health(readings(harness)).state) == (False, "disk full")
    harness.step(events.DiskHasRoom())
    assert health(readings(harness)).ready
    harness.node.stop()
    assert (health(readings(harness)).ready, health(readings(harness)).state) == (False, "stopping")


def test_it_is_json_with_units_and_totals(tmp_path: Path) -> None:
    harness = Harness(tmp_path).start()
    found = msgspec.json.decode(msgspec.json.encode(health(readings(harness))))
    end = harness.storage.log.log_end
    assert found["records"] == {"loaded": end, "total": end}
    assert set(found) == {
        "ready",
        "state",
        "node_id",
        "role",
        "leader",
        "epoch",
        "high_watermark",
        "records",
        "bytes",
        "troubles",
        "refused",
        "ahead",
        "went_back",
        "twins",
        "addresses",
        "broker",
    }


def test_it_lists_troubles_without_a_leader_and_refused_nodes(tmp_path: Path) -> None:
    reported = {"troubles": ["b:9093: nothing listens there"], "refused": ["node 7 at b is refused"]}
    found = msgspec.json.decode(msgspec.json.encode(health(readings(Harness(tmp_path), **reported))))
    assert {name: found[name] for name in reported} == reported
