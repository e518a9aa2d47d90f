"""The host's code in a world of one replica: requests for snapshots, and faults that end the process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kraftd.host.ports import FilesChecked
from kraftd.host.upkeep import snapshot_request
from kraftd.host.upkeep.snapshot_request import SnapshotAnswer, request_snapshot, take_answer
from kraftd.log.disk import write_atomically
from kraftd.log.errors import StorageFailure
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY
from kraftd.metadata_dir.files.checkpoint import checkpoint_name
from kraftd.metadata_dir.files.high_watermark import Refusal, read_mark
from kraftd.raft.effects import LocateBatch, TruncateLog
from kraftd.raft.events import BatchLocated
from kraftd.raft.replica import CommittedIsLost
from kraftd.replica.effects import OpenSnapshot
from kraftd.requests.effects import AnswerRecords
from kraftd.simulation.options import draw_options
from kraftd.simulation.processes.files import PATH
from kraftd.simulation.processes.operator import Operator
from kraftd.simulation.processes.process import Process
from kraftd.simulation.schedule import MS, SECOND
from kraftd.simulation.world import World
from kraftd.types import OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode

ALONE: dict[str, Any] = {
    "voter_count": 1,
    "observer_count": 0,
    "snapshot_bytes": 1 << 30,
    "snapshot_interval_ms": 0,
    "scrub_interval_ms": 0,
    "sync_us": (50, 500),
}


class Lines:
    """A log for the operator that keeps its lines."""

    def __init__(self, lines: list[tuple[str, dict[str, Any]]]) -> None:
        self.lines = lines

    def warning(self, text: str, **fields: Any) -> None:
        self.lines.append((text, fields))


LOG_PATH = f"{PATH}/{PARTITION_DIRECTORY}"


class Replica:
    """One replica that leads itself, and requests to it."""

    def __init__(self, *, controllers: bool) -> None:
        options = draw_options(1)._replace(**ALONE, controllers=controllers)
        self.world = World(1, options=options, faults=())
        [self.host] = self.world.cluster.hosts.values()
        self.world.cluster.start(self.host)
        vars(self.process)["request_snapshot"] = lambda: False  # only the test asks
        self.world.workload.start()
        self.run(5 * SECOND)
        self.world.workload.stop()
        self.world.cluster.start(self.host)  # some of the work ends in a crash
        self.run(5 * SECOND)

    @property
    def process(self) -> Process:
        assert self.host.process is not None
        return self.host.process

    def run(self, for_us: int) -> None:
        self.world.schedule.run_until(self.world.schedule.now_us + for_us)

    def ask(self, name: str) -> None:
        request_snapshot(self.host.disk, LOG_PATH, name)

    def answers(self, *names: str) -> dict[str, SnapshotAnswer]:
        """The answers to these requests within ten seconds."""
        found: dict[str, SnapshotAnswer] = {}
        for _ in range(5_000):
            self.run(2 * MS)
            for name in names:
                answer = take_answer(self.host.disk, LOG_PATH, name)
                if answer is not None:
                    found[name] = answer
        return found


@pytest.fixture
def replica() -> Iterator[Replica]:
    one = Replica(controllers=False)
    yield one
    one.world.take_apart()


@pytest.fixture
def controller() -> Iterator[Replica]:
    one = Replica(controllers=True)
    yield one
    one.world.take_apart()


def test_a_request_during_a_snapshot_gets_its_own_answer(replica: Replica) -> None:
    replica.ask("first")
    for _ in range(10_000):
        replica.run(1 * MS)
        if replica.process.keeper.is_making:
            break
    assert replica.process.keeper.is_making
    replica.ask("second")
    answers = replica.answers("first", "second")
    assert answers["first"].path and answers["second"].path
    assert answers["second"].path >= answers["first"].path


def test_requests_that_wait_together_share_one_snapshot(replica: Replica) -> None:
    for name in ("first", "second"):
        request_snapshot(replica.process.files.disk, LOG_PATH, name)
    answers = replica.answers("first", "second")
    assert answers["first"].path
    assert answers["first"].path == answers["second"].path


def test_old_leftovers_of_killed_commands_are_removed(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_request, "KEPT_MS", 20_000)
    keeper = replica.process.keeper
    keeper.settings = keeper.settings._replace(clean_interval_ms=1_000)
    disk = replica.host.disk
    for name in ("snapshot.request.half.tmp", "snapshot.answer.half.tmp", "snapshot.answers"):
        write_atomically(disk, f"{LOG_PATH}/{name}", b"")
    replica.ask("killed")
    replica.run(15 * SECOND)
    assert disk.exists(f"{LOG_PATH}/snapshot.answer.killed")
    replica.ask("later")
    replica.run(10 * SECOND)
    remaining = [name for name in disk.list_names(LOG_PATH) if name.startswith("snapshot.")]
    assert remaining == ["snapshot.answer.later", "snapshot.answers"]
    assert take_answer(disk, LOG_PATH, "later")


def test_a_snapshot_that_cannot_be_opened_ends_the_process(controller: Replica) -> None:
    executor = controller.process.executor
    with pytest.raises(FileNotFoundError):
        executor.perform([OpenSnapshot(OffsetAndEpoch(999, 9))])
        controller.run(1 * MS)
    assert executor._dead


def test_an_offset_inside_a_batch_is_located_at_its_beginning(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, located = replica.process.files, list[Any]()
    long = [one for one in files.batches(files.log.log_start) if one.header.last_offset_delta]
    assert long, f"no batch of several records in {files!r}"
    base = long[-1].header.base_offset
    monkeypatch.setattr(replica.process.executor, "step", located.append)
    replica.process.executor._locate_batch(LocateBatch(base + 1))
    replica.run(1 * MS)
    assert BatchLocated(base + 1, base) in located


def test_a_truncation_is_logged_counted_and_kept_aside(replica: Replica) -> None:
    process, lines = replica.process, list[tuple[str, dict[str, Any]]]()
    executor, log = process.executor, process.files.log
    executor.truncations._lines = Lines(lines)  # type: ignore[assignment]
    last = list(process.files.batches(log.log_start))[-1]
    start, end = last.header.base_offset, log.log_end
    executor._truncate(TruncateLog(start, 2, 9))
    log.sync()
    ((text, fields),) = lines
    assert text == "the log was truncated: the leader's log lacks these records"
    assert fields["from_offset"] == start and fields["to_offset"] == end
    assert fields["epochs"] == str(last.header.leader_epoch)
    assert (fields["leader"], fields["leader_epoch"]) == (2, 9)
    assert process.files.disk.read_bytes(fields["kept_in"]) == bytes(last.view)
    assert (executor.truncations.count, executor.truncations.records) == (1, end - start)


def test_a_truncation_is_an_event_of_the_audit_stream(
    controller: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, events = controller.process, list[Any]()
    monkeypatch.setattr(process.executor, "audited", events.append)
    start = list(process.files.batches(process.files.log.log_start))[-1].header.base_offset
    process.executor._truncate(TruncateLog(start, 2, 9))
    (line,) = events
    assert (line.event, line.offset) == ("log truncated", -1)
    assert line.fields["from_offset"] == start
    assert line.fields == process.executor.truncations.last.fields  # type: ignore[union-attr]


def test_the_high_watermark_reaches_the_disk_apart_from_the_commits(replica: Replica) -> None:
    process = replica.process
    replica.run(3 * SECOND)
    directory = process.files.directory.partition_path
    mark = read_mark(process.files.disk, directory)
    assert 0 < mark.high_watermark <= process.core.high_watermark
    process.high_watermark_keeper.write()
    at_stop = read_mark(process.files.disk, directory)
    assert at_stop.high_watermark == process.core.high_watermark
    assert at_stop.epoch == process.core.epoch


def test_a_refusal_to_lose_committed_records_is_durable_at_once(replica: Replica) -> None:
    process = replica.process
    core = process.core._replica
    lost = CommittedIsLost(core, "is asked to truncate to 3", 3)
    with pytest.raises(CommittedIsLost):
        process.executor.fail(lost)
    disk = process.files.disk.after_crash(lambda _: 0)
    mark = read_mark(disk, process.files.directory.partition_path)
    assert mark.high_watermark == core.high_watermark
    assert mark.refused == Refusal(core.leader_id or 0, core.epoch, 3, core.log.end_offset)


def test_damage_is_counted_by_files(replica: Replica) -> None:
    keeper = replica.process.keeper
    rows = [{"path": "/a.log", "position": at, "offset": at, "reason": "damaged"} for at in range(3)]
    keeper._scrubbed(FilesChecked(rows))
    assert keeper.damaged_files == 1


def test_an_error_of_the_disk_behind_a_check_of_the_files_ends_the_process(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise StorageFailure("cannot sync the directory")

    process = replica.process
    monkeypatch.setattr("kraftd.host.upkeep.snapshot_keeper.set_aside", fails)
    monkeypatch.setattr(process.keeper.storage.log, "snapshots", [OffsetAndEpoch(5, 1)])
    row = {"path": f"/{checkpoint_name(OffsetAndEpoch(5, 1))}", "position": 0, "offset": 0, "reason": "rot"}
    vars(process.keeper._processes)["check_files"] = lambda *order: order[-1](FilesChecked([row]))
    process.keeper.scrub()
    assert process.ended and replica.host.process is None


def test_an_error_of_the_disk_ends_only_its_own_process(replica: Replica) -> None:
    process = replica.process
    process.executor.fail(StorageFailure("cannot sync /a.log"))
    assert process.ended and replica.host.process is None


def test_a_fault_while_filling_an_answer_fails_only_that_call(monkeypatch: pytest.MonkeyPatch) -> None:
    replica = Replica(controllers=True)
    process, workload = replica.process, replica.world.workload
    filled, failed = AnswerRecords.fill, []

    def once(self: AnswerRecords, data: Any) -> Any:
        if not failed:
            failed.append(self.call)
            raise ZeroDivisionError("planted")
        return filled(self, data)

    monkeypatch.setattr(AnswerRecords, "fill", once)
    monkeypatch.setattr(Operator, "error", Operator.info)  # the planted fault does not fail the world
    answered: list[int] = []
    monkeypatch.setattr(workload, "answered", lambda _, call, message: answered.append(message.error_code))
    while len(answered) < 40:
        workload.act("client fetch")
        replica.run(SECOND)
    assert failed and replica.process is process
    assert answered.count(ErrorCode.UNKNOWN_SERVER_ERROR) == 1
