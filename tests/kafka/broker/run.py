"""Plays random requests on a pair of whole Kafkas, and notes where the answers differ."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.api_versions_response import ApiVersion
from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.fetch_request import FetchRequest
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.wire.api import ApiKey, valid_versions
from kraftd.wire.codec import encode_bytes
from kraftd.wire.errors import EncodeError
from kraftd.wire.message import Message
from kraftd.wire.table import api_key
from testkit.process import wait_until
from tests.kafka.broker.cluster_state import TOPICS, Session, World
from tests.kafka.broker.data_requests import DataRequests
from tests.kafka.broker.divergences import is_on_purpose
from tests.kafka.broker.other_requests import OtherRequests
from tests.kafka.broker.pair import NO_RIGHTS, SOME_RIGHTS, SUPER, BrokerPair, Side
from tests.kafka.differential.difference import difference

# They change what later answers depend on, and Kafka applies them after its answer.
CHANGES = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_ACLS,
        ApiKey.METADATA,  # may create topics
    }
)
WRITES = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.LEAVE_GROUP,
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_DELETE,
        ApiKey.DELETE_GROUPS,
        ApiKey.DELETE_RECORDS,
        *CHANGES,
    }
) - {ApiKey.METADATA}
WAIT_S = 3
# What alice may do: resource type, name, pattern, operation.
RIGHTS = (
    (2, "plain", 3, 3), (2, "plain", 3, 4), (2, "append", 3, 3), (2, "wide", 3, 8), (2, "limits", 3, 4),
    (2, "codec", 4, 3), (2, "compact", 3, 6), (2, "compact", 3, 10), (3, "", 4, 8),
    (4, "kafka-cluster", 3, 12),
)  # fmt: skip


def _versions(row: ApiVersion) -> tuple[int, int]:
    """The versions that Kafka serves and that can be encoded."""
    known = valid_versions(row.api_key)  # Kafka lists older ones of Produce for librdkafka
    return max(row.min_version, known[0]), min(row.max_version, known[1])


class Run:
    """One run on a pair. Differences are passed to `report`, and kept."""

    def __init__(self, pair: BrokerPair, report: Callable[[str], None] = lambda _: None) -> None:
        self.pair, self.report = pair, report
        versions: Any = pair.sides[0].ask(ApiVersionsRequest("test", "1"), 4)
        self.world = World({row.api_key: _versions(row) for row in versions.api_keys})
        self.differences: list[str] = []
        self.errors: Counter[int] = Counter()
        self.apis: Counter[str] = Counter()
        self.steps = 0
        self._begin()

    def __repr__(self) -> str:
        return f"<Run of {self.steps} steps, {len(self.differences)} differences>"

    def _begin(self) -> None:
        rows = [
            CreatableTopic(name, 2, 1, [], [CreatableTopicConfig(*pair) for pair in configs.items()])
            for name, configs in TOPICS.items()
        ]
        self.pair.ask(CreateTopicsRequest(rows), 7)
        acls = [
            AclCreation(*right[:3], f"User:{SOME_RIGHTS}", "*", right[3], 3) for right in RIGHTS if right[1]
        ]
        self.pair.ask(CreateAclsRequest(acls), 3)
        names = tuple("abcdefg")

        def is_coordinator() -> bool:
            found: list[Any] = self.pair.ask(FindCoordinatorRequest("", 0, names), 4)
            groups: list[Any] = self.pair.ask(DescribeGroupsRequest(names), 5)
            return not any(
                row.error_code
                for row in [row for one in found for row in one.coordinators]
                + [row for one in groups for row in one.groups]
            )

        wait_until(is_coordinator, "both coordinate groups", 60)
        for side in self.pair.sides:
            wait_until(partial(self._has_producer_ids, side), "producer ids", 30)
        self.pair.settle()

    @staticmethod
    def _has_producer_ids(side: Side) -> bool:
        """Return whether it gives a producer id; Kafka has none before its first request for a block."""
        answer: Any = side.ask(InitProducerIdRequest(None, 1000), 4)
        return not answer.error_code

    def play(self, seed: int, steps: int) -> None:
        """Random requests from a seed."""
        random = Random(seed)
        world = self.world
        world.prefix = f"s{seed}-"
        world.members = {}
        world.topic_ids = self.pair.topic_ids
        sources = (DataRequests(random, world), OtherRequests(random, world))
        for step in range(steps):
            source = sources[random.random() < 0.45]
            kinds = list(source.kinds)
            request, version = random.choices(kinds, list(source.kinds.values()))[0]()
            principal = random.choices((SUPER, SOME_RIGHTS, NO_RIGHTS), (8, 2, 1))[0]
            try:
                encode_bytes(request, version)
            except EncodeError:
                continue
            self.ask(request, version, principal, f"seed {seed} step {step}")

    def ask(self, request: Message, version: int, principal: str, place: str) -> None:
        """Compare both answers to a request."""
        key = ApiKey(api_key(request))
        self.steps += 1
        self.apis[key.name] += 1
        answers = self._ask(request, version, principal)
        kafka, kraftd = self.pair.views(request, version, answers)
        if kafka != kraftd and key not in WRITES and not self._is_session(request):
            end = time.monotonic() + WAIT_S
            while kafka != kraftd and time.monotonic() < end:
                time.sleep(0.05)
                answers = self._ask(request, version, principal)
                kafka, kraftd = self.pair.views(request, version, answers)
        for code in set(map(int, re.findall(r"'errorCode': (-?\d+)", repr(kafka)))):
            self.errors[code] += 1
        if kafka != kraftd and not is_on_purpose(self.pair.sides[1], request, kafka, kraftd):
            both = "\n".join(repr(one)[:3000] for one in (kafka, kraftd))
            text = f"{place} {principal}: v{version} {request!r}\n{both}\n{difference(kafka, kraftd)}"
            self.differences.append(text)
            self.report(text)
        self._remember(request, version, answers)
        if key in CHANGES:
            self.pair.settle()
            self.world.topic_ids.clear()
            self.world.topic_ids.update(self.pair.topic_ids)

    def _ask(self, request: Message, version: int, principal: str) -> list[Message | str]:
        if not isinstance(request, FetchRequest) or request.session_id not in self.world.sessions:
            answers = self.pair.ask(request, version, principal)
        else:
            answers = []
            number = request.session_id
            for side in self.pair.sides:
                request.session_id = side.sessions[number]
                answers.append(side.ask(request, version, principal))
            request.session_id = number
        self.pair.learn(answers, ApiKey(api_key(request)))
        return answers

    @staticmethod
    def _is_session(request: Message) -> bool:
        return isinstance(request, FetchRequest) and request.session_epoch >= 0

    def _remember(self, request: Message, version: int, answers: list[Message | str]) -> None:
        if any(isinstance(answer, str) for answer in answers):
            return
        kafka: Any = answers[0]
        key = api_key(request)
        if key == ApiKey.INIT_PRODUCER_ID and not kafka.error_code:
            self.world.producers[kafka.producer_id] = 0
        elif key == ApiKey.JOIN_GROUP and kafka.member_id:
            self.world.members[request.group_id] = kafka.member_id, kafka.generation_id  # type: ignore[attr-defined]
        elif isinstance(request, FetchRequest):
            self._remember_session(request, version, answers)

    def _remember_session(self, request: FetchRequest, version: int, answers: list[Any]) -> None:
        sessions = self.world.sessions
        number = request.session_id
        if number in sessions:
            if request.session_epoch == -1 or any(one.error_code for one in answers):
                del sessions[number]
            else:
                sessions[number].epoch += 1
        elif all(one.session_id for one in answers):
            number = 1_000_000 + self.steps
            for side, answer in zip(self.pair.sides, answers, strict=True):
                side.sessions[number] = answer.session_id
            sessions[number] = Session(version, 1)

    def summary(self) -> str:
        """What was asked and found."""
        return (
            f"{self.steps:,} requests of {len(self.apis)} APIs, {len(self.errors)} error codes: "
            f"{len(self.differences)} differences"
        )
