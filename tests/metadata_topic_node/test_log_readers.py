"""Consumers of the metadata log alone, which must not learn of a broker: the coordinator of their groups."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.answers.settings import ClientSettings
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.join_group_request import JoinGroupRequest
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kraftd.metadata_topic_node.log_readers import LogReaders
from kraftd.requests.call import Call
from kraftd.requests.events import FramesReceived
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID, Endpoint
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request
from tests.metadata_topic_node.clients import ClientHarness

GROUP = "readers"
WARNED = "a client reads __cluster_metadata where it may learn of brokers"


def topic_of(name: str) -> OffsetCommitRequestTopic:
    return OffsetCommitRequestTopic(name, partitions=[OffsetCommitRequestPartition(0, 5)])


def ask_metadata(controller: ClientHarness, *names: str, connection_id: int = 1000) -> Any:
    topics = [MetadataRequestTopic(bytes(16), name) for name in names]
    return controller.client_ask(ApiKey.METADATA, 12, MetadataRequest(topics), connection_id)


def coordinator(controller: ClientHarness, connection_id: int = 1000) -> tuple[int, str, int] | None:
    """The node that this node names as coordinator; None if it asks a broker."""
    before = len(controller.sent_to_nodes)
    sent = controller.client_send(
        ApiKey.FIND_COORDINATOR,
        4,
        FindCoordinatorRequest(key_type=0, coordinator_keys=(GROUP,)),
        connection_id,
    )
    if len(controller.sent_to_nodes) > before:
        return None
    (found,) = controller.answer(sent).coordinators
    assert found.error_code == 0
    return found.node_id, found.host, found.port


def test_the_coordinator_of_a_reader_of_the_log_alone_is_this_node(controller: ClientHarness) -> None:
    assert coordinator(controller) is None
    ask_metadata(controller, METADATA_TOPIC)
    own = (controller.view.node_id, "127.0.0.1", 9092)
    assert coordinator(controller) == own
    assert coordinator(controller, 1001) == own  # on the client's other connection


def test_readers_are_noted_though_an_equal_request_was_answered_before(controller: ClientHarness) -> None:
    ask_metadata(controller, METADATA_TOPIC)
    controller.clients.log_readers = LogReaders()
    ask_metadata(controller, METADATA_TOPIC)
    assert coordinator(controller) is not None


@pytest.mark.parametrize("names", [(), ("other",), (METADATA_TOPIC, "other")])
def test_a_broker_coordinates_clients_of_other_topics(
    controller: ClientHarness, names: tuple[str, ...]
) -> None:
    ask_metadata(controller, *names)
    assert coordinator(controller) is None


@pytest.mark.parametrize(
    ("key", "version", "request_"),
    [
        (ApiKey.JOIN_GROUP, 9, JoinGroupRequest(GROUP)),
        (ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest((GROUP,))),
        (ApiKey.OFFSET_FETCH, 5, OffsetFetchRequest(GROUP, [OffsetFetchRequestTopic("other", (0,))])),
        (ApiKey.OFFSET_FETCH, 8, OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP, topics=None)])),
        (ApiKey.OFFSET_COMMIT, 9, OffsetCommitRequest(GROUP, topics=[topic_of("other")])),
    ],
)
def test_a_group_that_needs_a_broker_gets_one(
    controller: ClientHarness, key: int, version: int, request_: Any
) -> None:
    ask_metadata(controller, METADATA_TOPIC)
    controller.client_ask(key, version, request_)
    assert controller.clients.boundary.stats.by_key[key].errors == {ErrorCode.NOT_COORDINATOR: 1}
    assert coordinator(controller) is None


def test_the_log_has_no_committed_offsets_and_takes_none(controller: ClientHarness) -> None:
    topics = [OffsetFetchRequestTopics(topic_id=METADATA_TOPIC_ID, partition_indexes=(0,))]
    for version, name in ((8, METADATA_TOPIC), (10, "")):
        topics = [OffsetFetchRequestTopics(name, METADATA_TOPIC_ID if not name else bytes(16), (0,))]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP, topics=topics)])
        (group,) = controller.client_ask(ApiKey.OFFSET_FETCH, version, request).groups
        (one,) = group.topics[0].partitions
        assert (group.error_code, one.error_code, one.committed_offset) == (0, 0, -1)
    request = OffsetFetchRequest(GROUP, [OffsetFetchRequestTopic(METADATA_TOPIC, (0,))])
    (one,) = controller.client_ask(ApiKey.OFFSET_FETCH, 7, request).topics[0].partitions
    assert (one.error_code, one.committed_offset) == (0, -1)
    commit = OffsetCommitRequest(GROUP, topics=[topic_of(METADATA_TOPIC)])
    answer = controller.client_ask(ApiKey.OFFSET_COMMIT, 9, commit)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ask_metadata(controller, METADATA_TOPIC)
    assert coordinator(controller) is not None


@pytest.mark.parametrize(
    ("broker_listener", "endpoints", "remedy"),
    [
        ("PLAINTEXT", ("CLIENT",), "without kraftd.client.broker.listener.name"),
        (None, ("PLAINTEXT",), "add a client listener whose name no broker has"),
        (None, ("PLAINTEXT", "LOG"), "read from listener LOG, 127.0.0.1:9094"),
        (None, ("LOG",), None),
    ],
)
def test_a_reader_that_may_learn_of_brokers_is_logged_once(
    controller: ClientHarness, broker_listener: str | None, endpoints: tuple[str, ...], remedy: str | None
) -> None:
    addresses = {name: Endpoint(name, "127.0.0.1", 9094) for name in endpoints}
    controller.clients.settings = ClientSettings(addresses, broker_listener)
    listener = endpoints[0]
    for name in ("t", METADATA_TOPIC, METADATA_TOPIC):
        request = MetadataRequest([MetadataRequestTopic(bytes(16), name)])
        frame = b"".join(encode_request(ApiKey.METADATA, 12, 77, "test", request))[4:]
        event = FramesReceived(1000, 0, [memoryview(frame)], listener, "127.0.0.1")
        controller.client_step(event)
    lines = [line for line in controller.lines if line.text == WARNED]
    assert len(lines) == (remedy is not None)
    if remedy is not None:
        assert remedy in lines[0].fields["remedy"] and lines[0].fields["listener"] == listener


@pytest.mark.parametrize("names", [None, (), (METADATA_TOPIC,), ("other",), (METADATA_TOPIC, "other")])
def test_a_client_that_declares_itself_never_learns_of_a_broker(
    controller: ClientHarness, names: tuple[str, ...] | None
) -> None:
    request = MetadataRequest(
        None if names is None else [MetadataRequestTopic(bytes(16), name) for name in names]
    )
    others = controller.client_ask(ApiKey.METADATA, 12, request)  # an equal request, but for the client id
    assert any(one.node_id == 1 for one in others.brokers) is (names != (METADATA_TOPIC,))
    controller.client_id = "__cluster_metadata-archive"
    own = controller.view.node_id
    answer = controller.client_ask(ApiKey.METADATA, 12, request)
    assert [one.node_id for one in answer.brokers] == [own] and answer.controller_id == own
    described = controller.client_ask(ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequest())
    assert [one.broker_id for one in described.brokers] == [own] and described.controller_id == own
    assert coordinator(controller) == (own, "127.0.0.1", 9092)
    assert controller.client_ask(ApiKey.METADATA, 12, request) == answer
    assert not [line for line in controller.lines if line.text == WARNED and names != (METADATA_TOPIC,)]
    controller.client_ask(ApiKey.JOIN_GROUP, 9, JoinGroupRequest(GROUP))
    assert coordinator(controller) is None  # as for any client, a group with members needs a broker
    controller.client_id = "test"
    assert controller.client_ask(ApiKey.METADATA, 12, request) == others


def test_few_clients_and_groups_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraftd.metadata_topic_node.log_readers.MAX_REMEMBERED", 2)
    readers, call = LogReaders(), Call(1000, 0, "CLIENT", "127.0.0.1", ApiKey.METADATA, 12, 1, "test", None)
    readers.note(call)
    for number in range(4):
        readers.note_group_of_broker(call, f"group-{number}")
    assert [readers.coordinates(call, [f"group-{number}"]) for number in range(4)] == [
        True,
        True,
        False,
        False,
    ]
    for number in range(2):
        readers.note(Call(1, 0, "CLIENT", "127.0.0.1", ApiKey.METADATA, 12, 1, f"other-{number}", None))
    assert not readers.coordinates(call, ["group-0"])
