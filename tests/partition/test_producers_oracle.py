"""Random producers, transactions, markers and truncations, here and at Apache Kafka's own log: equal
answers."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

from kraftd.partition.config import PartitionConfig
from kraftd.partition.partition import Partition, Produced
from kraftd.partition.producer_entry import ProducerEntry
from kraftd.partition.producers import NO_GUARD
from kraftd.partition.validation import ProduceRefusal
from kraftd.wire.batch import read_batch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.records import MAX_SEQUENCE, build_records_batch
from testkit.random_batches import NOW_MS
from tests.partition.oracle import LogOracle
from tests.partition.places import Place
from tests.partition.test_validation_oracle import start

pytestmark = pytest.mark.kafka

SEED = int(os.environ.get("KRAFTD_PARTITION_SEED") or 0)
WORLDS = int(os.environ.get("KRAFTD_PARTITION_WORLDS") or 40)
STEPS = 40
LEADER_EPOCH = 7
MARKER, TRANSACTIONAL = 0x30, 0x10


def data_batch(
    random: Random, now_ms: int, producer: int, epoch: int, sequence: int, transactional: bool
) -> bytes:
    count = random.choice((1, 1, 2, 5))
    rows = [(now_ms, b"k", b"v", []) for _ in range(count)]
    return bytes(
        build_records_batch(
            rows, attributes=TRANSACTIONAL if transactional else 0, producer_id=producer,
            producer_epoch=epoch, base_sequence=sequence,
        )
    )  # fmt: skip


def marker(now_ms: int, producer: int, epoch: int, aborts: bool, coordinator_epoch: int) -> bytes:
    key = (0).to_bytes(2, "big") + (0 if aborts else 1).to_bytes(2, "big")
    value = (0).to_bytes(2, "big") + coordinator_epoch.to_bytes(4, "big")
    return bytes(
        build_records_batch(
            [(now_ms, key, value, [])], attributes=MARKER, producer_id=producer, producer_epoch=epoch
        )
    )


class Both:
    """The same steps on both sides."""

    def __init__(self, oracle: LogOracle, random: Random) -> None:
        config = PartitionConfig(
            verifies_transactions=random.random() < 0.4,
            producer_id_expiration_ms=random.choice((86_400_000, 5000)),
        )
        start(oracle, config)
        self.oracle, self.random = oracle, random
        self.place = Place(config)
        self.place.lead()
        self.guards: dict[int, int] = {}
        self.outcomes: dict[str, int] = {}

    @property
    def partition(self) -> Partition:
        return self.place.partition

    def sequence_after(self, producer: int) -> int:
        entry = self.partition.producers.entries.get(producer)
        last = -1 if entry is None else entry.last_sequence
        return 0 if last in (-1, MAX_SEQUENCE) else last + 1

    def step(self) -> None:
        random = self.random
        self.place.now_ms += random.choice((0, 1, 1000, 1000, 6000) if random.random() < 0.1 else (0, 1))
        what = random.choices(
            ("append", "marker", "verify", "watermark", "expire", "truncate"), (60, 14, 8, 8, 4, 2)
        )[0]
        getattr(self, what)()

    def compare(self, operation: str, found: object, answer: dict[str, Any]) -> None:
        """Compare an answer, and the state after it."""
        partition = self.partition
        self.outcomes[answer.get("error", "NONE")] = self.outcomes.get(answer.get("error", "NONE"), 0) + 1
        if isinstance(found, ProduceRefusal):
            assert (found.error.name, found.shows_log_start) == (answer["error"], answer["shows"]), (
                found,
                answer,
            )
        elif isinstance(found, Produced):
            assert answer["error"] == "NONE", (found, answer)
            expected = answer["first"], answer["last"] + 1, answer["append_time"]
            assert (found.base_offset, found.required_offset, found.append_time_ms) == expected
            if found.append is not None:
                assert bytes(found.append.views[0]) == answer["bytes"]
        # Kafka's log in the oracle has no followers, and moves its mark only when it is asked to.
        answer["high_watermark"] = min(answer["high_watermark"], answer["log_end"])
        state = [answer[name] for name in ("log_start", "log_end", "high_watermark", "last_stable")]
        ours = [
            partition.log_start_offset, partition.log_end_offset, partition.high_watermark,
            partition.last_stable_offset,
        ]  # fmt: skip
        assert ours == state, operation
        entries = partition.active_producers()
        assert isinstance(entries, list)
        assert sorted(map(shown, entries)) == sorted(map(tuple, answer["producers"])), operation

    def ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        return self.oracle.ask(operation, now=self.place.now_ms, **arguments)

    def append(self) -> None:
        random, producer = self.random, self.random.choice((1, 2, 3))
        entry = self.partition.producers.entries.get(producer)
        epoch = 0 if entry is None else max(entry.producer_epoch, 0)
        epoch = random.choice((epoch,) * 8 + (epoch + 1, max(epoch - 1, 0)))
        expected = self.sequence_after(producer)
        if entry is not None and entry.batches and random.random() < 0.2:
            old = random.choice(entry.batches)
            sequence = old.first_sequence
        else:
            sequence = random.choice(
                (expected,) * 8 + (0, min(expected + 1, MAX_SEQUENCE), MAX_SEQUENCE - 1, MAX_SEQUENCE)
            )
        is_open = entry is not None and entry.transaction_start >= 0
        transactional = is_open if random.random() < 0.9 else not is_open
        data = data_batch(random, self.place.now_ms, producer, epoch, sequence, transactional)
        guard = producer if random.random() < 0.7 else None
        answer = self.ask(
            "append", bytes=data, version=12, epoch=LEADER_EPOCH, origin="CLIENT", transaction_version=-1,
            **({} if guard is None else {"guard": guard}),
        )  # fmt: skip
        found = self.place.produce(
            data, guard=NO_GUARD if guard is None else self.guards.get(guard, NO_GUARD)
        )
        self.compare("append", found, answer)

    def marker(self) -> None:
        random, producer = self.random, self.random.choice((1, 2, 3))
        entry = self.partition.producers.entries.get(producer)
        version = random.choice((0, 1, 2, 2))
        epoch = 0 if entry is None else max(entry.producer_epoch, 0)
        epoch += random.choice((0, 1, 1, -1)) if version == 2 else random.choice((0, 0, 0, 1, -1))
        coordinator_epoch = random.choice((0, 0, 0, 1, 2))
        data = marker(self.place.now_ms, producer, max(epoch, 0), random.random() < 0.5, coordinator_epoch)
        answer = self.ask(
            "append", bytes=data, version=12, epoch=LEADER_EPOCH, origin="COORDINATOR",
            transaction_version=version,
        )  # fmt: skip
        self.compare("marker", self.place.append_own(data, version), answer)

    def verify(self) -> None:
        random, producer = self.random, self.random.choice((1, 2, 3))
        entry = self.partition.producers.entries.get(producer)
        epoch = 0 if entry is None else max(entry.producer_epoch, 0) + random.choice((0, 0, 1, -1))
        sequence, bump = random.choice((0, self.sequence_after(producer))), random.random() < 0.5
        header = read_batch(data_batch(random, NOW_MS, producer, max(epoch, 0), sequence, True)).header
        answer = self.ask("verify", producer=producer, sequence=sequence, epoch=max(epoch, 0), bump=bump)
        found = self.partition.start_verification(header, self.place.now_ms, supports_epoch_bump=bump)
        if isinstance(found, ErrorCode):
            assert found.name == answer["error"]
        else:
            assert answer["ongoing"] == (found == NO_GUARD), (found, answer)
            self.guards[producer] = found
        answer.setdefault("error", "NONE")
        self.compare("verify", None, self.ask("state"))

    def watermark(self) -> None:
        offset = self.random.randint(0, self.partition.log_end_offset)
        offset = self.random.choice((offset, self.partition.log_end_offset))
        self.partition.move_high_watermark(max(offset, self.partition.high_watermark))
        self.compare("watermark", None, self.ask("watermark", offset=self.partition.high_watermark))

    def expire(self) -> None:
        self.place.now_ms += self.random.choice((0, 4000, 6000))
        answer = self.ask("expire")
        self.partition.expire_producers(self.place.now_ms)
        self.compare("expire", None, answer)

    def truncate(self) -> None:
        if not self.place.batches:
            return
        offset = self.random.choice(self.place.batches).header.base_offset
        if offset < self.partition.high_watermark:
            return
        self.ask("truncate", offset=offset)
        self.place.truncate(offset)
        # Kafka computes the last stable offset anew at the next move of the high watermark.
        self.compare("truncate", None, self.ask("watermark", offset=self.partition.high_watermark))


def shown(entry: ProducerEntry) -> tuple[int, ...]:
    return (
        entry.producer_id, entry.producer_epoch, entry.last_sequence, entry.last_timestamp_ms,
        entry.coordinator_epoch, entry.transaction_start,
    )  # fmt: skip


def test_producers_have_the_answers_of_kafkas_log(oracle: LogOracle, monkeypatch: pytest.MonkeyPatch) -> None:
    # The mark moves by `watermark` alone, as if a follower lagged.
    monkeypatch.setattr(Partition, "advance_high_watermark", lambda self, now_ms: [])
    outcomes: dict[str, int] = {}
    for world in range(WORLDS):
        both = Both(oracle, Random(SEED + world))
        try:
            for _ in range(STEPS):
                both.step()
        except AssertionError as error:
            raise AssertionError(f"world {SEED + world}: {error}") from error
        for name, count in both.outcomes.items():
            outcomes[name] = outcomes.get(name, 0) + count
    print(outcomes)
    wanted = {"NONE", "OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE"}
    assert WORLDS < 20 or wanted | {"TRANSACTION_COORDINATOR_FENCED"} <= outcomes.keys()
