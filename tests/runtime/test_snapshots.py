"""Snapshots of a running daemon: made beside it, bounded on disk, served, requested, and verified."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraftd.host.snapshots.checkpointing import CheckpointOrder
from kraftd.host.upkeep.snapshot_request import name_of, request_snapshot, take_answer
from kraftd.log.disk import RealDisk
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.messages.fetch_snapshot_request import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.metadata_dir.files.checkpoint import checkpoint_name, parse_checkpoint_name, part_name
from kraftd.runtime.children.snapshot_writer import ORPHANED
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID, OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode
from tests.runtime.daemon_process import CLUSTER_ID, WAIT_S, Client, DaemonProcess
from tests.runtime.test_daemon import creation, register

OFTEN = {
    "metadata__log__max__record__bytes__between__snapshots": 4000,
    "internal__metadata__log__segment__bytes": 6000,
    "metadata__max__retention__bytes": 8000,
    "internal__metadata__delete__delay__millis": 0,
}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., DaemonProcess]]:
    """Starts a daemon with settings, and kills it at the end."""
    started: list[DaemonProcess] = []

    def starter(**settings: Any) -> DaemonProcess:
        started.append(DaemonProcess(tmp_path, **settings).format().start())
        return started[-1]

    yield starter
    for daemon in started:
        daemon.stop(signal.SIGKILL)


def directory(daemon: DaemonProcess) -> Path:
    return daemon.home / "data" / "__cluster_metadata-0"


def snapshots(daemon: DaemonProcess) -> list[OffsetAndEpoch]:
    found = [parse_checkpoint_name(path.name) for path in directory(daemon).glob("*.checkpoint")]
    return sorted(each for each in found if each is not None and each.offset)


def wait_until(condition: Callable[[], object], what: str) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, f"never: {what}"
        time.sleep(0.02)


def wait_for_another(daemon: DaemonProcess, newest: OffsetAndEpoch) -> None:
    wait_until(lambda: snapshots(daemon)[-1] != newest, "another snapshot")


def create(client: Client, names: range) -> None:
    epoch = register(client)
    client.call(BrokerHeartbeatRequest(1, epoch, current_metadata_offset=epoch), 1)
    for number in names:
        answer = client.call(creation(f"t{number}"), 7)
        assert answer.topics[0].error_code == ErrorCode.NONE


def fetch(client: Client, offset: int, epoch: int) -> Any:
    """The answer to a replica whose log ends at that offset."""
    partition = FetchPartition(0, 1, offset, epoch, -1, 0)
    request = FetchRequest(
        cluster_id=CLUSTER_ID,
        replica_state=ReplicaState(7, -1),
        topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )
    return client.call(request, 17).responses[0].partitions[0]


def piece(client: Client, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> Any:
    partition = PartitionSnapshot(0, 1, SnapshotId(snapshot_id.offset, snapshot_id.epoch), position)
    request = FetchSnapshotRequest(CLUSTER_ID, 7, max_bytes, [TopicSnapshot(METADATA_TOPIC, [partition])])
    return client.call(request, 1).topics[0].partitions[0]


def test_bytes_make_snapshots_due_and_retention_deletes_the_log(
    start: Callable[..., DaemonProcess],
) -> None:
    daemon = start(**OFTEN)
    client = daemon.client()
    create(client, range(100))
    first = directory(daemon) / "00000000000000000000.log"
    wait_until(lambda: not first.exists(), "the first segment is deleted")
    assert snapshots(daemon)
    partition = fetch(client, 0, 0)
    assert partition.snapshot_id.end_offset > 0 and partition.snapshot_id.epoch == 1
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    again = daemon.start().client()

    def created(number: int) -> int:
        return int(again.call(creation(f"t{number}"), 7).topics[0].error_code)

    wait_until(lambda: created(0) != ErrorCode.NOT_CONTROLLER, "it has read the log behind the snapshot")
    assert {created(number) for number in range(100)} == {ErrorCode.TOPIC_ALREADY_EXISTS}
    assert daemon.stop() == 0


def test_retention_deletes_though_a_snapshot_is_always_due(start: Callable[..., DaemonProcess]) -> None:
    daemon = start(
        metadata__log__max__record__bytes__between__snapshots=1,
        internal__metadata__log__segment__bytes=2000,
        metadata__max__retention__bytes=5000,
        metadata__max__idle__interval__ms=10,
        internal__metadata__delete__delay__millis=0,
    )
    first = directory(daemon) / "00000000000000000000.log"
    wait_until(lambda: not first.exists(), "the first segment is deleted")


def test_a_snapshot_is_read_in_unaligned_pieces(start: Callable[..., DaemonProcess]) -> None:
    daemon = start()
    client = daemon.client()
    create(client, range(30))
    daemon.kraftd("snapshot", str(daemon.properties))
    [newest] = snapshots(daemon)
    whole = (directory(daemon) / checkpoint_name(newest)).read_bytes()
    data = b""
    while len(data) < len(whole):
        answer = piece(client, newest, len(data), 333)
        assert (answer.error_code, answer.position, answer.size) == (0, len(data), len(whole))
        assert 0 < len(answer.unaligned_records) <= 333
        data += bytes(answer.unaligned_records)
    assert data == whole
    assert piece(client, newest, len(data), 1).error_code == ErrorCode.POSITION_OUT_OF_RANGE
    other = OffsetAndEpoch(newest.offset + 1, 1)
    assert piece(client, other, 0, 1).error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    bootstrap = OffsetAndEpoch(0, 0)
    assert piece(client, bootstrap, 0, 1).error_code == ErrorCode.SNAPSHOT_NOT_FOUND


def test_a_snapshot_that_is_being_read_is_not_deleted(start: Callable[..., DaemonProcess]) -> None:
    daemon = start(**{**OFTEN, "internal__metadata__delete__delay__millis": 600_000})
    client = daemon.client()
    create(client, range(40))
    wait_until(lambda: snapshots(daemon), "a first snapshot")
    snapshot = snapshots(daemon)[0]
    # The file has its name a moment before the daemon is notified.
    wait_until(lambda: piece(client, snapshot, 0, 10).error_code == ErrorCode.NONE, "it is served")
    for round_ in range(1, 4):
        newest = snapshots(daemon)[-1]
        create(client, range(40 * round_, 40 * round_ + 40))
        wait_for_another(daemon, newest)
    assert piece(client, snapshot, 10, 10).error_code == ErrorCode.NONE


def test_time_makes_a_snapshot_due(start: Callable[..., DaemonProcess]) -> None:
    daemon = start(metadata__log__max__snapshot__interval__ms=300)
    wait_until(lambda: len(snapshots(daemon)) > 1, "two snapshots")


def test_retention_by_age_never_deletes_the_last_snapshot(start: Callable[..., DaemonProcess]) -> None:
    daemon = start(
        metadata__log__max__record__bytes__between__snapshots=2000,
        internal__metadata__log__segment__bytes=2000,
        metadata__max__retention__bytes=-1,
        metadata__max__retention__ms=1,
        metadata__max__idle__interval__ms=10,
        internal__metadata__delete__delay__millis=0,
    )
    first = directory(daemon) / "00000000000000000000.log"
    wait_until(lambda: not first.exists(), "the first segment is deleted")
    assert daemon.stop() == 0
    oldest, *_ = snapshots(daemon)
    begins = min(int(path.name[:20]) for path in directory(daemon).glob("*.log"))
    assert 0 < begins <= oldest.offset


def alter(client: Client, topic: str, value: int) -> None:
    """Change one key repeatedly: the log grows, and one record of a snapshot changes."""
    config = AlterableConfig("retention.ms", 0, str(value))
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(2, topic, [config])])
    assert client.call(request, 1).responses[0].error_code == ErrorCode.NONE


def test_too_few_changes_make_no_snapshot_except_on_demand(
    start: Callable[..., DaemonProcess],
) -> None:
    daemon = start(
        metadata__snapshot__min__changed_records__ratio=0.5,
        metadata__log__max__record__bytes__between__snapshots=4000,
        metadata__max__idle__interval__ms=0,
        broker__session__timeout__ms=600_000,
    )
    client = daemon.client()
    create(client, range(40))
    wait_until(lambda: snapshots(daemon), "a first one, since when nothing has changed")
    daemon.kraftd("snapshot", str(daemon.properties))
    before = snapshots(daemon)
    for value in range(1000, 1100):
        alter(client, "t1", value)

    def refused() -> list[dict[str, Any]]:
        return [line for line in daemon.lines() if line["event"].startswith("no snapshot: too few")]

    wait_until(refused, "too few records have changed")
    assert 0 < refused()[0]["changed_ratio"] < 0.5
    assert snapshots(daemon) == before
    daemon.kraftd("snapshot", str(daemon.properties))
    assert snapshots(daemon)[-1] > before[-1]
    assert daemon.stop() == 0


def test_requests_that_come_together_are_all_answered(start: Callable[..., DaemonProcess]) -> None:
    daemon = start(metadata__max__idle__interval__ms=0)
    disk, folder, names = RealDisk(), str(directory(daemon)), ("one", "another")
    for name in names:
        request_snapshot(disk, folder, name)
    for name in names:
        found: list[Any] = []
        wait_until(
            lambda name=name, found=found: found.append(take_answer(disk, folder, name)) or found[-1],
            f"an answer to {name}",
        )
        assert found[-1].error == ""
        assert Path(found[-1].path).exists()
    assert not list(directory(daemon).glob("snapshot.*"))


def test_a_snapshot_is_made_on_demand(start: Callable[..., DaemonProcess]) -> None:
    daemon = start(metadata__max__idle__interval__ms=0)
    output = daemon.kraftd("snapshot", str(daemon.properties)).stdout
    [newest] = snapshots(daemon)
    path = directory(daemon) / checkpoint_name(newest)
    assert output == f"{path} ({path.stat().st_size} bytes)\n"
    again = daemon.kraftd("snapshot", str(daemon.properties)).stdout
    assert again == output, "nothing was committed since"
    assert daemon.stop() == 0
    assert all(line["node"] == 100 for line in daemon.lines()), "whichever thread logged them"
    refused = daemon.kraftd("snapshot", str(daemon.properties), check=False)
    assert refused.returncode == 5
    assert "no controller runs" in refused.stderr


def test_a_request_that_cannot_be_answered_is_logged(start: Callable[..., DaemonProcess]) -> None:
    daemon = start(metadata__max__idle__interval__ms=0)
    (directory(daemon) / "snapshot.answer.mine.tmp").mkdir()  # a directory in place of the answer's file
    (directory(daemon) / "snapshot.request.mine").touch()
    wait_until(lambda: any("cannot be answered" in line["event"] for line in daemon.lines()), "it is logged")
    assert snapshots(daemon), "it was made"
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.log.read_text()


def test_the_writer_ends_with_the_daemon() -> None:
    waiting = (
        "import time; from kraftd.runtime.children.snapshot_writer import end_with_parent; "
        "end_with_parent(); print('up', flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", waiting], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        child.stdin.close()
        assert child.wait(WAIT_S) == ORPHANED


def hanging_writer(daemon: DaemonProcess) -> tuple[int, CheckpointOrder]:
    """The process that writes a snapshot for a daemon, stopped at once, and its order."""
    assert daemon.process is not None
    found: list[tuple[int, CheckpointOrder]] = []

    def has_writer() -> bool:
        for path in Path(f"/proc/{daemon.process.pid}/task").glob("*/children"):  # type: ignore[union-attr]
            for pid in map(int, path.read_text().split()):
                os.kill(pid, signal.SIGSTOP)
                words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                if "kraftd.runtime.children.snapshot_writer" in words:
                    found.append((pid, msgspec.json.decode(words[-2], type=CheckpointOrder)))
                else:  # it has not executed its program yet
                    os.kill(pid, signal.SIGCONT)
        return bool(found)

    wait_until(has_writer, "a writer")
    return found[0]


def test_a_writer_that_hangs_is_killed_and_its_file_deleted(start: Callable[..., DaemonProcess]) -> None:
    daemon = start(kraftd__metadata__snapshot__timeout__ms=3000)
    asking = subprocess.Popen(
        [sys.executable, "-m", "kraftd", "snapshot", str(daemon.properties)],
        stderr=subprocess.PIPE,
        text=True,
    )
    pid, order = hanging_writer(daemon)
    part = Path(order.directory) / part_name(order.snapshot_id, download=False)
    part.write_bytes(b"half")
    _, stderr = asking.communicate(timeout=WAIT_S)
    assert asking.returncode != 0 and "not finished after 3000 ms" in stderr
    assert not Path(f"/proc/{pid}").exists()
    wait_until(lambda: not part.exists(), "its file is deleted")
    assert any(
        line["event"] == "the process that makes a snapshot hangs: it is killed" for line in daemon.lines()
    )
    daemon.kraftd("snapshot", str(daemon.properties))
    assert snapshots(daemon), "the next one is made"
    assert daemon.stop() == 0


def test_only_one_snapshot_is_made_at_a_time(start: Callable[..., DaemonProcess]) -> None:
    daemon = start(metadata__log__max__snapshot__interval__ms=1, kraftd__metadata__snapshot__timeout__ms=3000)
    _, order = hanging_writer(daemon)
    wait_until(lambda: any("hangs" in line["event"] for line in daemon.lines()), "the snapshot is given up")
    events = [(line["event"], line.get("snapshot")) for line in daemon.lines()]
    given_up = next(at for at, (event, _) in enumerate(events) if "hangs" in event)
    begun = [snapshot for event, snapshot in events[:given_up] if event == "making a snapshot"]
    assert begun[-1] == name_of(order.snapshot_id), "though others were due all the time"


def test_leftovers_of_a_killed_writer_are_removed(start: Callable[..., DaemonProcess]) -> None:
    daemon = start()
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    leftover = directory(daemon) / "00000000000000000005-0000000001-made.checkpoint.part"
    leftover.write_bytes(b"half")
    daemon.start()
    assert not leftover.exists()
    assert daemon.stop() == 0


def damage(path: Path) -> Path:
    """Damage a checkpoint; return the name under which it is set aside."""
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.seek(300)
        file.write(b"rot")
    return path.with_name(path.name + ".damaged")


def test_a_damaged_base_is_set_aside_and_the_snapshot_made_without_it(
    start: Callable[..., DaemonProcess],
) -> None:
    daemon = start(metadata__max__idle__interval__ms=0)
    client = daemon.client()
    create(client, range(10))
    daemon.kraftd("snapshot", str(daemon.properties))
    [rotten] = snapshots(daemon)
    aside = damage(directory(daemon) / checkpoint_name(rotten))
    create(client, range(10, 12))
    refused = daemon.kraftd("snapshot", str(daemon.properties), check=False)
    assert refused.returncode != 0 and "checksum" in refused.stderr
    assert aside.exists() and snapshots(daemon) == []
    daemon.kraftd("snapshot", str(daemon.properties))
    [newest] = snapshots(daemon)
    assert newest > rotten
    assert daemon.stop() == 0


def test_the_scrub_finds_damage_and_sets_a_damaged_checkpoint_aside(
    start: Callable[..., DaemonProcess],
) -> None:
    daemon = start(
        kraftd__scrub__interval__ms=200,
        metadata__max__idle__interval__ms=0,
        broker__session__timeout__ms=600_000,
    )
    create(daemon.client(), range(10))
    daemon.kraftd("snapshot", str(daemon.properties))
    [rotten] = snapshots(daemon)
    aside = damage(directory(daemon) / checkpoint_name(rotten))
    wait_until(aside.exists, "it is set aside")
    daemon.kraftd("snapshot", str(daemon.properties))
    assert snapshots(daemon) == [rotten], "made again, from the log"
    assert daemon.stop() == 0
    assert any(line["event"] == "a damaged checkpoint was set aside" for line in daemon.lines())


@pytest.mark.skipif(shutil.which("strace") is None, reason="not run: no strace on the PATH")
def test_the_writer_syncs_file_and_directory_around_the_rename(
    start: Callable[..., DaemonProcess], tmp_path: Path
) -> None:
    """These calls give the real disk the guarantees of the disk in memory."""
    daemon = start(metadata__max__idle__interval__ms=0)
    create(daemon.client(), range(10))
    daemon.kraftd("snapshot", str(daemon.properties))
    [newest] = snapshots(daemon)
    assert daemon.stop() == 0
    path = directory(daemon) / checkpoint_name(newest)
    path.unlink()
    order = CheckpointOrder(directory=str(directory(daemon)), end_offset=newest.offset, epoch=newest.epoch)
    trace = tmp_path / "trace.txt"
    calls = "pwrite64,write,fsync,fdatasync,rename,renameat,renameat2"
    writer = [
        sys.executable,
        "-m",
        "kraftd.runtime.children.snapshot_writer",
        msgspec.json.encode(order).decode(),
    ]
    with subprocess.Popen(
        ["strace", "-f", "-y", "-o", str(trace), "-e", f"trace={calls}", *writer],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None and child.stdin is not None
        assert b'"outcome":"made"' in child.stdout.read()
        child.stdin.close()
    part = str(path.with_name(part_name(newest, download=False)))
    done = []
    for line in trace.read_text().splitlines():
        call = line.split(None, 1)[1].partition("(")[0]
        if f"<{part}>" in line:
            done.append(f"{call} part")
        elif f"<{path.parent}>" in line:
            done.append(f"{call} directory")
        elif f'"{part}", "{path}"' in line:
            done.append(call)
    assert done[:-3] and set(done[:-3]) == {"pwrite64 part"}
    assert done[-3:] == ["fdatasync part", "rename", "fsync directory"]
    assert path.stat().st_mode & 0o222 == 0, "the file is read-only"
