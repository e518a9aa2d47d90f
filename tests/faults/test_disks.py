"""Disks of controllers fill up, fail, are slow, empty or outdated while topics are created."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from testkit.process import wait_until
from tests.faults.disks import SmallDisk, failing_fsync, fsync_lacking, lacking, preload_faults
from tests.faults.quorum import VOTERS, FaultyQuorum, surviving

needs_mount = pytest.mark.skipif(lacking() is not None, reason=f"not run: {lacking()}")
ways = pytest.mark.parametrize(
    "way",
    [
        pytest.param(
            way,
            marks=pytest.mark.skipif(fsync_lacking(way) is not None, reason=f"not run: {fsync_lacking(way)}"),
        )
        for way in ("strace", "preload")
    ],
)


@pytest.fixture(scope="module", params=[False, True], ids=["dynamic", "static"])
def static(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def disks(static: bool) -> dict[int, SmallDisk]:
    return {}


@pytest.fixture(scope="module")
def three(
    tmp_path_factory: pytest.TempPathFactory, static: bool, disks: dict[int, SmallDisk]
) -> Iterator[FaultyQuorum]:
    """Three voters that join by themselves, each on a separate small disk if the machine allows that."""
    joining = {} if static else {"controller.quorum.auto.join.enable": "true"}
    with ExitStack() as stack:
        home = tmp_path_factory.mktemp("disks")
        if lacking() is None:
            for node_id in VOTERS:
                disks[node_id] = stack.enter_context(SmallDisk(home / f"disk-{node_id}"))
        quorum = stack.enter_context(FaultyQuorum(home, static=static, properties=joining))
        for node_id, disk in disks.items():
            quorum.keep_data_in(node_id, disk.path / "data")
        if fsync_lacking("preload") is None:
            for controller in quorum.controllers.values():
                preload_faults(controller, home)
        quorum.start()
        yield quorum


@needs_mount
def test_a_leader_whose_disk_is_full_resigns(three: FaultyQuorum, disks: dict[int, SmallDisk]) -> None:
    with surviving(three, "full-leader") as writer:
        leader, epoch = three.wait_for_leader(), three.epoch()
        with disks[leader].full():
            assert three.wait_for_leader(after_epoch=epoch) != leader
            writer.wait_for_more()


@needs_mount
def test_a_follower_whose_disk_is_full_catches_up_later(
    three: FaultyQuorum, disks: dict[int, SmallDisk]
) -> None:
    with surviving(three, "full-follower") as writer:
        leader = three.wait_for_leader()
        with disks[three.others(leader)[0]].full():
            writer.wait_for_more(50)


@needs_mount
def test_full_disks_of_all_voters_block_writes_until_there_is_space(
    three: FaultyQuorum, disks: dict[int, SmallDisk]
) -> None:
    with surviving(three, "all-full") as writer, ExitStack() as stack:
        for disk in disks.values():
            stack.enter_context(disk.full())
        # once two cannot write, the third may have nothing to write
        wait_until(lambda: sum(_noticed(three, node_id) for node_id in VOTERS) >= 2, "a majority logs it")
        stack.close()
        writer.wait_for_more()


def _noticed(quorum: FaultyQuorum, node_id: int) -> bool:
    controller = quorum.controllers[node_id]
    return not controller.alive or "the disk is full" in controller.log_text()


@ways
@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_node_whose_fsync_fails_exits_and_nothing_is_lost(three: FaultyQuorum, role: str, way: str) -> None:
    """After a failed fsync the contents of the disk are unknown until a new start reads them."""
    with surviving(three, f"fsync-{role}-{way}") as writer:
        leader, epoch = three.wait_for_leader(), three.epoch()
        node = three.controllers[leader if role == "leader" else three.others(leader)[0]]
        with failing_fsync(node, way):
            wait_until(lambda: not node.alive, "it ends")
        assert node.exit_code not in (0, None)
        if role == "leader":
            assert three.wait_for_leader(after_epoch=epoch) != leader
        writer.wait_for_more()


@ways
def test_a_leader_with_a_slow_disk_keeps_leading(three: FaultyQuorum, way: str) -> None:
    with surviving(three, f"slow-disk-{way}") as writer:
        leader, epoch = three.wait_for_leader(), three.epoch()
        with failing_fsync(three.controllers[leader], way, delay_us=100_000):
            writer.wait_for_more()
        assert (three.wait_for_leader(), three.epoch()) == (leader, epoch)


def test_a_stale_directory_does_not_win_an_election(three: FaultyQuorum) -> None:
    with surviving(three, "stale") as writer:
        leader = three.wait_for_leader()
        stale, other = three.others(leader)
        three.controllers[stale].kill()
        writer.wait_for_more(50)
        for node_id in (leader, other):
            three.controllers[node_id].kill()
        assert three.start_controllers(stale, other) == other


@pytest.mark.parametrize("role", ["follower", "leader"])
def test_an_old_copy_of_a_directory_is_brought_up_to_date(three: FaultyQuorum, role: str) -> None:
    """This is safe while the others are a majority without it: they have the records that it lost."""
    with surviving(three, f"old-{role}") as writer:
        leader = three.wait_for_leader()
        node = three.controllers[leader if role == "leader" else three.others(leader)[0]]
        node.kill()
        copy = node.home / f"copy-{role}"
        shutil.copytree(node.data, copy)
        three.start_controllers(node.node_id)
        three.wait_for_voters(*VOTERS)
        writer.wait_for_more(50)
        node.kill()
        three.wait_for_leader()
        writer.wait_for_more()
        with three.directory_exchanged(node.node_id):
            shutil.rmtree(node.data)
            shutil.copytree(copy, node.data)
        three.start_controllers(node.node_id)
        three.wait_for_voters(*VOTERS)


@pytest.mark.parametrize("role", ["follower", "leader"])
def test_a_voter_with_a_wiped_directory_joins_again(three: FaultyQuorum, role: str) -> None:
    """KIP-853: with a new directory id it is another replica; the old one is removed, this one added.

    Static voters have no directory ids: it is the same voter, with nothing in its log.
    """
    with surviving(three, f"wiped-{role}") as writer:
        leader = three.wait_for_leader()
        node = three.controllers[leader if role == "leader" else three.others(leader)[0]]
        before = three.voting_directories()
        node.kill()
        writer.wait_for_more()
        shutil.rmtree(node.data)
        node.format(three.cluster_id, *([] if three.static else ["--no-initial-controllers"]))
        node.start()
        if three.static:
            three.wait_for_voters(*VOTERS)
            return
        others = {one for one in before if one[0] != node.node_id}

        def replaced() -> bool:
            now = three.voting_directories()
            return len(now) == len(VOTERS) and now & before == others

        wait_until(replaced, f"{node.node_id} votes with its new directory")


def test_every_voter_can_change_its_port(three: FaultyQuorum) -> None:
    """UpdateRaftVoter; at the end only the voters' record has their addresses.

    Every file has the addresses of static voters: they change their ports together.
    """
    with surviving(three, "moved") as writer:
        if three.static:
            for node in three.controllers.values():
                assert node.stop() == 0
            three.move_all()
            three.start_controllers()
            return
        for node_id, node in three.controllers.items():
            assert node.stop() == 0
            door = three.move(node_id)
            node.start()
            wait_until(
                lambda node_id=node_id, door=door: three.voter_port(node_id) == door,
                f"the voters' record has the new port of {node_id}",
            )
            three.wait_for_voters(*VOTERS)
            writer.wait_for_more()
        for node in three.controllers.values():
            node.kill()
        three.start_controllers()
