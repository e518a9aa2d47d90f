"""Kafka's transaction coordinator and kraftd's take the same random steps, and have the same state after all.

``RandomTransactions`` draws the steps: requests of producers, right ones and stale ones; records and markers
that are written late, in part or not; epochs that are nearly used up; other levels of transaction.version;
other leaders of the partition, after which its log is read again.

Other seeds, or more: ``KRAFTD_TRANSACTIONS_SEED``, ``KRAFTD_TRANSACTIONS_WORLDS``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.groups.call import Call
from kraftd.groups.effects import AppendRecords, ReadRecords, Respond, ScheduleLoading
from kraftd.groups.events import (
    AppendFailed,
    HighWatermarkAdvanced,
    LoadingDue,
    PartitionElected,
    PartitionResigned,
    RecordsAppended,
    RecordsRead,
)
from kraftd.groups.records import KeyAndValue
from kraftd.groups.transactions.config import TransactionConfig
from kraftd.groups.transactions.coordinator import TransactionCoordinator
from kraftd.groups.transactions.effects import (
    MarkersAnswered,
    ProducerIdTaken,
    SendMarkers,
    TakeProducerId,
)
from kraftd.groups.transactions.partitions import Added
from kraftd.groups.transactions.transaction import EPOCH_BUMPS, TransactionalId
from kraftd.messages.end_txn_request import EndTxnRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.wire.error_code import ErrorCode, error_name
from testkit.keyed_batches import keyed_batch
from tests.groups.desk import KnownTopics
from tests.kafkas_tests.agent import Columns, lines_of

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

SEED = int(os.environ.get("KRAFTD_TRANSACTIONS_SEED", "1"))
WORLDS = int(os.environ.get("KRAFTD_TRANSACTIONS_WORLDS", "40"))
AT_THE_LAST_EPOCH = 800_048  # a commit under the epoch that only fences
JAVA = Path(__file__).with_name("java") / "RandomTransactions.java"
PROGRAM = "kafka.coordinator.transaction.RandomTransactions"
EXPIRATION_MS = 1_000_000
NEVER_MS = 1 << 60
INIT, END_V1, END_V2 = 6, 4, 5


class World:
    """kraftd's coordinator of one partition, whose records are written when a step says so."""

    def __init__(self, level: str, has_two_phases: str) -> None:
        self.config = TransactionConfig(
            transaction_state_log_num_partitions=1,
            transactional_id_expiration_ms=EXPIRATION_MS,
            transaction_abort_timed_out_transaction_cleanup_interval_ms=NEVER_MS,
            transaction_remove_expired_transaction_cleanup_interval_ms=NEVER_MS,
            transaction_two_phase_commit_enable=has_two_phases == "true",
        )
        self.now_ms = 0
        self.coordinator = TransactionCoordinator(self.config, KnownTopics(t=4), lambda _: 0)
        self.coordinator.partition_count = 1
        self.coordinator.transaction_version = int(level)
        self.answers: list[str] = []
        self.producer_ids: list[int] = []
        self.has_ids = True
        self.markers: dict[str, SendMarkers] = {}
        self.append: AppendRecords | None = None  # on its way
        self.log: list[KeyAndValue] = []
        self.is_elected = False

    def step(self, name: str, number: str, now_ms: str, arguments: Columns) -> None:
        """Take a step, up to what it has written."""
        self.now_ms = int(now_ms)
        if not self.is_elected:
            self.is_elected = True
            self.elect("", "1")
        self.answers.clear()
        STEPS[name](self, number, *arguments)
        self.perform(self.coordinator.flush(self.now_ms))

    def take(self, event: Event) -> None:
        self.perform(self.coordinator.step(event, self.now_ms))

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Respond):
                self.answered(effect.token, effect.response)
            elif isinstance(effect, AppendRecords):
                assert self.append is None
                self.append = effect
            elif isinstance(effect, TakeProducerId):
                found = self.producer_ids.pop(0) if self.has_ids else None
                self.take(ProducerIdTaken(effect.number, found))
            elif isinstance(effect, SendMarkers):
                self.markers[effect.transactional_id] = effect
            elif isinstance(effect, ReadRecords):
                data = keyed_batch(self.log, 0, 1, self.now_ms)
                self.take(RecordsRead(0, effect.leader_epoch, data, len(self.log)))
            elif isinstance(effect, ScheduleLoading):
                self.take(LoadingDue(0, effect.leader_epoch))

    def answered(self, token: Any, response: Any) -> None:
        error = error_name(response.error_code)
        self.answers.append(f"{token} {error} {response.producer_id} {response.producer_epoch}")

    def answer_of(self, number: str) -> Callable[[ErrorCode], None]:
        return lambda error: self.answers.append(f"{number} {error.name} -1 -1")

    # --- steps ---

    def init(self, number: str, id: str, timeout_ms: str, *rest: str) -> None:
        producer_id, epoch, has_two_phases, keeps = rest
        request = InitProducerIdRequest(
            id, int(timeout_ms), int(producer_id), int(epoch), has_two_phases == "true", keeps == "true"
        )
        self.ask(number, request, INIT)

    def ask(self, number: str, request: Any, version: int) -> None:
        call = Call(number, version, "client", "/127.0.0.1")
        self.perform(self.coordinator.handle(call, request, self.now_ms))

    def add(self, number: str, id: str, producer_id: str, epoch: str, places: str, version: str) -> None:
        added = Added(id, int(producer_id), int(epoch), placed(places), int(version))
        self.coordinator.add(added, self.answer_of(number), self.now_ms)
        self.perform(self.coordinator.take_effects())

    def end(self, number: str, id: str, producer_id: str, epoch: str, commits: str, version: str) -> None:
        request = EndTxnRequest(id, int(producer_id), int(epoch), commits == "true")
        self.ask(number, request, END_V2 if int(version) == EPOCH_BUMPS else END_V1)

    def verify(self, number: str, id: str, producer_id: str, epoch: str, places: str) -> None:
        found = self.coordinator.verify(
            Added(id, int(producer_id), int(epoch), placed(places), 0), self.now_ms
        )
        rows = sorted((index, int(error)) for (_, index), error in found.items())
        self.answers.append(f"{number} {','.join(f'{index}:{error}' for index, error in rows)} -1 -1")

    def settle(self, _: str, error: str) -> None:
        """What is on its way is written up to now, or fails."""
        if error != "NONE":
            failed, self.append = self.append, None
            assert failed is not None
            self.take(AppendFailed(0, failed.batch_id, ErrorCode[error], None))
            return
        while (written := self.append) is not None:
            self.append = None
            assert written.base_offset == len(self.log)
            self.log += written.records
            self.take(RecordsAppended(0, written.batch_id))
        self.take(HighWatermarkAdvanced(0, len(self.log)))

    def resign(self, _: str, __: str) -> None:
        self.append = None
        self.markers.clear()
        self.take(PartitionResigned(0))

    def elect(self, _: str, epoch: str) -> None:
        self.take(PartitionElected(0, int(epoch), 0, len(self.log)))

    def written(self, _: str, id: str, places: str) -> None:
        sent = self.markers[id]
        results = dict.fromkeys(placed(places), ErrorCode.NONE)
        whose = sent.producer_id, sent.producer_epoch
        self.take(MarkersAnswered(0, sent.coordinator_epoch, id, *whose, results))

    def retry(self, _: str, __: str) -> None:
        self.perform(self.coordinator.tick(self.now_ms))

    def late(self, _: str, __: str) -> None:
        self.do(lambda shard: shard.write(shard.abort_late))

    def expire(self, _: str, __: str) -> None:
        self.do(lambda shard: shard.write(shard.expire))

    def do(self, act: Callable[[Any], None]) -> None:
        for shard in self.coordinator.active(self.now_ms):
            act(shard)
        self.perform(self.coordinator.take_effects())

    def level(self, _: str, level: str) -> None:
        self.coordinator.transaction_version = int(level)

    def ids(self, _: str, has_ids: str) -> None:
        self.has_ids = has_ids == "true"

    def epoch(self, _: str, id: str, epoch: str) -> None:
        entry = self.coordinator.shards[0].ids[id]
        entry.current = replace(entry.current, producer_epoch=int(epoch))

    # --- what it has in memory ---

    def states(self) -> list[str]:
        shard = self.coordinator.shards.get(0)
        return [] if shard is None else [state_of(entry) for _, entry in sorted(shard.ids.items())]


