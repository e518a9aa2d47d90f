"""Validation of valid histories, and its first finding for each kind of invalid one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.producer_ids_record import ProducerIdsRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.unfence_broker_record import UnfenceBrokerRecord
from kraftd.metadata.image import Image
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.layout import find_replicas
from kraftd.spark.inputs.replicas import committed_log
from kraftd.spark.replay import divided as divided_replay
from kraftd.spark.replay.configs import configs
from kraftd.spark.replay.source import Replay
from kraftd.spark.validation import divided_checks
from kraftd.spark.validation.checks import (
    READABLE,
    Check,
    checks_of_divided_log,
    checks_of_small_log,
    checks_with_spark,
)
from kraftd.spark.validation.invariants import INVARIANTS
from kraftd.wire.batch import iter_batches, records
from kraftd.wire.message import Message
from kraftd.wire.record_frame import decode_record
from tests.spark.logs import LogDirectory
from tests.spark.test_tables import Story, timeline_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TOPIC = b"a topic's own id"


def broker(broker_id: int, epoch: int) -> list[Message]:
    """A broker with its directories in another order than a checkpoint keeps."""
    directories = (b"second directory", b"another one's id")
    return [
        RegisterBrokerRecord(
            broker_id=broker_id,
            broker_epoch=epoch,
            incarnation_id=bytes([broker_id]) * 16,
            log_dirs=directories,
        ),
        UnfenceBrokerRecord(id=broker_id, epoch=epoch),
    ]


def part(index: int, replicas: tuple[int, ...]) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=TOPIC,
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
    )


def sound(path: Path) -> LogDirectory:
    """Two brokers, two partitions and a producer id block; a checkpoint of them, and a later record."""
    directory = LogDirectory(path)
    directory.elect(1, 1)
    records = [FeatureLevelRecord("metadata.version", 30), *broker(1, 2), *broker(2, 4)]
    records += [TopicRecord(name="t", topic_id=TOPIC)]
    records += [part(0, (1, 2)), part(1, (2, 1))]
    records.append(ProducerIdsRecord(broker_id=1, broker_epoch=2, next_producer_id=1000))
    directory.append(records)
    image = Image()
    for offset, message in enumerate(records, 1):
        image.apply(message, offset, 1)
    directory.snapshot(directory.end_offset, list(image.records()))
    directory.append([PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(1,))])
    return directory


BREAKS: dict[str, tuple[list[Message], str]] = {
    "C3": (broker(1, 2)[:1], "epoch_before 2"),
    "C4 ISR": ([PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(1, 7))], "isr [1, 7]"),
    "C4 leader": ([part(1, (2, 1))], "old_partition_epoch 0, partition_epoch 0"),
    "C5": (
        [
            RegisterBrokerRecord(broker_id=2, broker_epoch=50),
            PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(1, 2)),
        ],
        "broker_id 2, fenced True",
    ),
    "C6": ([ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1000)], "next_before 1000"),
    "C7": ([TopicRecord(name="t", topic_id=b"another topic id")], "name t"),
}


def small(*paths: Path, note: Callable[[str], None] = pytest.fail) -> dict[str, Check]:
    """The checks of a log, without Spark."""
    replicas = find_replicas([str(path) for path in paths])
    log = committed_log(replicas[:1])
    return checks_of_small_log(Extent(log, log.end_offset), replicas, note)


def divided(*paths: Path, note: Callable[[str], None] = pytest.fail) -> dict[str, Check]:
    """The checks of a log, by two processes that replay a few records at a time."""
    replicas = find_replicas([str(path) for path in paths])
    log = committed_log(replicas[:1])
    found = checks_of_divided_log(Extent(log, log.end_offset), replicas, note)
    assert found is not None
    return found


def findings(checks: dict[str, Check]) -> dict[str, str | None]:
    return {name: check() for name, check in checks.items()}


def test_a_valid_history_passes_every_check(tmp_path: Path) -> None:
    checks = small(sound(tmp_path / "a").path)
    assert len(checks) == 2 + len(INVARIANTS) and next(iter(checks)) == READABLE
    assert findings(checks) == dict.fromkeys(checks)


@pytest.mark.parametrize("name", BREAKS)
def test_an_invalid_history_is_reported_with_its_first_offset(tmp_path: Path, name: str) -> None:
    directory = sound(tmp_path / "a")
    records, detail = BREAKS[name]
    first = directory.append(records)
    checks = small(directory.path)
    (invariant,) = (each for each in INVARIANTS if each.startswith(name))
    found = checks[invariant]()
    assert found is not None and detail in found
    assert f"offset {first + len(records) - 1}:" in found


def contradicted(path: Path) -> Path:
    """A log with a checkpoint that has other brokers; returns the checkpoint."""
    directory = sound(path)
    (checkpoint,) = directory.partition.glob("*.checkpoint")
    end = int(checkpoint.name[:20])
    checkpoint.unlink()
    image = Image()
    records = [TopicRecord(name="t", topic_id=TOPIC), part(0, (1, 2)), part(1, (2, 1))]
    for offset, message in enumerate(records):
        image.apply(message, offset, 1)
    return directory.snapshot(end, list(image.records()))


def test_a_checkpoint_that_contradicts_the_log_is_reported(tmp_path: Path) -> None:
    checkpoint = contradicted(tmp_path / "a")
    difference = small(tmp_path / "a")[f"checkpoint {checkpoint}"]()
    assert difference is not None and "only the log has in brokers" in difference
    assert str(checkpoint) in difference


def stale(path: Path) -> tuple[LogDirectory, int, int]:
    """Topic t is deleted and created again, and a checkpoint keeps a config of the first one.

    Returns the offsets of the removal and of the config that the topic has.
    """
    directory = sound(path)
    stale = [ConfigRecord(2, "t", name, "1") for name in ("retention.ms", "segment.ms")]
    removed = directory.append([*stale, RemoveTopicRecord(TOPIC), TopicRecord("t", b"another topic id")]) + 2
    again = directory.append([ConfigRecord(2, "t", "retention.ms", "2")])
    image = Image()
    messages = [decode_record(bytes(record.value or b""))[0]
                for batch in iter_batches(directory.log.read_bytes()) if not batch.header.is_control
                for record in records(batch)]  # fmt: skip
    for offset, message in enumerate([*messages, stale[1]], 1):
        image.apply(message, offset, 1)
    directory.snapshot(directory.end_offset, list(image.records()))
    return directory, removed, again


def test_a_stale_config_of_a_checkpoint_is_noted_and_not_in_the_tables(tmp_path: Path) -> None:
    directory, removed, again = stale(tmp_path / "a")
    notes: list[str] = []
    checks = small(directory.path, note=notes.append)
    assert findings(checks) == dict.fromkeys(checks)
    (note,) = notes
    assert (
        f"stale config segment.ms=1 of topic t: the topic that had it was deleted at offset {removed}" in note
    )
    log = committed_log(find_replicas([str(directory.path)]))
    (config,) = configs(Replay(Extent(log, log.end_offset)))
    assert (config["name"], config["value"], config["changed_offset"]) == ("retention.ms", "2", again)


def differing(home: Path) -> tuple[Path, Path]:
    """Two replicas that differ from offset 1 on."""
    one, other = sound(home / "one"), LogDirectory(home / "other")
    other.elect(1, 1)
    other.append([TopicRecord(name="another", topic_id=TOPIC)])
    return one.path, other.path


def test_replicas_that_differ_are_reported_with_the_offset(tmp_path: Path) -> None:
    one, other = differing(tmp_path)
    shutil.copytree(one, tmp_path / "same")
    checks = small(one, tmp_path / "same", other)
    assert checks[f"replica {tmp_path / 'same'}"]() is None
    assert checks[f"replica {other}"]() == f"{other}: offset 1: another record than in {one}"


def test_an_epoch_that_goes_back_is_reported(tmp_path: Path) -> None:
    directory = sound(tmp_path / "a")
    directory.roll()
    directory.epoch = 0
    first = directory.append([NoOpRecord()])
    found = small(directory.path)[READABLE]()
    assert found is not None and f"offset {first - 1}: an epoch below 1 follows it" in found


Cases = list[tuple[tuple[Path, ...], list[str]]]


def cases_of(home: Path) -> tuple[Cases, set[str]]:
    """Logs and the checks to compare: of random records, of all that breaks a rule, of a stale config, and of
    what differs; and the names of those checks that find something."""
    broken = sound(home / "broken")
    for added, _ in BREAKS.values():
        broken.append(added)
    checkpoint = contradicted(home / "contradicted")
    one, other = differing(home)
    stale_one = stale(home / "stale")[0]
    newest = max(stale_one.partition.glob("*.checkpoint"))
    cases: Cases = [
        ((Story(home / "story", seed=11).directory.path,), [READABLE, *INVARIANTS]),
        ((broken.path,), list(INVARIANTS)),
        ((stale_one.path,), [f"checkpoint {newest}"]),
        ((home / "contradicted",), [f"checkpoint {checkpoint}"]),
        ((one, other), [f"replica {other}"]),
    ]
    return cases, {*INVARIANTS, f"checkpoint {checkpoint}", f"replica {other}"}


def test_spark_finds_what_the_replay_of_a_small_log_finds(spark: SparkSession, tmp_path: Path) -> None:
    cases, all_found = cases_of(tmp_path)
    notes: tuple[list[str], list[str]] = [], []
    found = set()
    for paths, names in cases:
        replicas = find_replicas([str(path) for path in paths])
        by_spark = checks_with_spark(timeline_of(spark, paths[0]), replicas, notes[0].append)
        checks = small(*paths, note=notes[1].append)
        assert by_spark.keys() == checks.keys()
        ours = {name: checks[name]() for name in names}
        assert {name: by_spark[name]() for name in names} == ours
        found |= {name for name, finding in ours.items() if finding is not None}
    assert notes[0] == notes[1] and len(notes[0]) == 1
    assert found == all_found


def test_groups_of_partitions_find_what_the_replay_of_a_small_log_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(divided_replay, "GROUP_RECORDS", 3)
    monkeypatch.setattr(divided_checks, "core_count", lambda: 2)
    cases, all_found = cases_of(tmp_path)
    found = set()
    for paths, _ in cases:
        notes: tuple[list[str], list[str]] = [], []
        ours = findings(small(*paths, note=notes[0].append))
        assert findings(divided(*paths, note=notes[1].append)) == ours
        assert notes[0] == notes[1]
        found |= {name for name, finding in ours.items() if finding is not None}
    assert found == all_found


@pytest.mark.parametrize("mode", ["failfast", "permissive"])
@pytest.mark.parametrize("suffix", ["log", "checkpoint"])
def test_damage_is_found_where_it_is_in_small_and_divided_logs(
    tmp_path: Path, suffix: str, mode: str
) -> None:
    directory = sound(tmp_path / "a")
    (damaged,) = directory.partition.glob(f"*.{suffix}")
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    replicas = find_replicas([str(directory.path)])
    log = committed_log(replicas, permissive=mode == "permissive")
    extent = Extent(log, log.end_offset, permissive=mode == "permissive")
    checks = checks_of_divided_log(extent, replicas, pytest.fail)
    assert checks is not None
    ours = outcomes(checks)
    assert ours == outcomes(checks_of_small_log(extent, replicas, pytest.fail))
    is_first = suffix == "log" or mode == "permissive"
    found = ours[READABLE] if is_first else ours[f"checkpoint {damaged}"]
    assert found is not None and f"{damaged}: byte " in found


def outcomes(checks: dict[str, Check]) -> dict[str, str | None]:
    """The findings, and errors in their place."""
    found = {}
    for name, check in checks.items():
        try:
            found[name] = check()
        except InputError as error:
            found[name] = str(error)
    return found
