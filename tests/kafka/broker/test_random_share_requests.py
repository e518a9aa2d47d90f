"""Random fetches and acknowledgements of members of share groups, to two whole Kafkas (KIP-932): every answer
is the same, whatever transactions write and operators delete meanwhile.

Another seed, or more steps: ``KRAFTD_SHARES_SEED``, ``KRAFTD_SHARES_STEPS``.
"""

from __future__ import annotations

import os
import time
from random import Random
from typing import Any

import pytest

from kraftd.messages import share_acknowledge_request as acknowledging
from kraftd.messages import share_fetch_request as fetching
from kraftd.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kraftd.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.messages.initialize_share_group_state_request import (
    InitializeShareGroupStateRequest,
    InitializeStateData,
    PartitionData,
)
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kraftd.partition.share.states import ACCEPT, GAP, REJECT, RELEASE, RENEW
from kraftd.types import uuid_text
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from kraftd.wire.records import build_records_batch
from testkit.process import wait_until
from testkit.random_batches import NOW_MS
from tests.kafka.broker.pair import BrokerPair
from tests.kafka.differential.difference import difference

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]

SEED = int(os.environ.get("KRAFTD_SHARES_SEED", "1"))
STEPS = int(os.environ.get("KRAFTD_SHARES_STEPS", "400"))
# Which of several partitions a fetch reads first follows a hash order in Kafka: then members ask for all.
ONE, SEVERAL = 1, 3
ABSENT = 9  # a partition that the topic does not have
MEMBERS = ("a", "b", "c")
SHARE = 2
GROUP_RESOURCE = 32
LOCK_MS = 3_600_000  # the most that there may be: no lock ends by itself
PRODUCERS = (901, 902)
TRANSACTIONAL = 0x10
LOST = (ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH)
TYPES = (ACCEPT, ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT, GAP)


