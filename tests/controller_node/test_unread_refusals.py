"""A large request of a sender without rights is refused undecoded, with the answer that decoding gives."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.controller_node.apis.api_20_delete_topics import UNREAD_NAMES
from kraftd.controller_node.routes import ROWS, unread_refusal
from kraftd.messages import alter_configs_request as legacy
from kraftd.messages import alter_partition_reassignments_request as reassign
from kraftd.messages import incremental_alter_configs_request as incremental
from kraftd.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraftd.messages.alter_client_quotas_response import EntityData as AnsweredEntity
from kraftd.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraftd.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kraftd.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraftd.messages.envelope_request import EnvelopeRequest
from kraftd.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kraftd.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftd.requests import intake, unread_refusals
from kraftd.requests.call import Call
from kraftd.requests.unread_refusals import SAMPLE
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.codec import decode_prefix, encode_bytes
from kraftd.wire.engine import C_ENGINE, Repeated
from kraftd.wire.frames import encode_request, parse_response
from kraftd.wire.slices import EncodedRows
from testkit.random_messages import damaged
from tests.controller_node.harness import Harness
from tests.controller_node.test_envelope import ADDRESS, forwarded, principal
from tests.controller_node.test_permissions import acl, guard

pytestmark = pytest.mark.skipif(C_ENGINE is None, reason="the engine in Python decodes everything")

TOPIC, BROKER = 2, 4
NAMES = [f"topic-{number:04}-ä" for number in range(2_000)]

REQUESTS: dict[str, tuple[int, tuple[int, ...], Callable[[list[Any]], Any]]] = {
    "CreateTopics": (
        ApiKey.CREATE_TOPICS,
        (2, 4, 5, 7),
        lambda names: CreateTopicsRequest(
            [
                CreatableTopic(
                    name, -1, -1, [CreatableReplicaAssignment(0, (1,))], [CreatableTopicConfig("k", None)]
                )
                for name in names
            ],
            9_000,
        ),
    ),
    "CreatePartitions": (
        ApiKey.CREATE_PARTITIONS,
        (0, 2, 3),
        lambda names: CreatePartitionsRequest([CreatePartitionsTopic(one, 3, None) for one in names], 9_000),
    ),
    "DeleteTopics": (
        ApiKey.DELETE_TOPICS,
        (6,),
        lambda names: DeleteTopicsRequest([DeleteTopicState(name) for name in names], (), 9_000),
    ),
    "DeleteTopics by name": (
        ApiKey.DELETE_TOPICS,
        (1, 4, 5),
        lambda names: DeleteTopicsRequest([], tuple(names), 9_000),
    ),
    "AlterClientQuotas": (
        ApiKey.ALTER_CLIENT_QUOTAS,
        (0, 1),
        lambda names: AlterClientQuotasRequest(
            [
                EntryData([EntityData("user", one), EntityData("client-id", None)], [OpData("a", 1.0, False)])
                for one in names
            ]
        ),
    ),
    "AlterUserScramCredentials": (
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        (0,),
        lambda names: AlterUserScramCredentialsRequest(
            [ScramCredentialDeletion(one, 1) for one in names[: len(names) // 2]],
            [ScramCredentialUpsertion(one, 2, 4_096, b"salt", b"key") for one in names[len(names) // 2 :]],
        ),
    ),
    "DescribeUserScramCredentials": (
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        (0,),
        lambda names: DescribeUserScramCredentialsRequest([UserName(one) for one in names]),
    ),
    "CreateAcls": (
        ApiKey.CREATE_ACLS,
        (1, 3),
        lambda names: CreateAclsRequest([AclCreation(TOPIC, one, 3, "User:a", "*", 3, 3) for one in names]),
    ),
    "DeleteAcls": (
        ApiKey.DELETE_ACLS,
        (1, 3),
        lambda names: DeleteAclsRequest([DeleteAclsFilter(TOPIC, one, 3, None, None, 3, 3) for one in names]),
    ),
    "ElectLeaders": (
        ApiKey.ELECT_LEADERS,
        (0, 1, 2),
        lambda names: ElectLeadersRequest(0, [TopicPartitions(one, (0, 7)) for one in names], 9_000),
    ),
    "AlterPartitionReassignments": (
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        (0, 1),
        lambda names: reassign.AlterPartitionReassignmentsRequest(
            9_000,
            topics=[
                reassign.ReassignableTopic(
                    one,
                    [reassign.ReassignablePartition(0, (1, 2)), reassign.ReassignablePartition(1, None)],
                )
                for one in names
            ],
        ),
    ),
    "ListPartitionReassignments": (
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        (0,),
        lambda names: ListPartitionReassignmentsRequest(
            9_000, [ListPartitionReassignmentsTopics(one, (0, 7)) for one in names]
        ),
    ),
    "DescribeConfigs": (
        ApiKey.DESCRIBE_CONFIGS,
        (1, 3, 4),
        lambda names: DescribeConfigsRequest([DescribeConfigsResource(TOPIC, one, ("a",)) for one in names]),
    ),
    "AlterConfigs": (
        ApiKey.ALTER_CONFIGS,
        (0, 2),
        lambda names: legacy.AlterConfigsRequest(
            [legacy.AlterConfigsResource(TOPIC, name, [legacy.AlterableConfig("a", "b")]) for name in names]
        ),
    ),
    "IncrementalAlterConfigs": (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        (0, 1),
        lambda names: incremental.IncrementalAlterConfigsRequest(
            [incremental.AlterConfigsResource(TOPIC, name, []) for name in names]
        ),
    ),
}
CASES = [(name, version) for name, (_, versions, _) in REQUESTS.items() for version in versions]


class Asked:
    """A controller without ACLs; it notes whether the last large request was decoded."""

    def __init__(self, tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
        self.harness = Harness(tmp_path).start()
        self.harness.unfenced()
        self.decoded = 0
        self.patch = patch
        decode_prefix = intake.decode_prefix

        def noted(*arguments: Any) -> Any:
            self.decoded += len(arguments[2]) > 16_384
            return decode_prefix(*arguments)

        patch.setattr(intake, "decode_prefix", noted)
        guard(self.harness)

    def ask(self, frame: bytes) -> tuple[bytes | None, str | None]:
        """The bytes of the answer, or the reason why the connection was closed."""
        self.decoded = 0
        place = self.harness.send_frame(frame)
        return self.harness.answers.get(place), self.harness.closed.pop(1, None)

    def ask_decoding(self, frame: bytes) -> tuple[bytes | None, str | None]:
        """The same, decoded as always."""
        with self.patch.context() as patch:
            patch.setattr(unread_refusals, "C_ENGINE", None)
            answer = self.ask(frame)
        assert self.decoded == 1
        return answer


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(tmp_path, monkeypatch)


def framed(name: str, version: int, names: list[Any]) -> bytes:
    key, _, make = REQUESTS[name]
    return b"".join(encode_request(key, version, 77, "test", make(names)))[4:]


@pytest.mark.parametrize(("name", "version"), CASES)
def test_elements_of_a_sender_without_rights_are_not_decoded(asked: Asked, name: str, version: int) -> None:
    frame = framed(name, version, NAMES)
    expected = asked.ask_decoding(frame)
    stats = asked.harness.node.boundary.stats.by_key[REQUESTS[name][0]]
    errors = sum(stats.errors.values())
    audited = len(asked.harness.audited)
    assert asked.ask(frame) == expected
    assert asked.decoded == 0 and expected[0] is not None
    (line,) = asked.harness.audited[audited:]
    assert line.event == "authorization denied"
    assert sum(stats.errors.values()) == 2 * errors >= 2 * len(NAMES)


@pytest.mark.parametrize("name", REQUESTS)
def test_one_right_to_any_resource_lets_all_be_decoded(asked: Asked, name: str) -> None:
    guard(
        asked.harness,
        acl(AclOperation.ALL, "other"),
        acl(AclOperation.ALTER_CONFIGS, CLUSTER_NAME, AclResourceType.CLUSTER),
        acl(AclOperation.ALTER, CLUSTER_NAME, AclResourceType.CLUSTER),
        acl(AclOperation.DESCRIBE, CLUSTER_NAME, AclResourceType.CLUSTER),
    )
    asked.ask(framed(name, REQUESTS[name][1][-1], NAMES))
    assert asked.decoded == 1


WHOLE: list[tuple[ApiKey, int, Any]] = [
    (
        ApiKey.UPDATE_FEATURES,
        1,
        UpdateFeaturesRequest(9_000, [FeatureUpdateKey(name, 1, False, 1) for name in NAMES]),
    ),
]


@pytest.mark.parametrize(("key", "version", "request_"), WHOLE)
def test_a_request_that_one_error_refuses_is_not_decoded(
    asked: Asked, key: ApiKey, version: int, request_: Any
) -> None:
    frame = b"".join(encode_request(key, version, 77, "test", request_))[4:]
    expected = asked.ask_decoding(frame)
    audited = len(asked.harness.audited)
    assert asked.ask(frame) == expected
    assert asked.decoded == 0 and expected[0] is not None
    assert [line.event for line in asked.harness.audited[audited:]] == ["authorization denied"]
    cut = frame[:-9_000]
    assert asked.ask(cut) == asked.ask_decoding(cut)


@pytest.mark.parametrize("name", REQUESTS)
def test_what_is_unusual_is_decoded_and_answered_as_always(asked: Asked, name: str) -> None:
    version = REQUESTS[name][1][-1]
    frame = framed(name, version, NAMES)
    for unusual in (
        frame[:-9_000],
        frame.replace("topic-0007-ä".encode(), b"topic-0007-\xff\xff"),
        frame.replace("topic-0008-ä".encode(), b"topic-0008-\xed\xa0"),
        framed(name, version, [*NAMES, NAMES[5], METADATA_TOPIC]),
    ):
        is_same = asked.ask(unusual) == asked.ask_decoding(unusual)
        assert is_same, unusual[:100]  # a comparison of both in full takes minutes


def test_names_twice_reserved_names_ids_and_other_resources_are_decoded(asked: Asked) -> None:
    deletions: list[Any] = [DeleteTopicState(name) for name in NAMES]
    requests = [
        (ApiKey.CREATE_TOPICS, 7, REQUESTS["CreateTopics"][2]([*NAMES, NAMES[0]])),
        (ApiKey.CREATE_TOPICS, 7, REQUESTS["CreateTopics"][2]([*NAMES, METADATA_TOPIC])),
        (
            ApiKey.DELETE_TOPICS,
            6,
            DeleteTopicsRequest([*deletions, DeleteTopicState(None, bytes(15) + b"1")]),
        ),
        (ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest([*deletions, DeleteTopicState("n", bytes(15) + b"1")])),
        (ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest([*deletions, DeleteTopicState(None)])),
        (
            ApiKey.DESCRIBE_CONFIGS,
            4,
            DescribeConfigsRequest(
                [*REQUESTS["DescribeConfigs"][2](NAMES).resources, DescribeConfigsResource(BROKER, "1")]
            ),
        ),
    ]
    for key, version, request in requests:
        frame = b"".join(encode_request(key, version, 77, "test", request))[4:]
        answer = asked.ask(frame)
        assert asked.decoded == 1
        assert answer == asked.ask_decoding(frame)


def test_a_request_that_a_broker_carries_is_not_decoded_either(asked: Asked) -> None:
    harness = asked.harness
    guard(harness, acl(AclOperation.CLUSTER_ACTION, CLUSTER_NAME, AclResourceType.CLUSTER))
    carried = forwarded(ApiKey.CREATE_TOPICS, 7, REQUESTS["CreateTopics"][2](NAMES))
    envelope = EnvelopeRequest(carried, principal(), ADDRESS)
    frame = b"".join(encode_request(ApiKey.ENVELOPE, 0, 77, "test", envelope))[4:]
    asked.ask(frame)
    assert asked.decoded == 1  # the Envelope, whose request is one element
    place = harness.send(ApiKey.ENVELOPE, 0, envelope)
    _, answer = parse_response(ApiKey.CREATE_TOPICS, 7, harness.answer(place).response_data)
    assert [one.name for one in answer.topics] == NAMES
    assert {one.error_message for one in answer.topics} == {"Authorization failed."}


@pytest.mark.parametrize(("name", "version"), CASES)
def test_rows_of_damaged_requests_are_of_the_decoded_elements_or_none(name: str, version: int) -> None:
    key, _, make = REQUESTS[name]
    row = next(row for row in ROWS if row.key == key)
    refusal = UNREAD_NAMES if name == "DeleteTopics by name" else unread_refusal(row)
    request = make([f"n{number}ä" for number in range(12)])
    whole = encode_bytes(request, version)
    rng = random.Random(version)
    copied = 0
    for _ in range(1_500):
        data = damaged(rng, whole)
        call = Call(1, 0, "L", "h", key, version, 0, "", None)
        refused = unread_refusals.refuse_unread(call, refusal, data, 0, 1_000)
        if refused is None:
            continue
        copied += 1
        message = decode_prefix(type(request), version, data, 0, 1_000)[0]
        elements = [one for array in refusal.elements for one in getattr(message, array)]
        rows = EncodedRows(refusal.response, refusal.rows, version)
        expected = []
        for element in elements:
            row = refusal.row("")
            value = getattr(element, refusal.copied, element)
            if name == "AlterClientQuotas":
                value = [AnsweredEntity(one.entity_type, one.entity_name) for one in value]
            if (field := _field_of(refusal.row(SAMPLE), refusal.row(""))) is not None:
                setattr(row, field, value)
            if refusal.inner:
                inner = [getattr(one, refusal.inner_copied, one) for one in getattr(element, refusal.inner)]
                set_inner(row, inner)
            expected.append(rows.encode(row))
        if refusal.repeated == Repeated.DROPPED:
            expected = list(dict.fromkeys(expected))
        assert (refused.count, refused.rows) == (len(expected), b"".join(expected))
    assert copied > 20


def set_inner(row: Any, values: list[int]) -> None:
    """Replace the only inner row by one for each value."""
    name = next(field for field in row.__struct_fields__ if isinstance(getattr(row, field), list))
    (sample,) = getattr(row, name)
    first = sample.__struct_fields__[0]
    setattr(row, name, [structs.replace(sample, **{first: value}) for value in values])


def _field_of(row: Any, other: Any) -> str | None:
    """The field in which two rows differ; None if they are equal."""
    return next((name for name in row.__struct_fields__ if getattr(row, name) != getattr(other, name)), None)
