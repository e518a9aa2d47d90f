"""What a row names is asked: a handler asks the authorizer for all that its row names, if given the cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.acl import AclOperation, AclResourceType
from kraftd.messages import incremental_alter_configs_request as incremental
from kraftd.messages.alter_configs_request import AlterConfigsRequest, AlterConfigsResource
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.delete_records_request import DeleteRecordsRequest, DeleteRecordsTopic
from kraftd.messages.delete_topics_request import DeleteTopicsRequest
from kraftd.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest, TopicRequest
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.list_config_resources_request import ListConfigResourcesRequest
from kraftd.messages.list_offsets_request import ListOffsetsRequest, ListOffsetsTopic
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraftd.messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest, OffsetForLeaderTopic
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.requests.registry import Route
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from tests.metadata_topic_node.clients import ClientHarness

# By number of config resource: a topic, a broker, a logger of one, a group.
RESOURCES = [(2, "t"), (4, "1"), (8, "1"), (32, "g")]
CONFIGS = DescribeConfigsRequest([DescribeConfigsResource(*one) for one in RESOURCES])
COMMITTED = OffsetCommitRequestTopic(METADATA_TOPIC, partitions=[OffsetCommitRequestPartition(0, 1)])
GROUP = OffsetFetchRequestGroup(
    "g", topics=[OffsetFetchRequestTopics(METADATA_TOPIC, partition_indexes=(0,))]
)
DESCRIBED = MetadataRequest([MetadataRequestTopic(bytes(16), "t")], False, True, True)
OF_CONTROLLERS: dict[ApiKey, tuple[int, list[Any]]] = {
    ApiKey.CREATE_TOPICS: (7, [CreateTopicsRequest([CreatableTopic("c", 1, 1)], 1_000, True)]),
    ApiKey.DELETE_TOPICS: (5, [DeleteTopicsRequest(topic_names=("gone",), timeout_ms=1_000)]),
    ApiKey.DESCRIBE_CONFIGS: (4, [CONFIGS]),
    ApiKey.ALTER_CONFIGS: (2, [AlterConfigsRequest([AlterConfigsResource(*one) for one in RESOURCES], True)]),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (
        1,
        [
            incremental.IncrementalAlterConfigsRequest(
                [incremental.AlterConfigsResource(*one) for one in RESOURCES], True
            )
        ],
    ),
    ApiKey.CREATE_PARTITIONS: (3, [CreatePartitionsRequest([CreatePartitionsTopic("t", 2)], 1_000, True)]),
    ApiKey.DESCRIBE_CLUSTER: (2, [DescribeClusterRequest(endpoint_type=2)]),
}
OF_CLIENTS: dict[ApiKey, tuple[int, list[Any]]] = {
    ApiKey.PRODUCE: (
        9,
        [ProduceRequest(None, 1, 9, [TopicProduceData("t", bytes(16), [PartitionProduceData()])])],
    ),
    ApiKey.FETCH: (
        12,
        [
            FetchRequest(
                replica_id=one,
                session_epoch=-1,
                topics=[FetchTopic("t", bytes(16), [FetchPartition()])],
            )
            for one in (-1, 1)
        ],
    ),
    ApiKey.LIST_OFFSETS: (5, [ListOffsetsRequest(-1, 0, [ListOffsetsTopic("t")])]),
    ApiKey.METADATA: (10, [DESCRIBED]),
    ApiKey.OFFSET_COMMIT: (8, [OffsetCommitRequest("g", topics=[COMMITTED])]),
    ApiKey.OFFSET_FETCH: (8, [OffsetFetchRequest(groups=[GROUP])]),
    ApiKey.FIND_COORDINATOR: (
        6,
        [FindCoordinatorRequest(key_type=one, coordinator_keys=("k",)) for one in range(3)],
    ),
    ApiKey.DELETE_TOPICS: (5, [DeleteTopicsRequest(topic_names=(METADATA_TOPIC,), timeout_ms=1_000)]),
    ApiKey.DELETE_RECORDS: (2, [DeleteRecordsRequest([DeleteRecordsTopic("t")])]),
    ApiKey.INIT_PRODUCER_ID: (5, [InitProducerIdRequest(None), InitProducerIdRequest("x")]),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (4, [OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic("t")])]),
    ApiKey.DESCRIBE_CONFIGS: (4, [CONFIGS]),
    ApiKey.CREATE_PARTITIONS: (
        3,
        [CreatePartitionsRequest([CreatePartitionsTopic(METADATA_TOPIC, 2)], 1_000)],
    ),
    ApiKey.ALTER_CONFIGS: (2, [AlterConfigsRequest([AlterConfigsResource(2, METADATA_TOPIC)])]),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (1, [DescribeClientQuotasRequest()]),
    ApiKey.DESCRIBE_CLUSTER: (1, [DescribeClusterRequest(True)]),
    ApiKey.LIST_CONFIG_RESOURCES: (0, [ListConfigResourcesRequest()]),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (0, [DescribeTopicPartitionsRequest([TopicRequest("t")])]),
}
UNSTABLE = {(AclOperation.TWO_PHASE_COMMIT, AclResourceType.TRANSACTIONAL_ID)}  # of InitProducerId v6


class Recorder:
    """An authorizer that gives one answer to all questions, and notes them."""

    def __init__(self) -> None:
        self.allowed = False
        self.asked: set[tuple[AclOperation, AclResourceType]] = set()

    def allows(
        self, _principal: Any, _host: str, operation: AclOperation, type: AclResourceType, _name: str
    ) -> bool:
        self.asked.add((operation, type))
        return self.allowed

    def reason(self, *_question: Any) -> str:
        return ""

    def allows_on_any(
        self, principal: Any, host: str, operation: AclOperation, type: AclResourceType
    ) -> bool:
        return self.allows(principal, host, operation, type, "")


@pytest.fixture
def harness(tmp_path: Path) -> ClientHarness:
    harness = ClientHarness(tmp_path)
    harness.start()
    harness.unfenced()
    harness.create("t")
    return harness


@pytest.mark.parametrize("key", OF_CONTROLLERS, ids=lambda key: key.name)
def test_a_controllers_handler_asks_all_that_its_row_names(harness: ClientHarness, key: ApiKey) -> None:
    version, requests = OF_CONTROLLERS[key]
    assert asked(harness, harness.node.boundary, harness.ask, key, version, requests) == set(
        harness.node.boundary.registry.routes[key].asks
    )


@pytest.mark.parametrize("key", OF_CLIENTS, ids=lambda key: key.name)
def test_a_clients_handler_asks_all_that_its_row_names(harness: ClientHarness, key: ApiKey) -> None:
    version, requests = OF_CLIENTS[key]
    boundary = harness.clients.boundary
    assert (
        asked(harness, boundary, harness.client_send, key, version, requests)
        == boundary.registry.routes[key].asks - UNSTABLE
    )


def asked(harness: Any, boundary: Any, send: Any, key: ApiKey, version: int, requests: list[Any]) -> set[Any]:
    """All that is asked for the requests, denied and allowed."""
    recorder = boundary._authorizer = Recorder()
    for recorder.allowed in (False, True):
        for request in requests:
            send(key, version, request)
    return recorder.asked


def test_each_api_whose_handler_may_ask_is_tried(harness: ClientHarness) -> None:
    def asking(routes: Any) -> set[int]:
        return {
            int(one.key)
            for one in routes.values()
            if isinstance(one, Route) and one.asks - {(one.door or ())[:2]}
        }

    tokens = {ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN}  # they need logins
    same = {ApiKey.INCREMENTAL_ALTER_CONFIGS}  # asks as AlterConfigs does here
    assert asking(harness.node.boundary.registry.routes) == set(OF_CONTROLLERS) | tokens
    assert asking(harness.clients.boundary.registry.routes) == set(OF_CLIENTS) | same