class Drawn:
    """Draws requests of three members, mostly as a client would send them."""

    def __init__(self, random: Random, isolation: str, name: str, partitions: int) -> None:
        self.random = random
        self.partitions = partitions
        self.isolation = isolation
        self.group = self.topic = name
        self.topic_id = b""
        self.epochs = dict.fromkeys(MEMBERS, 0)
        self.held: dict[str, list[tuple[int, int, int]]] = {member: [] for member in MEMBERS}
        self.sequences = dict.fromkeys(PRODUCERS, 0)
        self.open: set[int] = set()  # producers with a transaction

    def draw(self) -> tuple[Message, int]:
        kinds = (self.fetch, self.acknowledge, self.produce, self.write, self.end, self.delete)
        return self.random.choices(kinds, (120, 60, 30, 20, 10, 1))[0]()

    def rarely(self, share: float = 0.05) -> bool:
        return self.random.random() < share

    def produce(self) -> tuple[Message, int]:
        index, count = self.random.randrange(self.partitions), self.random.choice([1, 1, 2, 5, 20])
        rows = [(NOW_MS + number, None, b"v", ()) for number in range(count)]
        return self.produced(index, bytes(build_records_batch(rows))), 9

    def produced(self, index: int, batch: bytes, transactional_id: str | None = None) -> ProduceRequest:
        rows = [PartitionProduceData(index, batch)]
        return ProduceRequest(transactional_id, 1, 9_000, [TopicProduceData(self.topic, partition_data=rows)])

    def write(self) -> tuple[Message, int]:
        """Records in a transaction, which begins with the first of them."""
        one, count = self.random.choice(PRODUCERS), self.random.choice([1, 2, 4])
        batch = build_records_batch(
            [(NOW_MS + number, None, b"in a transaction", ()) for number in range(count)],
            attributes=TRANSACTIONAL,
            producer_id=one,
            producer_epoch=0,
            base_sequence=self.sequences[one],
        )
        self.sequences[one] += count
        self.open.add(one)
        return self.produced(0, bytes(batch), f"transactional-{one}"), 9

    def end(self) -> tuple[Message, int]:
        """The marker of a transaction's end, more often of an aborted one."""
        if not self.open:
            return self.fetch()
        one = self.random.choice(sorted(self.open))
        self.open.remove(one)
        topics = [WritableTxnMarkerTopic(self.topic, (0,))]
        return WriteTxnMarkersRequest([WritableTxnMarker(one, 0, self.rarely(0.4), topics, 0)]), 1

    def delete(self) -> tuple[Message, int]:
        """Records are deleted, some of them acquired ones."""
        held = [first for rows in self.held.values() for _, first, _ in rows]
        offset = self.random.choice(held or [0])
        rows = [DeleteRecordsPartition(0, offset)]
        return DeleteRecordsRequest([DeleteRecordsTopic(self.topic, rows)], 9_000), 2

    def epoch(self, member: str) -> int:
        """The epoch of a member's next request; now and then a wrong one, or the last or first one."""
        epoch = self.epochs[member]
        if self.rarely():
            return self.random.choice([epoch + 1, max(0, epoch - 1)])
        if self.rarely(0.04):
            self.epochs[member] = 0
            self.held[member] = []
            return -1
        self.epochs[member] = epoch + 1
        return epoch

    def batches(self, member: str, kind: Any, index: int, types: tuple[int, ...]) -> list[Any]:
        held = [one for one in self.held[member] if one[0] == index]
        self.random.shuffle(held)
        found = []
        for _, first, last in sorted(held[: self.random.randrange(3)], key=lambda one: one[1]):
            self.held[member].remove((index, first, last))
            if last > first and self.rarely(0.3):
                count = last - first + 1
                found.append(kind(first, last, tuple(self.random.choice(types) for _ in range(count))))
            elif last > first and self.rarely(0.3):
                found.append(kind(first, self.random.randrange(first, last), (self.random.choice(types),)))
            else:
                found.append(kind(first, last, (self.random.choice(types),)))
        if self.rarely():
            first = self.random.randrange(60)
            found.append(
                kind(
                    first,
                    first + self.random.choice([-1, 0, 3]),
                    self.random.choice([(1,), (5,), (), (1, 2), (4,)]),
                )
            )
        return found

    def fetch(self) -> tuple[Message, int]:
        member = self.random.choice(MEMBERS)
        epoch = self.epoch(member)
        version = self.random.choice([1, 2, 2])
        rows = []
        for index in range(self.partitions):
            is_first = epoch in (0, -1)
            batches = (
                []
                if is_first and not self.rarely()
                else self.batches(member, fetching.AcknowledgementBatch, index, TYPES)
            )
            if is_first or batches:
                rows.append(fetching.FetchPartition(index, acknowledgement_batches=batches))
        if self.partitions > ONE:
            rows += self.odd_rows(is_first, rows)
        topics = [fetching.FetchTopic(self.topic_id, rows)] if rows else []
        releases = any(
            RELEASE in one.acknowledge_types for row in rows for one in row.acknowledgement_batches
        )
        choice = self.random.choice
        request = fetching.ShareFetchRequest(
            choice([self.group] * 40 + [None]),
            choice([member] * 40 + [""]),
            epoch,
            max_bytes=choice([1 << 20, 1 << 20, 300, 90, 1]),
            # When what is released can be acquired depends on the share coordinator, for which only answers
            # without records wait.
            max_records=0 if releases else choice([500, 500, 3, 1, 10]),
            batch_size=choice([500, 3, 1]),
            share_acquire_mode=choice([0] * 20 + [1] * 10 + [2, -1]) if version > 1 and not releases else 0,
            topics=topics,
        )
        if self.partitions > ONE:
            self.make_odd(request)
        return request, version

    def odd_rows(self, is_first: bool, rows: list[Any]) -> list[Any]:
        """Partitions that are named twice, that a session gets later, or that there are not."""
        row, odd = fetching.FetchPartition, []
        if self.rarely(0.1):
            odd.append(row(ABSENT))
        if self.rarely(0.1) and rows:
            odd.append(row(rows[0].partition_index))
        if self.rarely(0.2) and not is_first:
            odd.append(row(self.random.randrange(self.partitions)))
        return odd

    def make_odd(self, request: fetching.ShareFetchRequest) -> None:
        """Give a request limits that no client has, and partitions to forget."""
        choice = self.random.choice
        request.max_bytes = choice([1 << 20] * 12 + [0, -1])
        request.min_bytes = choice([1] * 6 + [0, -1])
        request.max_wait_ms = choice([500, 0, 100])
        request.batch_size = choice([500, 3, 1, 0, -2])
        if request.max_records:
            request.max_records = choice([500] * 12 + [-1])
        if request.share_session_epoch > 0 and self.rarely(0.1):
            indexes = (self.random.randrange(self.partitions),)
            request.forgotten_topics_data = [fetching.ForgottenTopic(self.topic_id, indexes)]

    def acknowledge(self) -> tuple[Message, int]:
        member = self.random.choice(MEMBERS)
        version = self.random.choice([1, 2, 2])
        is_renewal = version > 1 and self.rarely(0.2)
        types = (RENEW, RENEW, ACCEPT) if is_renewal else TYPES
        epoch = self.epoch(member)
        indexes = [index for index in (*range(self.partitions), 7) if self.rarely(0.6 if index < 7 else 0.03)]
        rows = [
            acknowledging.AcknowledgePartition(
                index, self.batches(member, acknowledging.AcknowledgementBatch, index, types)
            )
            for index in indexes
        ]
        topics = [acknowledging.AcknowledgeTopic(self.topic_id, rows)] if rows else []
        return acknowledging.ShareAcknowledgeRequest(
            self.group, member, epoch, is_renewal, topics=topics
        ), version

    def learn(self, request: Any, answer: Any) -> None:
        """Note what a member has acquired, and that its session is another one or gone."""
        member = getattr(request, "member_id", None)
        if member not in MEMBERS or isinstance(answer, str):
            return
        is_first = request.share_session_epoch == 0
        if answer.error_code in LOST or (answer.error_code and is_first):
            self.epochs[member] = 0
        if isinstance(request, fetching.ShareFetchRequest):
            for topic in answer.responses:
                for row in topic.partitions:
                    for one in row.acquired_records:
                        self.held[member].append((row.partition_index, one.first_offset, one.last_offset))


