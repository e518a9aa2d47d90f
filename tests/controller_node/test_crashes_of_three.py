"""The leader or a follower of three voters crashes at each operation on its disk, in rolls and snapshots too.

The third voter is absent, so a majority needs the two others.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kraftd.host.snapshots.checkpointing import make_checkpoint
from kraftd.log.memory_disk import (
    Choose,
    SimulatedCrash,
    everything_survives,
    names_survive_without_data,
    nothing_unsynced_survives,
)
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.metadata_dir.files.checkpoint import checkpoint_path, list_checkpoints, verify_checkpoint
from kraftd.raft.events import LogStartMoved, SnapshotTaken
from kraftd.types import OffsetAndEpoch
from kraftd.wire.api import ApiKey
from tests.controller_node.test_checkpointing import NOW_MS, content_of, order
from tests.controller_node.test_followers import Two, Voter, create

SEGMENT_BYTES = 2000
TOPICS = 6


def wait(two: Two, ms: int) -> None:
    """Wait in longer steps than `two.wait`, because the test runs many of these worlds."""
    for _ in range(ms // 100):
        for voter in two.voters.values():
            voter.advance(100)
        two.talk()


def small(voter: Voter) -> None:
    """Make segments small, so that they roll soon."""
    voter.storage.log.settings = voter.storage.log.settings.__class__(segment_bytes=SEGMENT_BYTES)


def story(two: Two, voter: Voter, names: list[str]) -> None:
    """Create topics in several segments and note the acknowledged names. Make two snapshots of a voter, and
    release its log before the second.
    """
    base: OffsetAndEpoch | None = None
    for part in range(2):
        for number in range(TOPICS):
            name = f"topic-{part}-{number}"
            place = create(two.leader, name)
            two.talk()
            if two.leader.answer(place) is not None:
                names.append(name)
        wait(two, 600)  # the follower learns of the last commit
        ordered = order(voter, base)
        made = make_checkpoint(voter.disk, ordered, NOW_MS)
        base = ordered.snapshot_id
        voter.storage.log.add_snapshot(base)
        voter.step(SnapshotTaken(base, made.size_bytes))
    assert base is not None and voter.storage.log.delete_before_snapshot(base)
    voter.step(LogStartMoved(base.offset))
    voter.storage.log.sync()


def settled(tmp_path: Path) -> Two:
    tmp_path.mkdir()
    two = Two(tmp_path)
    wait(two, 4000)
    for voter in two.voters.values():
        small(voter)
    leader = two.leader
    place = leader.send(ApiKey.BROKER_REGISTRATION, 4, leader.registration())
    two.talk()
    epoch = leader.answer(place).broker_epoch
    leader.send(ApiKey.BROKER_HEARTBEAT, 1, BrokerHeartbeatRequest(1, epoch, current_metadata_offset=epoch))
    two.talk()
    return two


def restarted(two: Two, voter: Voter, home: Path, choose: Choose) -> Voter:
    """The same voter after a crash; its peers are notified of the lost connection."""
    again = Voter(home, voter.node_id, voter.disk.after_crash(choose))
    again.clock.ms = voter.clock.ms
    voter.sent.clear()
    two.voters[voter.node_id] = again
    two.lose()
    again.start()
    return again


@pytest.mark.parametrize("role", ["leader", "follower"])
@pytest.mark.parametrize(
    "chooser",
    [lambda: nothing_unsynced_survives, lambda: everything_survives, names_survive_without_data],
    ids=["nothing", "everything", "names"],
)
def test_a_crash_at_every_operation_loses_nothing_and_leaves_equal_images(
    tmp_path: Path, role: str, chooser: Callable[[], Choose]
) -> None:
    two = settled(tmp_path / "whole")
    voter: Voter = getattr(two, role)
    before = voter.disk.operations
    story(two, voter, [])
    total = voter.disk.operations - before
    assert total > 40
    assert "00000000000000000000.log" not in voter.disk.list_names(voter.storage.log.directory), (
        "rolled, let go"
    )
    for at in range(1, total + 1):
        two = settled(tmp_path / f"crash-{at}")
        voter = getattr(two, role)
        names: list[str] = []
        voter.disk.crash_at = voter.disk.operations + at
        with pytest.raises(SimulatedCrash):
            story(two, voter, names)
        voter.disk.crash_at = None
        again = restarted(two, voter, tmp_path / f"again-{at}", chooser())
        wait(two, 6000)
        assert content_of(two.leader.node.image) == content_of(two.follower.node.image), at
        assert set(names) <= set(again.node.image.topic_names()), at
        snapshots, leftovers = list_checkpoints(again.disk, again.storage.log.directory)
        assert not leftovers and snapshots == again.storage.log.snapshots
        for each in snapshots:
            verify_checkpoint(again.disk, checkpoint_path(again.storage.log.directory, each))
        assert not [path for path in again.disk.paths() if path.endswith(".damaged")]
        assert again.storage.log.log_start in (0, *(each.offset for each in snapshots))
