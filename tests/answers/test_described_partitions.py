"""DescribeTopicPartitions (KIP-966): pages, cursors and refusals, as a broker has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.acl import AclOperation
from kraftd.answers.apis import api_75_describe_topic_partitions as api
from kraftd.ground import pace as slices
from kraftd.messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kraftd.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponse
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.metadata_topic_node.clients import ClientHarness
from tests.metadata_topic_node.test_client_authorization import TOPIC, allow, grant

UNKNOWN, DENIED = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.fixture
def authorizer() -> StandardAuthorizer:
    one = StandardAuthorizer(AuthorizerSettings())
    grant(one, allow(TOPIC, "*", AclOperation.DESCRIBE))
    return one


@pytest.fixture
def harness(tmp_path: Path, authorizer: StandardAuthorizer) -> ClientHarness:
    """A leader with broker 1 and the topics a, b and c of two partitions each."""
    leader = ClientHarness(tmp_path, authorizer)
    leader.start()
    leader.unfenced(1)
    leader.create("a", "b", "c", partitions=2)
    return leader


def ask(
    harness: ClientHarness, *names: str, limit: int = 2_000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    at = None if cursor is None else Cursor(*cursor)
    request = DescribeTopicPartitionsRequest([TopicRequest(one) for one in names], limit, at)
    answer: DescribeTopicPartitionsResponse = harness.client_ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
    return answer


def described(answer: DescribeTopicPartitionsResponse) -> list[tuple[str | None, int, list[int]]]:
    return [(one.name, one.error_code, [p.partition_index for p in one.partitions]) for one in answer.topics]


def next_cursor(answer: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    one = answer.next_cursor
    return None if one is None else (one.topic_name, one.partition_index)


def test_cursor_must_be_at_a_topic_that_the_request_names(harness: ClientHarness) -> None:
    refused = ErrorCode.INVALID_REQUEST
    assert described(ask(harness, "a", "c", cursor=("b", 0))) == [("a", refused, []), ("c", refused, [])]
    assert described(ask(harness, "a", "c", cursor=("c", -1))) == [("a", refused, []), ("c", refused, [])]
    assert described(ask(harness, "a", "c", cursor=("c", 1))) == [("c", 0, [1])]
    assert described(ask(harness, cursor=("bb", 1))) == [("c", 0, [0, 1])]


def test_page_ends_within_a_topic_or_before_one(harness: ClientHarness) -> None:
    within = ask(harness, limit=3)
    assert described(within) == [("a", 0, [0, 1]), ("b", 0, [0])] and next_cursor(within) == ("b", 1)
    before = ask(harness, "c", "b", "a", "d", limit=6)
    assert described(before) == [(name, 0, [0, 1]) for name in "abc"] and next_cursor(before) == ("d", 0)
    last = ask(harness, "c", "b", "a", "d", cursor=next_cursor(before))
    assert described(last) == [("d", UNKNOWN, [])] and next_cursor(last) is None


def test_a_page_has_at_most_2000_partitions_whatever_is_asked_for__kip966(harness: ClientHarness) -> None:
    harness.create("wide", partitions=2_001)
    page = ask(harness, "wide", limit=1_000_000)
    assert len(page.topics[0].partitions) == 2_000 and next_cursor(page) == ("wide", 2_000)


def test_the_nodes_limit_of_a_page_holds_beside_the_clients__kip966(harness: ClientHarness) -> None:
    harness.clients.settings = harness.clients.settings._replace(described_partitions=3)
    assert next_cursor(ask(harness, limit=2_000)) == ("b", 1)
    assert next_cursor(ask(harness, limit=1)) == ("a", 1)
    assert next_cursor(ask(harness, limit=-1)) == ("a", 1)


def test_topics_that_may_not_be_described_come_last_whatever_the_limit(
    harness: ClientHarness, authorizer: StandardAuthorizer
) -> None:
    grant(authorizer, allow(TOPIC, "b", AclOperation.DESCRIBE), allow(TOPIC, "x", AclOperation.DESCRIBE))
    answer = ask(harness, "a", "b", "c", "x", limit=1)
    assert described(answer) == [("b", 0, [0]), ("a", DENIED, []), ("c", DENIED, [])]
    assert next_cursor(answer) == ("b", 1)
    assert described(ask(harness)) == [("b", 0, [0, 1])]


def test_unknown_topics_have_authorized_operations_too__kip430(harness: ClientHarness) -> None:
    existing, missing = ask(harness, "a", "d").topics
    assert existing.topic_authorized_operations == missing.topic_authorized_operations > 0


def test_very_many_topics_are_described_in_several_callbacks(
    harness: ClientHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "NAMES_PER_CALLBACK", 10)
    monkeypatch.setattr(slices, "MAX_SLICE_WORK_US", 750)
    names = [f"n{number:02}" for number in range(50)]
    harness.create(*names)
    before = harness.callbacks_run
    assert [name for name, _, _ in described(ask(harness))] == ["a", "b", "c", *names]
    assert harness.callbacks_run - before == 5 + 8  # nine decisions and a partition take 136 µs


def test_topic_that_is_requested_twice_is_answered_once(harness: ClientHarness) -> None:
    topics = [MetadataRequestTopic(name=name) for name in ("a", "b", "a", "nope", "nope")]
    answer = harness.client_ask(ApiKey.METADATA, 12, MetadataRequest(topics))
    assert [one.name for one in answer.topics] == ["a", "b", "nope"]


def test_eligible_and_last_known_replicas_are_described__kip966(harness: ClientHarness) -> None:
    image = harness.node.image
    change = PartitionChangeRecord(
        1, image.topic_names()["a"], eligible_leader_replicas=(1,), last_known_elr=(1,)
    )
    image.apply(change, image.offset, image.epoch)
    (topic,) = ask(harness, "a").topics
    found = [(one.eligible_leader_replicas, one.last_known_elr) for one in topic.partitions]
    assert [tuple(map(tuple, one)) for one in found] == [((), ()), ((1,), (1,))]
