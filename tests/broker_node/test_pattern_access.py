"""A pattern of a consumer group stands for the topics that the member may describe (KIP-848)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.metadata.state import AclState
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import BrokerHarness
from tests.groups.consumer.members import Consumer, joining, settle
from tests.groups.requests import join, subscription


def allowed(type: AclResourceType, name: str, operation: AclOperation) -> AclState:
    return AclState(type, name, AclPatternType.LITERAL, "User:ANONYMOUS", "*", operation, AclPermission.ALLOW)


def test_what_a_pattern_leaves_out_is_no_denied_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Kafka, the authorizer's log has no line of it: a pattern may match thousands of topics."""
    settings = {"group.consumer.regex.refresh.interval.ms": "10000"}
    harness = BrokerHarness(tmp_path, broker=settings).run()
    for name in ("t-seen", "t-hidden", "other"):
        harness.create_topic(name)
    harness.create_topic("__consumer_offsets", 1, cleanup_policy="compact")
    harness.pass_time(100)
    boundary, authorizer = harness.broker.boundary, StandardAuthorizer(AuthorizerSettings())
    monkeypatch.setattr(boundary, "_authorizer", authorizer)
    acls = [
        allowed(AclResourceType.GROUP, "g", AclOperation.READ),
        allowed(AclResourceType.TOPIC, "t-seen", AclOperation.DESCRIBE),
        allowed(AclResourceType.TOPIC, "other", AclOperation.DESCRIBE),
    ]
    authorizer.change((), acls)
    authorizer.end_load()

    def ask(request: ConsumerGroupHeartbeatRequest, version: int) -> Any:
        return harness.client_ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, request)

    def topics(member: Consumer) -> set[str | None]:
        harness.pass_time(11_000)  # patterns are looked up again
        member.beat()
        harness.pass_time(10)
        settle(member)
        return {harness.broker.topic_name(topic_id) for topic_id in member.has}

    member = Consumer(ask, "A" * 22, topics=None, regex="t-.*")
    member.join()
    assert topics(member) == {"t-seen"}
    granted = allowed(AclResourceType.TOPIC, "t-hidden", AclOperation.DESCRIBE)
    authorizer.change((), [granted])
    assert topics(member) == {"t-seen", "t-hidden"}
    harness.pass_time(11_000)
    classic = join("g", "", metadata=subscription("other"), session_ms=45_000)
    assert harness.client_ask(ApiKey.JOIN_GROUP, 3, classic).error_code == 0  # it looks them up, too
    authorizer.change([acls[1]], ())
    assert topics(member) == {"t-hidden"}
    assert boundary.authorizations.denied == 0
    refused = ask(joining("B" * 22, ("t-seen",)), 1)
    assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert boundary.authorizations.denied == 1
