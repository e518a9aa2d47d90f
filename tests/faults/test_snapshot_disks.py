"""Disks that fail or are full while a real process makes or downloads a snapshot."""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from testkit.node import Controller, kraftd_command
from testkit.process import wait_until
from tests.faults.disks import faulty_files, fsync_lacking, preload_faults
from tests.faults.quorum import FaultyQuorum, surviving
from tests.faults.test_snapshots import COMPACTING
from tests.kafka.snapshots.compacting import snapshots, wait_for_compaction

preloaded = pytest.mark.skipif(
    fsync_lacking("preload") is not None, reason=f"not run: {fsync_lacking('preload')}"
)
MADE, BROUGHT = "-made.checkpoint.part", ".checkpoint.part"
ERRORS = pytest.mark.parametrize(
    ("error", "calls"), [(errno.EIO, "sync"), (errno.EIO, "write"), (errno.ENOSPC, "write")]
)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyQuorum]:
    home = tmp_path_factory.mktemp("snapshot-disks")
    with FaultyQuorum(home, properties=COMPACTING) as quorum:
        for controller in quorum.controllers.values():
            preload_faults(controller, home)
        quorum.start()
        yield quorum


def ask_for_snapshot(controller: Controller) -> subprocess.CompletedProcess[str]:
    command = kraftd_command("snapshot", controller.properties_file)
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def parts(controller: Controller) -> list[str]:
    return [path.name for path in controller.metadata_dir.iterdir() if path.name.endswith(".part")]


@preloaded
@ERRORS
def test_a_snapshot_that_cannot_be_written_is_made_later(three: FaultyQuorum, error: int, calls: str) -> None:
    with surviving(three, f"made-{error}-{calls}") as writer:
        leader, epoch = three.wait_for_leader(), three.epoch()
        node = three.controllers[leader]
        wait_until(lambda: snapshots(node.metadata_dir), "it has a snapshot")
        with faulty_files(node, error, calls, MADE):
            refused = ask_for_snapshot(node)
            newest = snapshots(node.metadata_dir)[-1]
            writer.wait_for_more(100)
            assert snapshots(node.metadata_dir)[-1] == newest
        assert refused.returncode != 0 and MADE in refused.stderr, refused
        assert "a snapshot could not be made" in node.log_text()
        wait_until(lambda: not parts(node), "nothing is left of it")
        assert ask_for_snapshot(node).returncode == 0
        assert snapshots(node.metadata_dir)[-1] > newest
        assert (three.wait_for_leader(), three.epoch()) == (leader, epoch)


@preloaded
@ERRORS
def test_a_download_waits_on_a_full_disk_and_ends_the_process_on_a_failed_one(
    three: FaultyQuorum, error: int, calls: str
) -> None:
    with surviving(three, f"brought-{error}-{calls}") as writer:
        leader = three.wait_for_leader()
        node = three.controllers[three.others(leader)[0]]
        wait_for_compaction(three.controllers[leader].metadata_dir)
        node.kill()
        shutil.rmtree(node.data)
        node.format(three.cluster_id, "--no-initial-controllers")
        with faulty_files(node, error, calls, BROUGHT):
            node.start()
            if error == errno.ENOSPC:
                wait_until(lambda: "waits for room" in node.log_text(), "it logs that")
                writer.wait_for_more()
                assert node.alive and not snapshots(node.metadata_dir)
            else:
                wait_until(lambda: not node.alive, "it ends")
                assert node.exit_code not in (0, None)
                assert not snapshots(node.metadata_dir)
        if error != errno.ENOSPC:
            node.start()
        wait_until(lambda: snapshots(node.metadata_dir), f"{node!r} has a snapshot")
