"""``kraftd show``, ``diff``, ``history``, ``topics`` and ``watch`` over directories and copied files."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from kraftd.cli.metadata.as_of import parse_as_of
from kraftd.cli.sources.source import Limit
from kraftd.cli.tables import print_table
from kraftd.log.disk import RealDisk
from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.end_transaction_record import EndTransactionRecord
from kraftd.metadata_dir.recovery import open_log
from kraftd.wire.message import Message
from testkit.process import free_port
from tests.cli.cluster import create_topics, register_broker
from tests.cli.run import Run, run, started, tree, write_config
from tests.cli.sample_history import BEGAN_MS, END, MINUTE_MS, append, checkpoint_at, write_history
from tests.cli.watching import Watch

SEGMENT = "__cluster_metadata-0/00000000000000000000.log"


@pytest.fixture
def past(tmp_path: Path) -> Path:
    return write_history(tmp_path / "data")


def rows(done: Run) -> list[dict[str, Any]]:
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def leader_as_of(past: Path, as_of: str) -> int:
    (row,) = rows(run("show", "/topics/byName/orders/0", "-d", past, "--as-of", as_of, "--json"))
    leader: int = row["value"]["leader"]
    return leader


def test_the_state_is_shown_as_of_any_offset_or_time(past: Path) -> None:
    assert [leader_as_of(past, offset) for offset in ("3", "5", "6", "10")] == [1, 1, 2, 2]
    assert leader_as_of(past, "2023-11-14T22:15:20Z") == 1
    assert leader_as_of(past, "2023-11-14T22:16:20") == 2
    assert leader_as_of(past, "now") == 2


def test_an_offset_within_a_batch_divides_it(past: Path) -> None:
    assert run("show", "/topics/byName/orders/1", "-d", past, "--as-of", 3).code == 1
    assert run("show", "/topics/byName/orders/1", "-d", past, "--as-of", 4).code == 0
    assert run("show", "/provenance", "-d", past, "--as-of", 3).out.startswith("offset 3, epoch 1")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("show", "--as-of", END),
            f"offset {END} is beyond the end: the log has the offsets 0 to {END - 1}.",
        ),
        (("topics", "--as-of", 999), "offset 999 is beyond the end"),
        (("diff", "--from", 3, "--to", END), f"offset {END} is beyond the end"),
        (("diff", "--from", 999), "offset 999 is beyond the end"),
        (("history", "--from", END), f"offset {END} is beyond the end"),
        (("history", "--to", END), f"offset {END} is beyond the end"),
        (("watch", "--from", END), f"offset {END} is beyond the end"),
    ],
)
def test_an_offset_that_no_record_has_yet_is_refused(
    past: Path, words: tuple[object, ...], says: str
) -> None:
    for name in (past, past / SEGMENT):
        done = run(*words, "-d", name)
        assert (done.code, done.out) == (1, "") and done.err.startswith(f"{name}: {says}"), done


def test_the_offsets_of_a_checkpoint_and_of_a_cut_log_are_named(past: Path, tmp_path: Path) -> None:
    checkpoint_at(past, 7)
    lone = shutil.copy(past / f"__cluster_metadata-0/{7:020}-{1:010}.checkpoint", tmp_path)
    assert "is beyond the end: the log has the offsets 6 to 6.\n" in run("show", "-d", lone, "--as-of", 7).err
    log = open_log(RealDisk(), f"{past}/__cluster_metadata-0").log
    log.close()
    for name in sorted((past / "__cluster_metadata-0").glob("*.log")):
        data = name.read_bytes()
        name.write_bytes(data[:-5])  # the last batch, offsets 9 and 10, is torn
    assert "the log has the offsets 0 to 8.\n" in run("show", "-d", past, "--as-of", 9).err


def test_a_time_in_the_future_is_refused(past: Path) -> None:
    done = run("show", "-d", past, "--as-of", "2999-01-01")
    assert done.code == 2 and "2999-01-01 is in the future: this machine's clock says 20" in done.err
    done = run("history", "-d", past, "--from", 9, "--to", 5)
    assert done.code == 2 and "--from 9 is after --to 5." in done.err


def test_an_unknown_path_is_reported_with_the_offset_that_was_shown(past: Path) -> None:
    done = run("show", "/topics/byName/nothing", "-d", past)
    assert (done.code, done.out) == (1, "")
    assert done.err == f"/topics/byName/nothing: there is no such path as of offset {END - 1}.\n"


def test_without_a_path_the_top_of_the_tree_is_shown(past: Path) -> None:
    lines = run("show", "-d", past).out.splitlines()
    assert (
        lines[0] == "/"
        and "  topics/" in lines
        and "  provenance: offset 10, epoch 1," in "".join(lines)[:80]
    )


def test_a_topic_is_shown_with_its_partitions(past: Path) -> None:
    out = run("show", "topics/byName/orders", "-d", past).out
    assert "  name: orders\n" in out and "  1: PartitionRegistration(replicas=[2, 1]" in out


@pytest.mark.parametrize("place", ["", "__cluster_metadata-0", SEGMENT])
def test_a_directory_its_partition_and_a_copied_segment_show_the_same_state(past: Path, place: str) -> None:
    path = past / place if place else past
    if place == SEGMENT:
        path = Path(shutil.copy(past / place, past.parent / "copied"))
    assert run("show", "-d", path, "--json").out == run("show", "-d", past, "--json").out


def test_the_log_and_not_a_checkpoint_is_the_truth(past: Path) -> None:
    """Apache Kafka's checkpoints may keep the config of a deleted topic whose name was used again."""
    end, _ = checkpoint_at(past, END, ConfigRecord(2, "payments", "retention.ms", "1"))
    states = [run("show", "/configs", "-d", past, *limit).out for limit in ((), ("--as-of", end - 1))]
    assert "orders" in states[0] and "payments" not in states[0] and states[0] == states[1]


