"""Topics come into being because a client asks for them, as `auto.create.topics.enable` says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.metadata.state import AclState
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import BrokerHarness


def ask_for(harness: BrokerHarness, *names: str, **how: Any) -> dict[str, Any]:
    """The topics of Metadata's answer by name."""
    request = MetadataRequest([MetadataRequestTopic(name=name) for name in names])
    answer = harness.client_ask(ApiKey.METADATA, 12, request, **how)
    harness.pass_time(100)
    return {topic.name: topic for topic in answer.topics}


def partition_count(harness: BrokerHarness, name: str) -> int:
    image = harness.view.image
    topic = image.topic(image.topic_names().get(name, bytes(16)))
    return 0 if topic is None else len(topic.partitions)


@pytest.mark.parametrize(("own", "expected"), [({"num.partitions": "2"}, 2), ({}, 7)])
def test_a_number_that_the_broker_does_not_set_is_the_controllers(
    tmp_path: Path, own: dict[str, str], expected: int
) -> None:
    harness = BrokerHarness(tmp_path, broker=own, num__partitions=7).run()
    assert ask_for(harness, "t")["t"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert partition_count(harness, "t") == expected


def test_an_internal_topic_is_created_with_its_own_number_and_configs(tmp_path: Path) -> None:
    settings = {"offsets.topic.num.partitions": "3", "offsets.topic.replication.factor": "1"}
    harness = BrokerHarness(tmp_path, broker=settings).run()
    missing = ask_for(harness, "__consumer_offsets")["__consumer_offsets"]
    assert (missing.error_code, missing.is_internal) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)
    assert partition_count(harness, "__consumer_offsets") == 3


def test_a_coordinator_whose_topic_cannot_be_made_has_the_reason(tmp_path: Path) -> None:
    """Kafka's brokers answer COORDINATOR_NOT_AVAILABLE without one."""
    harness = BrokerHarness(tmp_path, broker={"offsets.topic.replication.factor": "3"}).run()

    def found(version: int, key_type: int = 0) -> tuple[int, str | None]:
        many = {"coordinator_keys": ("g",)} if version >= 4 else {"key": "g"}
        answer = harness.client_ask(
            ApiKey.FIND_COORDINATOR, version, FindCoordinatorRequest(key_type=key_type, **many)
        )
        harness.pass_time(100)
        row = answer.coordinators[0] if version >= 4 else answer
        return row.error_code, row.error_message

    assert found(4) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    code, reason = found(4)
    assert code == ErrorCode.COORDINATOR_NOT_AVAILABLE and found(3) == (code, reason)
    assert reason is not None and reason.startswith("__consumer_offsets cannot be made: ")
    assert "a replication factor of 3 needs as many brokers" in reason
    harness.create_topic("__consumer_offsets", 1, cleanup_policy="compact")
    harness.pass_time(100)
    assert found(4) == (ErrorCode.NONE, "")


def test_a_client_that_may_not_create_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = BrokerHarness(tmp_path).run()
    authorizer = StandardAuthorizer(AuthorizerSettings())
    monkeypatch.setattr(harness.broker.boundary, "_authorizer", authorizer)
    rules = [
        (AclResourceType.TOPIC, "*", AclOperation.DESCRIBE),
        (AclResourceType.TOPIC, "mine", AclOperation.CREATE),
    ]
    authorizer.change((), [allowed(*rule) for rule in rules])
    authorizer.end_load()
    found = ask_for(harness, "mine", "other", "__consumer_offsets")
    assert {name: topic.error_code for name, topic in found.items()} == {
        "mine": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "other": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "__consumer_offsets": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
    assert partition_count(harness, "mine") == 1
    assert not partition_count(harness, "other")


def allowed(type: AclResourceType, name: str, operation: AclOperation) -> AclState:
    return AclState(type, name, AclPatternType.LITERAL, "User:ANONYMOUS", "*", operation, AclPermission.ALLOW)


def test_it_counts_as_the_clients_mutation(tmp_path: Path) -> None:
    """A client over its quota of mutations gets no further topics by asking for them."""
    harness = BrokerHarness(tmp_path, broker={"num.partitions": "5"}).run()
    entry = EntryData([EntityData("client-id", "batch")], [OpData("controller_mutation_rate", 0.001, False)])
    answer = harness.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([entry], False), 8)
    assert not answer.entries[0].error_code
    harness.pass_time(100)
    for name in ("a", "b", "c"):
        ask_for(harness, name, client_id="batch")
    assert [partition_count(harness, name) for name in ("a", "b", "c")] == [5, 0, 0]
    fields = [
        fields for _, text, fields in harness.broker_lines.all if text == "a topic could not be created"
    ]
    assert [one["topic"] for one in fields] == ["b", "c"]