def begin(pair: BrokerPair, drawn: Drawn) -> None:
    """Make the topic and its share partitions."""
    group = drawn.group
    configs = {"share.isolation.level": drawn.isolation, "share.record.lock.duration.ms": LOCK_MS}
    rows = [AlterableConfig(name, 0, str(value)) for name, value in configs.items()]
    resource = AlterConfigsResource(GROUP_RESOURCE, group, rows)
    pair.ask(IncrementalAlterConfigsRequest([resource]), 1)
    # Markers have the time of today, records another: one segment for both, because Kafka reads to its end.
    one_segment = [CreatableTopicConfig("segment.ms", str(2**62))]
    pair.ask(CreateTopicsRequest([CreatableTopic(drawn.topic, drawn.partitions, 1, configs=one_segment)]), 7)
    pair.settle()
    topic_id = drawn.topic_id = pair.topic_ids[drawn.topic]

    def is_initialized() -> bool:
        rows = [PartitionData(index, 0, 0) for index in range(drawn.partitions)]
        for side in pair.sides:
            own = side.theirs[topic_id]
            keys = tuple(f"{group}:{uuid_text(own)}:{index}" for index in range(drawn.partitions))  # type: ignore[arg-type]
            found: Any = side.ask(FindCoordinatorRequest(key_type=SHARE, coordinator_keys=keys), 6)
            request = InitializeShareGroupStateRequest(group, [InitializeStateData(topic_id, rows)])
            answer: Any = side.ask(request, 0)
            if any(row.error_code for row in found.coordinators):
                return False
            if any(row.error_code for one in answer.results for row in one.partitions):
                return False
        return True

    wait_until(is_initialized, "both keep the state of the group", 60)
    partitions = [fetching.FetchPartition(index) for index in range(drawn.partitions)]
    for member, epoch in (("warm", 0), ("warm", 1), ("warm", -1)):
        request = fetching.ShareFetchRequest(
            group, member, epoch, 1_000, 1, 1 << 20, 500, 500,
            topics=[fetching.FetchTopic(topic_id, partitions)] if epoch == 0 else [],
        )  # fmt: skip
        pair.ask(request, 2)


def play(pair: BrokerPair, seed: int, isolation: str, partitions: int, steps: int) -> tuple[set[int], int]:
    """Raise where an answer differs; return the error codes of fetches and the count of batches acquired."""
    drawn = Drawn(Random(seed), isolation, f"{partitions}-{isolation}-{seed}", partitions)
    begin(pair, drawn)
    errors: set[int] = set()
    acquired = 0
    for step in range(steps):
        request, version = drawn.draw()
        answers = pair.ask(request, version)
        kafka, kraftd = pair.views(request, version, answers)
        assert kafka == kraftd, f"seed {seed} step {step}: {request}\n{difference(kafka, kraftd)}"
        drawn.learn(request, answers[0])
        if getattr(request, "share_session_epoch", 0) == -1:
            time.sleep(0.1)  # what the member held is released after the answer
        if isinstance(request, fetching.ShareFetchRequest) and not isinstance(answers[0], str):
            answer: Any = answers[0]
            errors.add(answer.error_code)
            acquired += sum(
                len(row.acquired_records) for topic in answer.responses for row in topic.partitions
            )
    return errors, acquired


@pytest.mark.parametrize("partitions", [ONE, SEVERAL])
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_random_members_of_share_groups_are_answered_alike__kip932(
    pair: BrokerPair, isolation: str, partitions: int
) -> None:
    errors, acquired = play(pair, SEED, isolation, partitions, STEPS)
    assert acquired > STEPS // 20
    assert len(errors) > 2