def test_a_checkpoint_replaces_damaged_records_before_it(past: Path) -> None:
    end, _ = checkpoint_at(past, END)
    log = open_log(RealDisk(), f"{past}/__cluster_metadata-0").log
    log.roll()
    append(log, [ConfigRecord(2, "orders", "retention.ms", "7")], BEGAN_MS + 9 * MINUTE_MS)
    log.close()
    whole = run("show", "/configs", "-d", past, "--json").out
    segment = past / SEGMENT
    data = bytearray(segment.read_bytes())
    data[80] ^= 0xFF
    segment.write_bytes(data)
    found = run("show", "/configs", "-d", past, "--json")
    assert found.out == whole and f"what is before offset {end} is from a checkpoint" in found.err


def test_replay_begins_with_a_checkpoint_if_the_log_before_it_is_deleted(past: Path) -> None:
    whole = run("show", "-d", past, "--json").out
    snapshot_id = checkpoint_at(past, 7)
    assert run("show", "-d", past, "--json").out == whole
    checkpoint = next((past / "__cluster_metadata-0").glob("*0007-*.checkpoint"))
    assert "orders" in run("show", "/topics/byName", "-d", checkpoint).out
    log = open_log(RealDisk(), f"{past}/__cluster_metadata-0").log
    log.truncate_fully_to(*snapshot_id)
    append(log, [ConfigRecord(2, "orders", "retention.ms", "7")], BEGAN_MS + 9 * MINUTE_MS)
    log.close()
    refused = run("show", "/", "-d", past, "--as-of", "5")
    assert refused.code == 1
    assert "offset 5 is before what the log still covers" in refused.err and "Ask for offset 6" in refused.err
    refused = run("show", "/", "-d", past, "--as-of", "2023-11-14T22:00")
    assert refused.err.startswith("2023-11-14 22:00:00.000Z is before what the log still covers")
    assert run("show", "/provenance", "-d", past, "--as-of", 6).out.startswith("offset 6,")
    events = rows(run("history", "-d", past, "--topic", "orders", "--json"))
    assert [one["text"] for one in events] == ["config retention.ms of topic orders set to 7 (was 500)"]


def test_a_copied_checkpoint_is_recognized_under_any_name(past: Path) -> None:
    checkpoint_at(past, 7)
    checkpoint = next((past / "__cluster_metadata-0").glob("*0007-*.checkpoint"))
    copied = Path(shutil.copy(checkpoint, past.parent / "copied"))
    orders = run("topics", "-d", copied)
    assert orders.out.count("orders") == 1 and orders.code == 0
    assert run("history", "-d", copied).out == ""  # a checkpoint holds a state without its history


def test_a_running_quorum_and_its_files_show_the_same_past(tmp_path: Path) -> None:
    port = free_port()
    config = write_config(tmp_path, port, kraftd__shutdown__timeout__ms="100")
    assert run("format", "-c", config, "-t", "Nx_7lyWBRrSmxW_wwvmA5Q", "--standalone").code == 0
    running, files = ("--bootstrap", f"127.0.0.1:{port}"), ("-d", tmp_path / "data")
    with started(config):
        register_broker(port, "Nx_7lyWBRrSmxW_wwvmA5Q")
        create_topics(port, "orders")
        assert run("snapshot", config).code == 0
        end = json.loads(run("show", "/provenance", "--json", *running).out)["value"]["offset"]
        for words in (
            ("show", "/", "--as-of", 4),
            ("history", "--to", end),
            ("diff", "--from", 4, "--to", end),
        ):
            by_quorum = rows(run(*words, "--json", *running))
            assert by_quorum and by_quorum == rows(run(*words, "--json", *files)), words


