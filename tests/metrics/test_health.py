"""When a controller is ready, and its reports until then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from kraftd.controller_node import events
from kraftd.host.checkpointing import MADE, CheckpointOrder, make_checkpoint
from kraftd.log.memory_disk import MemoryDisk
from kraftd.metrics.health import Health, Progress, health
from kraftd.raft import events as raft_events
from kraftd.types import OffsetAndEpoch
from tests.controller_node.house import START_MS, House
from tests.metrics.watched import readings


def filled(tmp_path: Path, **settings: Any) -> House:
    """A controller with some thousand records."""
    house = House(tmp_path, **settings).start()
    house.unfenced(1)
    for first in range(0, 900, 300):
        house.create(*(f"topic-{at}" for at in range(first, first + 300)), partitions=2)
    return house


def started_again(tmp_path: Path, disk: MemoryDisk, **settings: Any) -> tuple[House, list[Health]]:
    """Start another process on the same disk; return it and its health after each step until it is idle."""
    house = House(tmp_path, disk, **settings)
    found = [health(readings(house))]
    house.events.append(raft_events.Started())
    while house.events:
        house.one_step(house.events.popleft())
        found.append(health(readings(house)))
    return house, found


def left_by(house: House) -> MemoryDisk:
    """The disk, for another process."""
    house.disk.locked.clear()
    return house.disk


def test_during_the_load_it_reports_the_progress_and_then_readiness(tmp_path: Path) -> None:
    house = filled(tmp_path)
    end = house.storage.log.log_end
    house, found = started_again(tmp_path, left_by(house))
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
    assert found[-1].records == Progress(house.storage.log.log_end, house.storage.log.log_end)


def test_of_a_snapshot_it_reports_bytes_and_later_records(tmp_path: Path) -> None:
    house = filled(tmp_path)
    log, end_offset = house.storage.log, house.node.core.high_watermark
    order = CheckpointOrder(
        directory=log.directory, end_offset=end_offset, epoch=1, base=None, position=log.position_near(0)
    )
    checkpoint = make_checkpoint(house.disk, order, START_MS)
    assert checkpoint.outcome == MADE
    house.create("later")
    house, found = started_again(tmp_path, left_by(house))
    loading = [one for one in found if one.state == "loading"]
    of_snapshot = [one for one in loading if one.records.total is None]
    assert len(of_snapshot) > 2
    assert 0 < of_snapshot[-1].bytes.loaded < checkpoint.size_bytes
    assert of_snapshot[-1].records.loaded > 0
    assert found[-1].ready
    behind = house.storage.log.log_end - end_offset
    assert found[-1].records == Progress(checkpoint.record_count + behind, checkpoint.record_count + behind)
    assert found[-1].bytes.loaded == found[-1].bytes.total
    assert house.node.following.loading.snapshots == 1
    assert OffsetAndEpoch(end_offset, 1) in house.storage.log.snapshots


def test_without_a_leader_it_reports_not_ready(tmp_path: Path) -> None:
    house = House(tmp_path)
    found = health(readings(house))  # only a leader knows which records are committed
    assert (found.ready, found.state, found.leader) == (False, "no leader", -1)
    house.start()
    lost = msgspec.structs.replace(house.node.core.metrics(house.clock.ms), current_leader=-1)
    found = health(readings(house, raft=lost))
    assert (found.ready, found.state, found.leader) == (False, "no leader", -1)


def test_on_a_full_disk_and_during_a_stop_it_reports_not_ready(tmp_path: Path) -> None:
    house = House(tmp_path).start()
    assert health(readings(house)).ready
    house.step(events.DiskFilled("no room"))
    assert (health(readings(house)).ready, health(readings(house)).state) == (False, "disk full")
    house.step(events.DiskHasRoom())
    assert health(readings(house)).ready
    house.node.stop()
    assert (health(readings(house)).ready, health(readings(house)).state) == (False, "stopping")


def test_it_is_json_with_units_and_totals(tmp_path: Path) -> None:
    house = House(tmp_path).start()
    found = msgspec.json.decode(msgspec.json.encode(health(readings(house))))
    end = house.storage.log.log_end
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
        "twins",
        "addresses",
    }


def test_it_lists_troubles_without_a_leader_and_refused_nodes(tmp_path: Path) -> None:
    reported = {"troubles": ["b:9093: nothing listens there"], "refused": ["node 7 at b is refused"]}
    found = msgspec.json.decode(msgspec.json.encode(health(readings(House(tmp_path), **reported))))
    assert {name: found[name] for name in reported} == reported