STEPS: dict[str, Callable[..., None]] = {
    "add": World.add,
    "elect": World.elect,
    "end": World.end,
    "epoch": World.epoch,
    "expire": World.expire,
    "ids": World.ids,
    "init": World.init,
    "late": World.late,
    "level": World.level,
    "markers": World.written,
    "pass": World.retry,
    "resign": World.resign,
    "retry": World.retry,
    "settle": World.settle,
    "verify": World.verify,
}


def placed(text: str) -> frozenset[tuple[str, int]]:
    return frozenset(("t", int(index)) for index in text.split(",") if index)


def state_of(entry: TransactionalId) -> str:
    one = entry.current
    pending = "none" if entry.pending is None else entry.pending.text
    places = ",".join(str(index) for _, index in sorted(one.partitions))
    return " ".join(
        map(
            str,
            (
                entry.id, one.producer_id, one.previous_producer_id, one.next_producer_id, one.producer_epoch,
                one.last_producer_epoch, one.timeout_ms, one.state.text, pending, places, one.start_ms,
                one.last_update_ms, one.client_version, str(entry.has_failed_fence).lower(),
            ),
        )
    )  # fmt: skip


class Comparison:
    """Kafka's lines beside what kraftd does: how much was compared, and where a world differs first."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.differences: list[str] = []
        self._seed = ""
        self._world: World | None = None
        self._told: list[Columns] = []
        self._past: list[str] = []

    def take(self, kind: str, columns: Columns) -> None:
        """Take one line."""
        if kind == "world":
            self._seed, self._world, self._past = columns[0], None, []
        elif kind == "config":
            self._world = World(*columns)
        elif kind == "op":
            self._told = [[kind, *columns]]
        elif kind != "done":
            self._told.append([kind, *columns])
        elif self._world is not None:
            self._compare(self._world)

    def _compare(self, world: World) -> None:
        (_, name, number, now_ms, *arguments), *told = self._told
        world.producer_ids = [int(row[1]) for row in told if row[0] == "pid"]
        try:
            world.step(name, number, now_ms, arguments)
            own = [sorted(world.answers), world.states()]
            if world.producer_ids:
                own.append([f"not taken: {world.producer_ids}"])
        except Exception as error:
            own = [[repr(error)]]
        kafkas = [sorted(" ".join(row[1:]) for row in told if row[0] == "answer")]
        kafkas.append([" ".join(row[1:]) for row in told if row[0] == "state"])
        self.counts[name] += 1
        self._past.append(f"{name} {number} at {now_ms} {arguments} {kafkas[0]}")
        if own != kafkas:
            self._world = None  # what follows would differ, too
            past = "\n    ".join(self._past[-12:])
            self.differences.append(f"seed {self._seed}\n    {past}\n  kraftd {own}\n  Kafka  {kafkas}")


def compared_with_kafka(seeds: Iterable[int]) -> Comparison:
    compared = Comparison()
    for kind, *columns in lines_of(PROGRAM, [*map(str, seeds)], JAVA):
        compared.take(kind, columns)
    return compared


def test_random_transactions_are_those_of_kafkas_coordinator__kip890() -> None:
    compared = compared_with_kafka([*range(SEED, SEED + WORLDS), AT_THE_LAST_EPOCH])
    assert not compared.differences, "\n".join(compared.differences[:3])
    assert compared.counts.total() >= 100 * WORLDS, compared.counts