def test_history_lists_the_events_of_a_topic(past: Path) -> None:
    lines = run("history", "-d", past, "--topic", "orders").out.splitlines()
    assert lines == [
        "2023-11-14 22:14:20.000Z          2  topic orders created with 2 partitions, replication factor 2",
        "2023-11-14 22:15:20.000Z          5  config retention.ms of topic orders set to 500",
        "2023-11-14 22:16:20.000Z          6  orders-0: leader moved from broker 1 to broker 2 "
        "(leader epoch 1); ISR shrank from 1, 2 to 2",
        "2023-11-14 22:18:20.000Z          9  config retention.ms of topic orders set to 900 (was 500)",
    ]


def test_history_without_a_topic_lists_leaders_and_can_be_limited(past: Path) -> None:
    events = rows(run("history", "-d", past, "--json"))
    assert events[0]["text"] == "controller 1 leads the quorum in epoch 1 (voters 1)"
    assert events[-1]["kind"] == "topic-deleted" and len(events) == 8
    cut = rows(run("history", "-d", past, "--from", 5, "--to", 8, "--json"))
    assert [one["offset"] for one in cut] == [6, 7]


@pytest.mark.parametrize("end", [EndTransactionRecord(), AbortTransactionRecord("enough")])
def test_history_that_begins_within_a_transaction_covers_its_end(past: Path, end: Message) -> None:
    log = open_log(RealDisk(), f"{past}/__cluster_metadata-0").log
    for record in (BeginTransactionRecord(), ConfigRecord(2, "orders", "retention.ms", "1"), end):
        append(log, [record], BEGAN_MS + 9 * MINUTE_MS)
    append(log, [ConfigRecord(2, "orders", "retention.ms", "2")], BEGAN_MS + 9 * MINUTE_MS)
    log.close()
    done = run("history", "-d", past, "--from", END + 1, "--json")
    assert done.err == ""
    (ended, changed) = rows(done)
    assert ended["offset"] == END + 2
    was = 1 if isinstance(end, EndTransactionRecord) else 900
    assert changed["text"] == f"config retention.ms of topic orders set to 2 (was {was})"


def test_an_unknown_topic_has_no_history(past: Path) -> None:
    done = run("history", "-d", past, "--topic", "none")
    assert (done.code, done.err) == (1, "No topic was ever named none as far back as the log reaches.\n")


def test_diff_lists_the_differences_of_two_states(past: Path) -> None:
    done = run("diff", "-d", past, "--from", 5, "--to", 9)
    assert done.out.splitlines() == [
        "~ /topics/byName/orders/0: isr [1,2] -> [2], leader 1 -> 2, leaderEpoch 0 -> 1, "
        "partitionEpoch 0 -> 1",
        "+ /topics/byName/payments: id cHBwcHBwcHBwcHBwcHBwcA, partitions 1",
        "~ /configs/TOPIC:orders/retention.ms: 500 -> 900",
    ]
    assert done.err == "3 differences between offset 5 and offset 9.\n"
    reverse = rows(run("diff", "-d", past, "--from", 9, "--to", 5, "--json"))
    assert {"path": "/configs/TOPIC:orders/retention.ms", "before": "900", "after": "500"} in reverse
    assert run("diff", "-d", past, "--from", 9, "--to", 9).err.startswith("No differences")


def test_topics_are_listed_with_their_faults(past: Path) -> None:
    (orders,) = rows(run("topics", "-d", past, "--json"))
    assert orders["under_replicated"] == 1 and orders["without_leader"] == 0 and orders["configs"] == 1
    assert "payments" in run("topics", "pay*", "-d", past, "--as-of", 9).out
    assert run("topics", "nothing", "-d", past).err == "No topic is named nothing.\n"


def test_a_narrow_terminal_cuts_nothing_off_a_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table(["TOPIC", "UNDER-REPLICATED"], [["a-topic-with-a-long-name", "0"]])
    assert re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out).split() == [
        "TOPIC",
        "UNDER-REPLICATED",
        "a-topic-with-a-long-name",
        "0",
    ]


