"""What is sorted out of a request before it is decided, and that it is the same in any slices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftd.acl import CLUSTER_NAME, AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.ground import pace as slices
from kraftd.messages import alter_configs_request as legacy
from kraftd.messages import incremental_alter_configs_request as incremental
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.metadata.state import AclState
from kraftd.requests import permission
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.types import METADATA_TOPIC, ZERO_UUID
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.controller_node.harness import Harness

TOPIC, GROUP, CLUSTER = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.CLUSTER
T, BROKER, LOGGER, METRICS, G, UNKNOWN_TYPE = 2, 4, 8, 16, 32, 99
OK, DENIED, INVALID = ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_REQUEST
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
ON_CLUSTER, ON_GROUP = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
UNSUPPORTED = ErrorCode.UNSUPPORTED_VERSION
OWN = "100"


def acl(
    operation: AclOperation,
    name: str,
    type: AclResourceType = TOPIC,
    *,
    allow: bool = True,
    prefixed: bool = False,
) -> AclState:
    pattern = AclPatternType.PREFIXED if prefixed else AclPatternType.LITERAL
    permission_type = AclPermission.ALLOW if allow else AclPermission.DENY
    return AclState(type, name, pattern, "User:ANONYMOUS", "*", operation, permission_type)


def guard(harness: Harness, *acls: AclState) -> None:
    authorizer = StandardAuthorizer(AuthorizerSettings())
    authorizer.change((), acls)
    authorizer.end_load()
    harness.node.boundary._authorizer = authorizer


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    harness = Harness(tmp_path).start()
    harness.unfenced()
    harness.create("a", "b", "c")
    return harness


def codes(rows: Any) -> list[tuple[Any, int]]:
    return [
        (getattr(row, "name", None) or getattr(row, "resource_name", None), row.error_code) for row in rows
    ]


def test_topics_named_twice_reserved_or_denied_are_not_created(harness: Harness) -> None:
    guard(harness, acl(AclOperation.CREATE, "new"), acl(AclOperation.CREATE, "twice"))
    names = ["twice", "no", "new", METADATA_TOPIC, "twice"]
    request = CreateTopicsRequest([CreatableTopic(name, 1, 1) for name in names], 9_000)
    rows = harness.ask(ApiKey.CREATE_TOPICS, 7, request).topics
    assert codes(rows) == [("new", OK), ("twice", INVALID), ("no", DENIED), (METADATA_TOPIC, INVALID)]
    assert [row.error_message for row in rows] == [
        None,
        "The request has this topic name more than once.",
        "Authorization failed.",
        f"{METADATA_TOPIC} is internal and cannot be created.",
    ]
    assert harness.node.image.topic_named("twice") is None
    assert rows[0].topic_config_error_code == DENIED  # it may be created, its configs not be seen


def test_topics_named_twice_or_denied_do_not_grow(harness: Harness) -> None:
    guard(harness, acl(AclOperation.ALTER, "a"), acl(AclOperation.ALTER, "b"))
    topics = [CreatePartitionsTopic(name, 2, None) for name in "abca"]
    rows = harness.ask(ApiKey.CREATE_PARTITIONS, 3, CreatePartitionsRequest(topics, 9_000)).results
    assert codes(rows) == [("b", OK), ("a", INVALID), ("c", DENIED)]


def test_a_request_without_time_is_answered_if_nothing_of_it_is_left(harness: Harness) -> None:
    guard(harness)
    names = ["no", METADATA_TOPIC, "twice", "twice"]
    request = CreateTopicsRequest([CreatableTopic(name, 1, 1) for name in names], 0)
    rows = harness.ask(ApiKey.CREATE_TOPICS, 7, request).topics
    assert codes(rows) == [("no", DENIED), (METADATA_TOPIC, INVALID), ("twice", INVALID)]


@pytest.mark.parametrize("version", [5, 6])
def test_topics_that_may_not_be_deleted_are_hidden_unless_they_may_be_described(
    harness: Harness, version: int
) -> None:
    guard(harness, acl(AclOperation.DELETE, "a"), acl(AclOperation.DESCRIBE, "", prefixed=True))
    guard(
        harness,
        acl(AclOperation.DELETE, "a"),
        acl(AclOperation.DESCRIBE, "b"),
        acl(AclOperation.DESCRIBE, "x"),
    )
    names = ["a", "b", "c", "x", "y"]
    request = DeleteTopicsRequest([], tuple(names), 9_000)
    if version == 6:
        request = DeleteTopicsRequest([DeleteTopicState(name) for name in names], (), 9_000)
    rows = harness.ask(ApiKey.DELETE_TOPICS, version, request).responses
    assert codes(rows) == [("a", OK), ("b", DENIED), ("c", DENIED), ("x", UNKNOWN), ("y", DENIED)]


def test_an_id_shows_a_name_only_to_those_who_may_describe_it(harness: Harness) -> None:
    guard(harness, acl(AclOperation.DESCRIBE, "b"))
    ids = [harness.node.image.topic_names()[name] for name in "ab"]
    other = b"\7" * 16
    states = [DeleteTopicState(None, topic_id) for topic_id in [*ids, other]]
    rows = harness.ask(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(states, (), 9_000)).responses
    assert [(row.name, row.topic_id, row.error_code) for row in rows] == [
        (None, ids[0], DENIED),
        ("b", ids[1], DENIED),
        (None, other, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


def test_ambiguous_or_repeated_topics_are_not_deleted(harness: Harness) -> None:
    a, b, c = (harness.node.image.topic_names()[name] for name in "abc")
    states = [
        DeleteTopicState("a"),
        DeleteTopicState("a"),
        DeleteTopicState(None, b),
        DeleteTopicState(None, b),
        DeleteTopicState("b"),
        DeleteTopicState(None, c),
        DeleteTopicState("c"),
        DeleteTopicState("both", a),
        DeleteTopicState(None, ZERO_UUID),
    ]
    rows = harness.ask(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(states, (), 9_000)).responses
    assert [(row.name, row.topic_id, row.error_message) for row in rows] == [
        ("b", b, "This topic was also given by its id."),
        ("c", c, "This topic was also given by its id."),
        ("a", ZERO_UUID, "The request has this name more than once."),
        (None, b, "The request has this id more than once."),
        ("both", a, "Either a name or an id can be given, not both."),
        (None, ZERO_UUID, "Neither a name nor an id was given."),
    ]
    assert {row.error_code for row in rows} == {INVALID}
    assert harness.node.image.topic_count == 3


def test_a_deletion_of_named_topics_needs_time(harness: Harness) -> None:
    guard(harness)
    for state in (DeleteTopicState("no"), DeleteTopicState(None, b"\7" * 16)):
        late = DeleteTopicsRequest([state], (), 0)
        (row,) = harness.ask(ApiKey.DELETE_TOPICS, 6, late).responses
        assert row.error_code == ErrorCode.REQUEST_TIMED_OUT
    twice = DeleteTopicsRequest([DeleteTopicState("no")] * 2, (), 0)
    assert codes(harness.ask(ApiKey.DELETE_TOPICS, 6, twice).responses) == [("no", INVALID)]


NAMED = [(T, "a"), (LOGGER, OWN), (T, "b"), (LOGGER, OWN), (T, "a"), (UNKNOWN_TYPE, "x"), (UNKNOWN_TYPE, "x")]
CHANGES = [
    (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        lambda rows: incremental.IncrementalAlterConfigsRequest(
            [incremental.AlterConfigsResource(*row) for row in rows]
        ),
        [("a", INVALID), (OWN, ON_CLUSTER), ("b", DENIED), (OWN, ON_CLUSTER)],
        "The request names this resource more than once.",
    ),
    (
        ApiKey.ALTER_CONFIGS,
        2,
        lambda rows: legacy.AlterConfigsRequest([legacy.AlterConfigsResource(*row) for row in rows]),
        [("a", INVALID), (OWN, INVALID), ("b", DENIED)],
        "The request names this resource more than once.",
    ),
]


@pytest.mark.parametrize(("key", "version", "request_of", "expected", "text"), CHANGES)
def test_repeated_unknown_and_denied_resources_are_not_changed(
    harness: Harness, key: int, version: int, request_of: Any, expected: Any, text: str
) -> None:
    guard(harness)
    rows = harness.ask(key, version, request_of(NAMED)).responses
    assert codes(rows) == [*expected, ("x", UNSUPPORTED), ("x", UNSUPPORTED)]
    assert (rows[0].error_message, rows[-1].error_message) == (text, "There is no resource type 99.")
    guard(harness, acl(AclOperation.ALL, "", prefixed=True), acl(AclOperation.ALL, CLUSTER_NAME, CLUSTER))
    rows = harness.ask(key, version, request_of([(T, "b"), (T, "a"), (T, "a"), (LOGGER, OWN)])).responses
    others = [("a", INVALID)] if key == ApiKey.INCREMENTAL_ALTER_CONFIGS else [("a", INVALID), (OWN, INVALID)]
    loggers = [(OWN, OK)] if key == ApiKey.INCREMENTAL_ALTER_CONFIGS else []
    assert codes(rows) == [("b", OK), *loggers, *others]


TYPES = [
    (T, acl(AclOperation.ALL, "x"), DENIED),
    (G, acl(AclOperation.ALL, "x", GROUP), ON_GROUP),
    (BROKER, acl(AclOperation.ALL, CLUSTER_NAME, CLUSTER), ON_CLUSTER),
    (LOGGER, acl(AclOperation.ALL, CLUSTER_NAME, CLUSTER), ON_CLUSTER),
    (METRICS, acl(AclOperation.ALL, CLUSTER_NAME, CLUSTER), ON_CLUSTER),
]


@pytest.mark.parametrize(("type", "needed", "code"), TYPES)
@pytest.mark.parametrize("key", [ApiKey.DESCRIBE_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS])
def test_configs_belong_to_the_topic_the_group_or_the_cluster(
    harness: Harness, type: int, needed: AclState, code: ErrorCode, key: int
) -> None:
    request: Any = DescribeConfigsRequest([DescribeConfigsResource(type, "x")])
    if key == ApiKey.INCREMENTAL_ALTER_CONFIGS:
        request = incremental.IncrementalAlterConfigsRequest([incremental.AlterConfigsResource(type, "x")])

    def answered() -> int:
        answer = harness.ask(key, 1, request)
        (row,) = answer.results if key == ApiKey.DESCRIBE_CONFIGS else answer.responses
        return int(row.error_code)

    guard(harness)
    assert answered() == code
    guard(harness, needed)
    assert answered() != code


def test_an_unknown_type_refuses_the_description_of_all(harness: Harness) -> None:
    guard(harness)
    named = [DescribeConfigsResource(T, "a"), DescribeConfigsResource(UNKNOWN_TYPE, "x")]
    rows = harness.ask(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(named)).results
    assert codes(rows) == [("a", INVALID), ("x", INVALID)]
    assert {row.error_message for row in rows} == {"Resources of type 99 ('x') have no configs."}


# -- a principal without any right

NAMES = [f"t{number}" for number in range(200)]


def test_a_sender_without_any_right_is_not_asked_for_one_by_one(harness: Harness) -> None:
    guard(harness, acl(AclOperation.CREATE, "t0", GROUP))
    authorizer = harness.node.boundary._authorizer
    assert authorizer is not None
    asked: list[str] = []
    allows = authorizer.allows
    authorizer.allows = lambda *needed: asked.append(needed[-1]) or allows(*needed)  # type: ignore
    request = CreateTopicsRequest([CreatableTopic(name, 1, 1) for name in NAMES], 9_000)
    assert codes(harness.ask(ApiKey.CREATE_TOPICS, 7, request).topics) == [(name, DENIED) for name in NAMES]
    assert list(dict.fromkeys(asked)) == [CLUSTER_NAME, *NAMES[: permission.MAX_SINGLE_DENIALS]]
    assert harness.node.boundary.authorizations.denied == len(NAMES)
    *single, summary = [line.fields for line in harness.audited if line.event == "authorization denied"]
    assert [line["resource"] for line in single] == [f"TOPIC:LITERAL:{name}" for name in NAMES[:50]]
    assert summary["count"] == 150
    assert summary["resource"] == "150 more of type TOPIC"
    assert summary["rule"] == "no ACL allows it on any resource of the type"


def test_a_sender_with_one_right_is_asked_for_one_by_one(harness: Harness) -> None:
    guard(harness, acl(AclOperation.CREATE, "t199"))
    request = CreateTopicsRequest([CreatableTopic(name, 1, 1) for name in NAMES], 9_000)
    rows = harness.ask(ApiKey.CREATE_TOPICS, 7, request).topics
    assert codes(rows) == [("t199", OK), *[(name, DENIED) for name in NAMES[:-1]]]


# -- in any slices

names = st.sampled_from(["a", "b", "c", "ab", "new", "x", METADATA_TOPIC])
operations = st.sampled_from(
    [
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.ALTER_CONFIGS,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALL,
    ]
)
acls = st.lists(st.builds(acl, operations, names, allow=st.booleans(), prefixed=st.booleans()), max_size=6)
resources = st.tuples(st.sampled_from([T, BROKER, LOGGER, METRICS, G, UNKNOWN_TYPE]), names)
known_resources = st.tuples(st.sampled_from([T, BROKER, LOGGER, METRICS, G]), names)


def states(elements: list[tuple[str | None, int]]) -> list[DeleteTopicState]:
    return [DeleteTopicState(name, bytes(15) + bytes([number])) for name, number in elements]


requests = st.one_of(
    st.lists(names).map(
        lambda some: (
            ApiKey.CREATE_TOPICS,
            7,
            CreateTopicsRequest([CreatableTopic(one, 1, 1) for one in some], 9_000, True),
        )
    ),
    st.lists(names).map(
        lambda some: (
            ApiKey.CREATE_PARTITIONS,
            3,
            CreatePartitionsRequest([CreatePartitionsTopic(one, 2) for one in some], 9_000, True),
        )
    ),
    st.lists(st.tuples(st.none() | names, st.integers(0, 1))).map(
        lambda some: (ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(states(some), (), 9_000))
    ),
    st.lists(resources).map(
        lambda some: (
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            incremental.IncrementalAlterConfigsRequest(
                [incremental.AlterConfigsResource(*one) for one in some]
            ),
        )
    ),
    st.lists(resources).map(
        lambda some: (
            ApiKey.ALTER_CONFIGS,
            2,
            legacy.AlterConfigsRequest([legacy.AlterConfigsResource(*one) for one in some], True),
        )
    ),
    st.lists(known_resources).map(
        lambda some: (
            ApiKey.DESCRIBE_CONFIGS,
            4,
            DescribeConfigsRequest([DescribeConfigsResource(*one) for one in some]),
        )
    ),
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    harness = Harness(tmp_path_factory.mktemp("shared")).start()
    harness.unfenced()
    return harness


@settings(max_examples=60, deadline=None)
@given(request=requests, rules=acls, many=st.booleans())
def test_the_answer_is_the_same_in_any_slices(
    shared: Harness, request: tuple[int, int, Any], rules: list[AclState], many: bool
) -> None:
    guard(shared, *rules)
    key, version, message = request
    at_once = shared.ask(key, version, message)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "MAX_SLICE_WORK_US", 1)
        patch.setattr("kraftd.ground.occurrences.MAX_KEYS_AT_ONCE", 1)
        patch.setattr("kraftd.requests.refused_rows.ROWS_AT_ONCE", 2)
        patch.setattr(permission, "MAX_SINGLE_DENIALS", 1 if many else 50)
        in_slices = shared.ask(key, version, message)
    if key == ApiKey.CREATE_TOPICS:
        for row in (*at_once.topics, *in_slices.topics):
            row.topic_id = ZERO_UUID  # of random bytes
    at_once.throttle_time_ms = in_slices.throttle_time_ms = 0  # more slices are charged for more
    assert in_slices == at_once
