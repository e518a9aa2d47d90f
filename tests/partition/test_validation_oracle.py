"""Random batches, sound and wrong, judged here and by Apache Kafka's own log: equal codes, texts and
bytes."""

from __future__ import annotations

import os
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.partition.config import PartitionConfig
from kraftd.partition.validation import ProduceRefusal, ValidBatch, validate
from kraftd.wire.batch import read_batch
from kraftd.wire.compression import CODEC_NAMES
from kraftd.wire.records import decode_records
from testkit.random_batches import NOW_MS, random_parts
from tests.partition.oracle import LogOracle

pytestmark = pytest.mark.kafka

SEED = int(os.environ.get("KRAFTD_PARTITION_SEED") or 0)
ROUNDS = int(os.environ.get("KRAFTD_PARTITION_STEPS") or 1500)
LONGEST = (1 << 63) - 1
LEADER_EPOCH = 7
# For a damaged stream, which may also claim a size that no batch has.
UNREADABLE = {"INVALID_RECORD", "UNKNOWN_SERVER_ERROR", "MESSAGE_TOO_LARGE"}


def random_config(random: Random) -> PartitionConfig:
    return PartitionConfig(
        is_compacted=random.random() < 0.4,
        max_message_bytes=random.choice((1_048_588, 1_048_588, 300)),
        segment_bytes=random.choice((1 << 30, 1 << 30, 1 << 20)),
        sets_append_time=random.random() < 0.25,
        timestamp_before_max_ms=random.choice((LONGEST, LONGEST, 3_600_000, 0)),
        timestamp_after_max_ms=random.choice((3_600_000, 3_600_000, LONGEST, 0)),
        compression=random.choice((-1, -1, 0, 1, 2, 3, 4)),
    )


def properties(config: PartitionConfig) -> dict[str, str]:
    """A topic's configuration as Kafka reads it."""
    policies = [name for name, on in (("compact", config.is_compacted), ("delete", config.is_deleted)) if on]
    codec = "producer" if config.compression < 0 else CODEC_NAMES[config.compression]
    return {
        "cleanup.policy": ",".join(policies),
        "max.message.bytes": str(config.max_message_bytes),
        "segment.bytes": str(config.segment_bytes),
        "message.timestamp.type": "LogAppendTime" if config.sets_append_time else "CreateTime",
        "message.timestamp.before.max.ms": str(config.timestamp_before_max_ms),
        "message.timestamp.after.max.ms": str(config.timestamp_after_max_ms),
        "compression.type": "uncompressed" if codec == "none" else codec,
    }


def start(oracle: LogOracle, config: PartitionConfig) -> str:
    """Begin a log; return the name of its partition."""
    answer = oracle.ask(
        "new",
        config=properties(config),
        expiration=config.producer_id_expiration_ms,
        verifies=config.verifies_transactions,
        now=NOW_MS,
    )
    assert "error" not in answer, answer
    name: str = answer["partition"]
    return name


def shown(refusal: ProduceRefusal) -> tuple[Any, ...]:
    errors = [list(each) for each in refusal.record_errors]
    return refusal.error.name, refusal.message, errors, refusal.shows_log_start


def test_batches_have_the_outcome_that_kafkas_log_has(oracle: LogOracle) -> None:
    outcomes: dict[str, int] = {}
    config, name = PartitionConfig(), ""
    for step in range(ROUNDS):
        random = Random(SEED + step)
        if step % 25 == 0:
            config = random_config(random)
            name = start(oracle, config)
        parts = random_parts(random)
        data, version = parts.encoded(), random.choice((3, 6, 7, 9, 12))
        before = oracle.ask("state")["log_end"]
        answer = oracle.ask(
            "append", bytes=data, version=version, epoch=LEADER_EPOCH, now=NOW_MS, origin="CLIENT",
            transaction_version=-1, guard=0,
        )  # fmt: skip
        found = validate(
            bytearray(data), config, SimpleNamespace(name=name), before, LEADER_EPOCH, NOW_MS, version=version
        )
        error = answer["error"]
        ours = found.error.name if isinstance(found, ProduceRefusal) else "NONE"
        if config.compression not in (-1, parts.codec) and {ours, error} == {"NONE", "MESSAGE_TOO_LARGE"}:
            continue  # the output of two writers of a codec differs by some bytes
        if isinstance(found, ProduceRefusal):
            if "OutOfMemoryError" in answer.get("text", "") and found.error.name == "INVALID_RECORD":
                continue  # Kafka takes the memory that a record's length claims
            if parts.codec and parts.body is not None and {found.error.name, error} <= UNREADABLE:
                continue  # Kafka reads the beginning of a damaged stream before it meets the damage
            expected = (error, answer.get("message"), answer.get("errors", []), answer["shows"])
            assert shown(found) == expected, (SEED + step, answer, data)
        else:
            if error in ("INVALID_TXN_STATE", "OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH"):
                continue  # judged by the producer's state
            assert error == "NONE", (SEED + step, found, answer)
            if answer["log_end"] == before:
                continue  # a duplicate
            check_bytes(found, answer)
        outcomes[error] = outcomes.get(error, 0) + 1
    print(outcomes)
    wanted = {"NONE", "INVALID_RECORD", "CORRUPT_MESSAGE", "MESSAGE_TOO_LARGE", "INVALID_TIMESTAMP"}
    wanted |= {"UNSUPPORTED_COMPRESSION_TYPE", "UNKNOWN_SERVER_ERROR"}
    assert ROUNDS < 1000 or wanted <= outcomes.keys()


def check_bytes(found: ValidBatch, answer: dict[str, Any]) -> None:
    """The bytes are equal; of a batch that was compressed anew, header and records are."""
    assert found.append_time_ms == answer["append_time"]
    theirs = answer["bytes"]
    assert found.header.base_offset == answer["first"]
    if bytes(found.view) == theirs:
        return
    ours, kafkas = read_batch(found.view), read_batch(theirs)
    plain = {"length_bytes": 0, "crc": 0}
    assert ours.header.attributes & 7, "only a codec's output may differ"
    assert ours.header._replace(**plain) == kafkas.header._replace(**plain)
    assert decode_records(ours) == decode_records(kafkas)