def test_a_table_aligns_wide_characters_and_marks_bad_rows_in_colour(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [["\u30c8\u30d4", "0"], ["orders", "1"]]
    print_table(["TOPIC", "BAD"], rows, ["", "bold red"])
    assert capsys.readouterr().out == "TOPIC   BAD\n\u30c8\u30d4    0  \norders  1  \n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table(["TOPIC", "BAD"], rows, ["", "bold red"])
    assert "\x1b[31m\x1b[1morders  1  \x1b[0m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    print_table(["TOPIC", "BAD"], rows, ["", "bold red"])
    assert "\x1b" not in capsys.readouterr().out


def test_the_commands_change_nothing_and_take_no_lock(past: Path) -> None:
    lock = RealDisk().lock(f"{past}/.lock")
    before = tree(past)
    for words in (("show",), ("history",), ("topics",), ("diff", "--from", 3)):
        assert run(*words, "-d", past).code == 0
    assert tree(past) == before
    lock.release()


def test_a_torn_tail_is_skipped_and_damage_in_the_middle_is_refused(past: Path) -> None:
    segment = past / SEGMENT
    data = segment.read_bytes()
    segment.write_bytes(data[:-5])
    assert run("show", "/provenance", "-d", past).out.startswith("offset 8,")
    segment.write_bytes(data[:300] + b"\xff" + data[301:])
    done = run("show", "/provenance", "-d", past)
    assert done.code == 3 and "checksum" in done.err and "Traceback" not in done.err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("show", "-d", "/nowhere"), 1, "/nowhere: there is no such file or directory."),
        (("show", "-d", "/etc"), 3, "/etc holds no metadata log"),
        (("show", "-d", "/etc/hostname"), 3, "neither a segment nor a checkpoint"),
        (("show", "-d", "/x", "--bootstrap", "h:1"), 2, "Give either"),
        (("show", "-d", "/x", "--as-of", "yesterday"), 2, "neither an offset (4711) nor a time"),
        (("show", "-d", "/x", "--as-of", "9" * 30), 2, "beyond the largest offset"),
        (("show", "--bootstrap", "127.0.0.1:1"), 5, "127.0.0.1:1: Connection refused"),
        (("show", "--bootstrap", "no port"), 2, "no port"),
        (("watch", "-d", "/x", "--kind", "leader_moved"), 2, "leader_moved is no kind of event"),
        (("history", "-d", "/x", "--partition", 1), 2, "--partition needs --topic"),
    ],
)
def test_an_impossible_call_is_refused_without_a_traceback(
    words: tuple[object, ...], code: int, message: str
) -> None:
    done = run(*words)
    assert done.code == code, done
    assert message in done.err and "Traceback" not in done.err


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("17", Limit(offset=17)),
        ("now", Limit()),
        ("10m", Limit(time_ms=BEGAN_MS - 600_000)),
        ("1d2h", Limit(time_ms=BEGAN_MS - 93_600_000)),
        ("2023-11-14T22:13:19.5Z", Limit(time_ms=BEGAN_MS - 500)),
        ("2023-11-14 23:13:20+01:00", Limit(time_ms=BEGAN_MS)),
    ],
)
def test_offsets_and_times_are_parsed_in_several_notations(text: str, limit: Limit) -> None:
    assert parse_as_of(text, BEGAN_MS / 1000) == limit


def test_watch_selects_an_event_by_each_of_its_kinds(past: Path) -> None:
    watch = Watch("-d", past, "--from", 1, "--kind", "isr-shrank")
    try:
        event = watch.line()
    finally:
        watch.stop()
    assert event["offset"] == 6 and event["kind"] == "leader-moved"


def test_watch_follows_a_directory_that_is_appended_to_and_truncated(past: Path) -> None:
    watch = Watch("-d", past, "--from", END - 2)
    try:
        watch.wait_until_it_follows()
        assert watch.line()["kind"] == "topic-deleted"
        log = open_log(RealDisk(), f"{past}/__cluster_metadata-0").log
        append(log, [ConfigRecord(2, "orders", "retention.ms", "1")], BEGAN_MS + 9 * MINUTE_MS)
        assert watch.line()["text"].endswith("set to 1 (was 900)")
        log.truncate_to(END)
        append(log, [ConfigRecord(2, "orders", "retention.ms", "2")], BEGAN_MS, epoch=2)
        assert f"The log was truncated at offset {END}" in watch.complaint()
        # The watch reads the state anew up to some record, and reports only the records after it.
        value = 3
        while not watch.has_line(timeout_s=0.2):
            append(log, [ConfigRecord(2, "orders", "retention.ms", str(value))], BEGAN_MS, epoch=2)
            value += 1
        was, now = (int(one) for one in re.findall(r"\b\d+\b", watch.line()["text"])[::-1])
        assert now == was + 1
        log.close()
    finally:
        code, err = watch.stop()
    assert code == 130 and "Traceback" not in err
