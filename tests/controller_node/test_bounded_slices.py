"""No slice of a request of very many elements looks at more than a few thousands of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.ground.pace import Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages import alter_configs_request as legacy
from kraftd.messages import alter_partition_reassignments_request as reassign
from kraftd.messages import alter_user_scram_credentials_request as scram
from kraftd.messages import assign_replicas_to_dirs_request as directories
from kraftd.messages import incremental_alter_configs_request as incremental
from kraftd.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraftd.messages.alter_partition_request import AlterPartitionRequest
from kraftd.messages.alter_partition_request import TopicData as IsrTopic
from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kraftd.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kraftd.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraftd.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kraftd.requests.call import Call
from kraftd.requests.events import SliceDue
from kraftd.wire.api import ApiKey
from tests.controller_node.harness import Harness
from tests.controller_node.test_permissions import acl, guard

COUNT = 8_000
MAX_TOUCHED = 4_000  # by a slice: perhaps the last of sorting out and the first of the decision
NESTED = ("configs of a topic", "changes of a node")  # in an element that may be refused as a whole
TOPIC = 2
NAMES = [f"t{number}" for number in range(COUNT)]


class Counted(list[Any]):
    """A list that counts the elements that are looked at."""

    touched = 0

    def __iter__(self) -> Iterator[Any]:
        for element in super().__iter__():
            Counted.touched += 1
            yield element


def each(make: Callable[[str], Any]) -> Counted:
    return Counted(map(make, NAMES))


def on(kind: Any, *fields: Any) -> Callable[[str], Any]:
    return lambda name: kind(name, *fields)


def resources(kind: Any, *fields: Any) -> Counted:
    return each(lambda name: kind(TOPIC, name, *fields))


def ids(kind: Any) -> Counted:
    return each(lambda name: kind(int(name[1:]).to_bytes(16)))


CASES: dict[str, tuple[int, int, Callable[[], Any]]] = {
    "topics": (ApiKey.CREATE_TOPICS, 7, lambda: CreateTopicsRequest(each(on(CreatableTopic, 0, 1)), 9_000)),
    "configs of a topic": (
        ApiKey.CREATE_TOPICS,
        7,
        lambda: CreateTopicsRequest(
            [CreatableTopic("new", 1, 1, [], each(on(CreatableTopicConfig, None)))], 9_000
        ),
    ),
    "deletions": (ApiKey.DELETE_TOPICS, 6, lambda: DeleteTopicsRequest(each(DeleteTopicState), (), 9_000)),
    "deletions by id": (
        ApiKey.DELETE_TOPICS,
        6,
        lambda: DeleteTopicsRequest(ids(lambda topic_id: DeleteTopicState(None, topic_id)), (), 9_000),
    ),
    "new partitions": (
        ApiKey.CREATE_PARTITIONS,
        3,
        lambda: CreatePartitionsRequest(each(on(CreatePartitionsTopic, 2, None)), 9_000),
    ),
    "descriptions": (
        ApiKey.DESCRIBE_CONFIGS,
        4,
        lambda: DescribeConfigsRequest(resources(DescribeConfigsResource)),
    ),
    "unknown descriptions": (
        ApiKey.DESCRIBE_CONFIGS,
        4,
        lambda: DescribeConfigsRequest(each(lambda name: DescribeConfigsResource(99, name))),
    ),
    "configs": (
        ApiKey.ALTER_CONFIGS,
        2,
        lambda: legacy.AlterConfigsRequest(resources(legacy.AlterConfigsResource)),
    ),
    "changes of configs": (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        lambda: incremental.IncrementalAlterConfigsRequest(resources(incremental.AlterConfigsResource)),
    ),
    "changes of a node": (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        lambda: incremental.IncrementalAlterConfigsRequest(
            [incremental.AlterConfigsResource(4, "1", each(on(incremental.AlterableConfig, 0, "v")))]
        ),
    ),
    "acls": (
        ApiKey.CREATE_ACLS,
        3,
        lambda: CreateAclsRequest(each(lambda name: AclCreation(2, name, 3, "User:a", "*", 99, 3))),
    ),
    "filters of acls": (
        ApiKey.DELETE_ACLS,
        3,
        lambda: DeleteAclsRequest(each(lambda name: DeleteAclsFilter(2, name, 3, None, None, 1, 1))),
    ),
    "elections": (
        ApiKey.ELECT_LEADERS,
        2,
        lambda: ElectLeadersRequest(0, each(on(TopicPartitions, ())), 9_000),
    ),
    "reassignments": (
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        1,
        lambda: reassign.AlterPartitionReassignmentsRequest(
            9_000, topics=each(on(reassign.ReassignableTopic, []))
        ),
    ),
    "listed reassignments": (
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        0,
        lambda: ListPartitionReassignmentsRequest(9_000, each(on(ListPartitionReassignmentsTopics, ()))),
    ),
    "quotas": (
        ApiKey.ALTER_CLIENT_QUOTAS,
        1,
        lambda: AlterClientQuotasRequest(each(lambda name: EntryData([EntityData("x", name)], []))),
    ),
    "operations on a quota": (
        ApiKey.ALTER_CLIENT_QUOTAS,
        1,
        lambda: AlterClientQuotasRequest([EntryData([EntityData("user", "a")], each(on(OpData, 0.0, True)))]),
    ),
    "described users": (
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        0,
        lambda: DescribeUserScramCredentialsRequest(each(UserName)),
    ),
    "users": (
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        0,
        lambda: scram.AlterUserScramCredentialsRequest(each(on(scram.ScramCredentialDeletion, 1)), []),
    ),
    "proposals": (
        ApiKey.ALTER_PARTITION,
        3,
        lambda: AlterPartitionRequest(1, BROKER_EPOCH, ids(lambda topic_id: IsrTopic(topic_id, []))),
    ),
    "directories": (
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        0,
        lambda: directories.AssignReplicasToDirsRequest(
            1, BROKER_EPOCH, ids(lambda directory: directories.DirectoryData(directory, []))
        ),
    ),
}
BROKER_EPOCH = 0


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    global BROKER_EPOCH
    harness = Harness(tmp_path_factory.mktemp("controller")).start()
    BROKER_EPOCH = harness.unfenced()
    harness.runs_slices_by_itself = False
    return harness


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rights", ["none", "all"])
def test_a_slice_looks_at_a_few_thousand_elements(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, case: str, rights: str
) -> None:
    rules = [] if rights == "none" else [acl(AclOperation.ALL, "*")]
    if rights == "all":
        rules.append(acl(AclOperation.ALL, CLUSTER_NAME, AclResourceType.CLUSTER))
    guard(harness, *rules)
    key, version, make = CASES[case]
    node = harness.node
    call = Call(1, 0, "CONTROLLER", "127.0.0.1", key, version, 1, "c", make())
    touched: list[int] = []

    def run(work: Slices[None]) -> None:
        """Run the work, and note what each slice has looked at."""
        done = object()
        while True:
            Counted.touched = 0
            last = next(work, done)
            touched.append(Counted.touched)
            if last is done:
                return

    monkeypatch.setattr(node.boundary.large, "begin", lambda call, work: run(work))
    route = node.boundary.registry.routes[key]
    try:
        node.boundary._check_door(call)
    except Refusal:
        return
    Counted.touched = 0
    work = route.handle(call)
    touched.append(Counted.touched)
    if work is not None:
        run(work)
    while node.decisions.long.busy:
        Counted.touched = 0
        harness.step(SliceDue())
        touched.append(Counted.touched)
    assert sum(touched) >= COUNT - MAX_TOUCHED or (rights == "none" and case in NESTED)
    assert max(touched) <= MAX_TOUCHED
