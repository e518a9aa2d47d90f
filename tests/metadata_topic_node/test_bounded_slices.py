"""No slice of a client's request of very many elements looks at more than a few thousands of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kraftd.acl import CLUSTER_NAME, AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.ground.pace import Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages import produce_request as produce
from kraftd.messages.delete_records_request import DeleteRecordsRequest, DeleteRecordsTopic
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest, TopicRequest
from kraftd.messages.fetch_request import FetchRequest, FetchTopic
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.list_config_resources_request import ListConfigResourcesRequest
from kraftd.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestTopic
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraftd.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderTopic,
)
from kraftd.metadata.state import AclState
from kraftd.requests.call import Call
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftd.wire.api import ApiKey
from tests.controller_node.test_bounded_slices import COUNT, MAX_TOUCHED, NAMES, Counted, each
from tests.metadata_topic_node.clients import CLIENT, ClientHarness

LOG = METADATA_TOPIC


class CountedTuple(tuple[Any, ...]):
    """A tuple that counts the elements that are looked at."""

    def __iter__(self) -> Any:
        for element in super().__iter__():
            Counted.touched += 1
            yield element


def by_id(kind: Callable[[bytes], Any]) -> Counted:
    return each(lambda name: kind(int(name[1:]).to_bytes(16)))


CASES: dict[str, tuple[int, int, Callable[[], Any]]] = {
    "produce": (
        ApiKey.PRODUCE,
        9,
        lambda: produce.ProduceRequest(None, 1, 9, each(lambda name: produce.TopicProduceData(name))),
    ),
    "produce to partitions": (
        ApiKey.PRODUCE,
        12,
        lambda: produce.ProduceRequest(
            None,
            1,
            9,
            [produce.TopicProduceData("t", partition_data=each(lambda _: produce.PartitionProduceData(0)))],
        ),
    ),
    "fetch": (
        ApiKey.FETCH,
        12,
        lambda: FetchRequest(session_epoch=-1, max_bytes=9, topics=each(lambda name: FetchTopic(name))),
    ),
    "fetch in a session": (
        ApiKey.FETCH,
        12,
        lambda: FetchRequest(session_id=7, session_epoch=7, topics=each(lambda _: FetchTopic(LOG))),
    ),
    "offsets": (ApiKey.LIST_OFFSETS, 7, lambda: ListOffsetsRequest(topics=each(ListOffsetsTopic))),
    "offsets of partitions": (
        ApiKey.LIST_OFFSETS,
        7,
        lambda: ListOffsetsRequest(
            topics=[ListOffsetsTopic("t", each(lambda name: ListOffsetsPartition(int(name[1:]))))]
        ),
    ),
    "metadata": (
        ApiKey.METADATA,
        12,
        lambda: MetadataRequest(each(lambda name: MetadataRequestTopic(bytes(16), name))),
    ),
    "metadata of one topic": (
        ApiKey.METADATA,
        12,
        lambda: MetadataRequest(each(lambda name: MetadataRequestTopic(bytes(16), "t"))),
    ),
    "commits": (
        ApiKey.OFFSET_COMMIT,
        8,
        lambda: OffsetCommitRequest("g", topics=each(lambda _: OffsetCommitRequestTopic(LOG))),
    ),
    "committed offsets": (
        ApiKey.OFFSET_FETCH,
        8,
        lambda: OffsetFetchRequest(
            groups=each(lambda name: OffsetFetchRequestGroup(name, topics=[OffsetFetchRequestTopics(LOG)]))
        ),
    ),
    "committed offsets of brokers": (
        ApiKey.OFFSET_FETCH,
        8,
        lambda: OffsetFetchRequest(groups=each(lambda name: OffsetFetchRequestGroup(name))),
    ),
    "coordinators": (
        ApiKey.FIND_COORDINATOR,
        4,
        lambda: FindCoordinatorRequest(key_type=0, coordinator_keys=CountedTuple(NAMES)),
    ),
    "groups": (ApiKey.DESCRIBE_GROUPS, 5, lambda: DescribeGroupsRequest(CountedTuple(NAMES))),
    "deletions of the log": (
        ApiKey.DELETE_TOPICS,
        6,
        lambda: DeleteTopicsRequest(by_id(lambda _: DeleteTopicState(None, METADATA_TOPIC_ID)), (), 9),
    ),
    "deleted records": (ApiKey.DELETE_RECORDS, 2, lambda: DeleteRecordsRequest(each(DeleteRecordsTopic))),
    "ends of epochs": (
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        4,
        lambda: OffsetForLeaderEpochRequest(topics=each(OffsetForLeaderTopic)),
    ),
    "configs": (
        ApiKey.DESCRIBE_CONFIGS,
        4,
        lambda: DescribeConfigsRequest(each(lambda name: DescribeConfigsResource(2, name))),
    ),
    "described topics": (
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        lambda: DescribeTopicPartitionsRequest(each(TopicRequest)),
    ),
}


def acl(type: AclResourceType, name: str) -> AclState:
    literal, allow = AclPatternType.LITERAL, AclPermission.ALLOW
    return AclState(type, name, literal, "User:ANONYMOUS", "*", AclOperation.ALL, allow)


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> ClientHarness:
    leader = ClientHarness(tmp_path_factory.mktemp("node"), StandardAuthorizer(AuthorizerSettings()))
    leader.start()
    leader.unfenced(1)
    leader.create("t")
    return leader


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rights", ["none", "all"])
def test_a_slice_looks_at_a_few_thousand_elements(
    harness: ClientHarness, monkeypatch: pytest.MonkeyPatch, case: str, rights: str
) -> None:
    node = harness.clients
    authorizer = StandardAuthorizer(AuthorizerSettings())
    if rights == "all":
        authorizer.change((), [acl(type, "*") for type in (AclResourceType.TOPIC, AclResourceType.GROUP)])
        authorizer.change((), [acl(AclResourceType.CLUSTER, CLUSTER_NAME)])
    authorizer.end_load()
    monkeypatch.setattr(node.boundary, "_authorizer", authorizer)
    touched: list[int] = []

    def run(call: Call, work: Slices[None]) -> None:
        """Run the work, and note what each slice has looked at."""
        done = object()
        last = None
        while last is not done:
            Counted.touched = 0
            try:
                last = next(work, done)
            except Refusal as refusal:
                last = done
                touched.append(Counted.touched)
                node.boundary.guard(call, refusal)
            touched.append(Counted.touched)

    monkeypatch.setattr(node.boundary.large, "begin", run)
    key, version, make = CASES[case]
    call = Call(1_000, 0, CLIENT, "127.0.0.1", key, version, 1, "c", make())
    call.size_bytes = 1 << 20
    Counted.touched = 0
    node.boundary.handle(call)
    touched.append(Counted.touched)
    assert max(touched) <= MAX_TOUCHED
    assert call.settled or (case, rights) == ("deletions of the log", "none")  # the controller's
    if case != "fetch in a session":
        assert sum(touched) >= COUNT - MAX_TOUCHED
    node.outbox.take()


def test_very_many_types_of_resources_are_looked_at_in_slices(harness: ClientHarness) -> None:
    request = ListConfigResourcesRequest((2,) * 20_000)
    call = Call(1_000, 0, CLIENT, "127.0.0.1", ApiKey.LIST_CONFIG_RESOURCES, 1, 1, "c", request)
    from kraftd.answers.apis.api_74_list_config_resources import describe

    assert len(list(describe(harness.clients, call))) >= 3
