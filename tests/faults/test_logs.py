"""The offline checks detect their faults: each gets logs with the fault that it should find."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kraftd.messages.leader_change_message import LeaderChangeMessage
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.voters_record import Voter, VotersRecord
from kraftd.wire.batch import ControlRecordType, build_batch, build_control_batch
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord, encode_record
from testkit.logs import PARTITION, Broken, DirectoryLog, ElectionWatch, Ledger, check_prefixes, read_log

Record = tuple[int, Message]  # epoch, message


def topic(name: str) -> Message:
    return TopicRecord(name, name.encode().ljust(16, b"."))


def log_of(directory: Path, *records: Record, cut_bytes: int = 0, first: int = 0) -> DirectoryLog:
    """Write a directory whose log has these records, a batch each."""
    data = b""
    for offset, (epoch, message) in enumerate(records, first):
        if isinstance(message, VotersRecord):
            data += build_control_batch([(ControlRecordType.KRAFT_VOTERS, message, 0)], offset, epoch, 0)
        elif isinstance(message, LeaderChangeMessage):
            data += build_control_batch([(ControlRecordType.LEADER_CHANGE, message, 0)], offset, epoch, 0)
        else:
            data += build_batch([encode_record(VersionedRecord(message, 0))], offset, epoch, 0)
    (directory / PARTITION).mkdir(parents=True)
    (directory / PARTITION / f"{first:020}.log").write_bytes(data[: len(data) - cut_bytes])
    return read_log(directory)


def voters(*ids: int) -> Message:
    return VotersRecord(0, [Voter(node_id, bytes(16)) for node_id in ids])


def test_a_torn_tail_ends_a_log(tmp_path: Path) -> None:
    assert log_of(tmp_path, (1, topic("a")), (1, topic("b")), cut_bytes=3).end == 1


def test_a_segment_that_its_node_removes_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_of(tmp_path, (1, topic("a")), (1, topic("b")))
    first = tmp_path / PARTITION / f"{0:020}.log"
    later = build_batch([encode_record(VersionedRecord(topic("c"), 0))], 2, 1, 0)
    (tmp_path / PARTITION / f"{2:020}.log").write_bytes(later)
    read = Path.read_bytes

    def remove_and_read(path: Path) -> bytes:
        first.unlink(missing_ok=True)
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", remove_and_read)
    found = read_log(tmp_path)
    assert (found.start, found.end) == (2, 3)


def test_logs_of_different_length_with_equal_prefixes_are_valid(tmp_path: Path) -> None:
    records = [(1, voters(1, 2)), (1, LeaderChangeMessage(leader_id=1)), (2, topic("a")), (2, topic("b"))]
    logs = [log_of(tmp_path / "one", *records), log_of(tmp_path / "two", *records[:3])]
    assert set(Ledger().check(logs, 3).topic_names()) == {"a"}


def test_an_epoch_that_goes_back_is_detected__s4(tmp_path: Path) -> None:
    with pytest.raises(Broken, match="S4"):
        log_of(tmp_path, (2, topic("a")), (1, topic("b")))


def test_logs_that_diverge_and_then_agree_are_detected__s4(tmp_path: Path) -> None:
    one = log_of(tmp_path / "one", (1, topic("a")), (3, topic("c")))
    other = log_of(tmp_path / "two", (1, topic("b")), (3, topic("c")))
    with pytest.raises(Broken, match="S4"):
        check_prefixes(one, other)


def test_tails_of_different_epochs_may_differ(tmp_path: Path) -> None:
    one = log_of(tmp_path / "one", (1, topic("a")), (2, topic("c")))
    other = log_of(tmp_path / "two", (1, topic("a")), (3, topic("b")))
    check_prefixes(one, other)
    Ledger().check([one, other], 1)


def test_a_healed_node_that_lacks_committed_records_is_detected__s5(tmp_path: Path) -> None:
    with pytest.raises(Broken, match="S5"):
        Ledger().check([log_of(tmp_path, (1, topic("a")))], 2)


def test_a_committed_record_that_changes_is_detected__s6(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.check([log_of(tmp_path / "before", (1, topic("a")))], 1)
    with pytest.raises(Broken, match="S6"):
        ledger.check([log_of(tmp_path / "after", (2, topic("b")))], 1)


def test_two_leaders_of_an_epoch_are_detected__s1(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.check([log_of(tmp_path, (4, LeaderChangeMessage(leader_id=1)))], 1)
    with pytest.raises(Broken, match="S1"):
        ledger.led(4, 2)


def test_voters_that_change_two_at_a_time_are_detected__s13(tmp_path: Path) -> None:
    with pytest.raises(Broken, match="S13"):
        Ledger().check([log_of(tmp_path, (1, voters(1)), (1, voters(1, 2, 3)))], 2)


def test_images_that_differ_are_detected__c1(tmp_path: Path) -> None:
    """The logs do not share their beginning: one starts after a snapshot that it no longer has."""
    whole = log_of(tmp_path / "whole", (1, topic("a")), (1, NoOpRecord()))
    rest = log_of(tmp_path / "rest", (1, NoOpRecord()), first=1)
    with pytest.raises(Broken, match="C1"):
        Ledger().check([whole, rest], 2)


@pytest.mark.parametrize(
    "states, named",
    [
        ([(3, 100, -1), (2, 100, -1)], "S2"),
        ([(3, 100, -1), (3, 101, -1)], "S3"),
        ([(3, -1, 100), (3, -1, 101)], "S1"),
        ([(3, 100, -1), (3, -1, 100), (4, 101, -1), (4, 101, 101)], None),
    ],
)
def test_the_watch_of_elections_detects_broken_invariants(
    tmp_path: Path, states: list[tuple[int, int, int]], named: str | None
) -> None:
    (tmp_path / PARTITION).mkdir()
    (tmp_path / "meta.properties").write_text("version=1\ndirectory.id=some\n")
    watch = ElectionWatch([tmp_path], Ledger())
    for epoch, voted_id, leader_id in states:
        state = {"leaderEpoch": epoch, "votedId": voted_id, "leaderId": leader_id}
        (tmp_path / PARTITION / "quorum-state").write_text(json.dumps(state))
        watch.poll()
    assert [text.partition(":")[0] for text in watch.broken] == ([named] if named else [])
