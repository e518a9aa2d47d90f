"""The image and the metadata versions, compared with Kafka's own classes (java/ImageOracle.java)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kraftd.messages.client_quota_record import ClientQuotaRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.register_controller_record import RegisterControllerRecord
from kraftd.metadata import features
from kraftd.metadata import metadata_version as mv
from kraftd.metadata.metadata_version import record_version
from kraftd.wire.record_frame import VersionedRecord, decode_record, encode_record
from testkit.java import QUICK_START, classpath, compile_java, find_java, find_javac
from tests.metadata.histories import history, replayed

pytestmark = pytest.mark.kafka

HISTORIES = 150
RECORDS = 200


def ask(cases: list[str]) -> list[str]:
    javac = find_javac()
    if javac is None:
        pytest.skip("no javac beside the java in use")
    classes = compile_java(javac, Path(__file__).with_name("java") / "ImageOracle.java")
    path = os.pathsep.join([str(classes), classpath()])
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    done = subprocess.run(
        [
            str(find_java()),
            "-Xmx256m",
            *QUICK_START,
            quiet,
            "-cp",
            path,
            "org.apache.kafka.image.ImageOracle",
        ],
        input="\n".join(cases) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_random_histories_give_the_same_image_as_in_kafka() -> None:
    cases = []
    for seed in range(HISTORIES):
        records = [
            encode_record(VersionedRecord(message, record_version(type(message), 30)))
            for message in history(seed, RECORDS)
        ]
        cases.append("image " + ",".join(record.hex() for record in records))
    answers = ask(cases)
    assert len(answers) == HISTORIES
    for seed, answer in enumerate(answers):
        image = replayed(history(seed, RECORDS))
        ours = [in_one_order(encode_record(record).hex()) for record in image.records()]
        theirs = [in_one_order(record) for record in answer.split(",")]
        assert ours[0] == theirs[0]  # metadata.version decides how to read the others
        assert sorted(ours) == sorted(theirs), f"history {seed}"
        assert kinds(ours) == kinds(theirs), f"order of history {seed}"


def in_one_order(record: str) -> str:
    """A record whose maps are sorted: Kafka writes them in the order of their hashes."""
    message, version = decode_record(bytes.fromhex(record))
    if isinstance(message, RegisterBrokerRecord | RegisterControllerRecord):
        message.end_points.sort(key=lambda endpoint: endpoint.name)
        message.features.sort(key=lambda feature: feature.name)
    elif isinstance(message, ClientQuotaRecord):
        message.entity.sort(key=lambda entity: entity.entity_type)
    return encode_record(VersionedRecord(message, version)).hex()


def kinds(records: list[str]) -> list[str]:
    """The record types in order of their first occurrence; topics and partitions alternate."""
    return list(dict.fromkeys(record[2:4] for record in records))


def test_every_metadata_version_means_the_same_as_in_kafka() -> None:
    lines = ask(["versions"])[0].split(";")
    assert len(lines) == len(mv.LEVELS)
    for level, line in zip(mv.LEVELS, lines, strict=True):
        assert facts(level) == line


def facts(level: mv.Level) -> str:
    number = level.level

    def java(value: object) -> str:
        return str(value).lower()

    changed = [str(other.level) for other in mv.LEVELS if mv.records_changed_between(number, other.level)]
    words = [
        f"{number}={level.name}",
        f"register_broker={mv.register_broker_record_version(number)}",
        f"partition={mv.partition_record_version(number)}",
        f"partition_change={mv.partition_change_record_version(number)}",
        f"scram={java(mv.allows_scram(number))}",
        f"transactions={java(mv.allows_transactions(number))}",
        f"tokens={java(mv.allows_delegation_tokens(number))}",
        f"controllers={java(mv.allows_controller_registration(number))}",
        f"directories={java(mv.allows_directory_assignment(number))}",
        f"elr={java(mv.allows_elr(number))}",
        f"cordoned={java(mv.allows_cordoned_directories(number))}",
        f"isr_shrink_bump={java(mv.bumps_leader_epoch_on_isr_shrink(number))}",
    ]
    if number <= mv.LATEST_PRODUCTION:
        words.append(f"release={mv.parse_version(level.release, unstable=True)}")
    order = ("kraft", "transaction", "group", "eligible.leader.replicas", "share", "streams")
    words += [f"{name}.version={features.FEATURES[f'{name}.version'].default(number)}" for name in order]
    words.append(f"changed={'+'.join(changed)}")
    return " ".join(words)
