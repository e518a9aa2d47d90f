"""DescribeConfigs for each kind of resource: value, source and possible values of every config.

test_config_oracle.py compares random resources with Kafka's own classes.
"""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.configdef.node import NodeConfig
from kraftd.controller.configs.description import describe_configs
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.describe_configs_response import DescribeConfigsResult
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord
from tests.controller.cluster import CONTROLLER_ID, Cluster

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
OWN = str(CONTROLLER_ID)

# Types of configs and sources of values as the response numbers them.
UNKNOWN, BOOLEAN, STRING, INT, LONG, LIST, PASSWORD = 0, 1, 2, 3, 5, 7, 9
OF_TOPIC, OF_NODE, OF_CLUSTER, OF_FILE, DEFAULT, OF_METRICS, OF_GROUP = 1, 2, 3, 4, 5, 7, 8

RETENTION = [
    ("log.retention.ms", "9", OF_NODE),
    ("log.retention.ms", "8", OF_CLUSTER),
    ("log.retention.minutes", "7", OF_FILE),
    ("log.retention.hours", "168", DEFAULT),
]
LEAST_IN_SYNC = [("min.insync.replicas", "2", OF_CLUSTER), ("min.insync.replicas", "1", DEFAULT)]


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """Configs in this node's file, of the cluster, of this node, and of a topic, a group, a subscription."""
    built = Cluster().broker(1)
    file = {
        "node.id": OWN,
        "log.retention.minutes": "7",
        "ssl.keystore.password": "hunter2",
        "a.plugins.key": "y",
        "group.share.session.timeout.ms": "46000",
        "internal.metadata.log.segment.bytes": "9",
    }
    built.settings = type(built.settings)(
        cluster_id="c", node_id=CONTROLLER_ID, static_config=NodeConfig(file)
    )
    built.topic("t", (1,))
    for row in (
        (BROKER, "", "log.retention.ms", "8"),
        (BROKER, "", "min.insync.replicas", "2"),
        (BROKER, "", "another.plugins.key", "z"),
        (BROKER, "", "principal.builder.class", "a.B"),  # for single nodes only: it has no effect here
        (BROKER, OWN, "log.retention.ms", "9"),
        (BROKER, OWN, "listener.name.x.plugins.key", "z"),  # of a single node: it takes effect
        (TOPIC, "t", "cleanup.policy", "compact,delete"),
        (TOPIC, "t", "internal.segment.bytes", "100"),
        (GROUP, "g", "consumer.session.timeout.ms", "50000"),
        (CLIENT_METRICS, "m", "metrics", "*"),
    ):
        built.apply([VersionedRecord(ConfigRecord(*row), 0)])
    return built


def described(cluster: Cluster, *resource: Any, synonyms: bool = True) -> DescribeConfigsResult:
    request = DescribeConfigsRequest([DescribeConfigsResource(*resource)], include_synonyms=synonyms)
    [result] = describe_configs(cluster.ctx, request).answer.results
    return result


def rows(result: DescribeConfigsResult) -> dict[str, tuple[Any, ...]]:
    """By config: value, source, type, whether it is read-only and sensitive, and its possible values."""
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, "")
    assert all(entry.documentation is None for entry in result.configs)
    return {
        entry.name: (
            entry.value,
            entry.config_source,
            entry.config_type,
            (entry.read_only, entry.is_sensitive),
            [(synonym.name, synonym.value, synonym.source) for synonym in entry.synonyms],
        )
        for entry in result.configs
    }


WRITABLE, READ_ONLY, SECRET, UNKNOWN_KEY = (False, False), (True, False), (False, True), (True, True)


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        (
            BROKER,
            OWN,
            {
                "log.retention.ms": ("9", OF_NODE, LONG, WRITABLE, RETENTION),
                "min.insync.replicas": ("2", OF_CLUSTER, INT, WRITABLE, LEAST_IN_SYNC),
                "node.id": (OWN, OF_FILE, INT, READ_ONLY, [("node.id", OWN, OF_FILE)]),
                "num.io.threads": ("8", DEFAULT, INT, WRITABLE, [("num.io.threads", "8", DEFAULT)]),
                "broker.rack": (None, DEFAULT, STRING, READ_ONLY, []),
                "ssl.keystore.password": (
                    None,
                    OF_FILE,
                    PASSWORD,
                    SECRET,
                    [("ssl.keystore.password", None, OF_FILE)],
                ),
                "listener.name.x.plugins.key": (
                    None,
                    OF_NODE,
                    UNKNOWN,
                    UNKNOWN_KEY,
                    [("listener.name.x.plugins.key", None, OF_NODE)],
                ),
                "a.plugins.key": (None, OF_FILE, UNKNOWN, UNKNOWN_KEY, [("a.plugins.key", None, OF_FILE)]),
                "another.plugins.key": (
                    None,
                    OF_CLUSTER,
                    UNKNOWN,
                    UNKNOWN_KEY,
                    [("another.plugins.key", None, OF_CLUSTER)],
                ),
            },
        ),
        (
            TOPIC,
            "t",
            {
                "retention.ms": ("9", OF_NODE, LONG, WRITABLE, RETENTION),
                "min.insync.replicas": ("2", OF_CLUSTER, INT, WRITABLE, LEAST_IN_SYNC),
                "cleanup.policy": (
                    "compact,delete",
                    OF_TOPIC,
                    LIST,
                    WRITABLE,
                    [
                        ("cleanup.policy", "compact,delete", OF_TOPIC),
                        ("log.cleanup.policy", "delete", DEFAULT),
                    ],
                ),
                "internal.segment.bytes": (
                    "100",
                    OF_TOPIC,
                    INT,
                    WRITABLE,
                    [("internal.segment.bytes", "100", OF_TOPIC)],
                ),
            },
        ),
        (
            GROUP,
            "g",
            {
                "consumer.session.timeout.ms": (
                    "50000",
                    OF_GROUP,
                    INT,
                    WRITABLE,
                    [
                        ("consumer.session.timeout.ms", "50000", OF_GROUP),
                        ("group.consumer.session.timeout.ms", "45000", DEFAULT),
                    ],
                ),
                "share.session.timeout.ms": (
                    "46000",
                    OF_FILE,
                    INT,
                    WRITABLE,
                    [
                        ("group.share.session.timeout.ms", "46000", OF_FILE),
                        ("group.share.session.timeout.ms", "45000", DEFAULT),
                    ],
                ),
                "share.renew.acknowledge.enable": (
                    "true",
                    DEFAULT,
                    BOOLEAN,
                    WRITABLE,
                    [("share.renew.acknowledge.enable", "true", DEFAULT)],
                ),
            },
        ),
    ],
    ids=["this node", "a topic", "a group"],
)
def test_a_value_is_described_with_its_source_and_the_values_behind_it(
    cluster: Cluster, kind: int, name: str, expected: dict[str, tuple[Any, ...]]
) -> None:
    answered = described(cluster, kind, name, None)
    assert (answered.resource_type, answered.resource_name) == (kind, name)
    assert len({entry.name for entry in answered.configs}) == len(answered.configs)
    by_key = rows(answered)
    assert {key: by_key.get(key) for key in expected} == expected
    chosen = rows(described(cluster, kind, name, tuple(expected)))
    assert chosen == expected
    bare = rows(described(cluster, kind, name, tuple(expected), synonyms=False))
    assert bare == {key: (*row[:-1], []) for key, row in expected.items()}


def test_the_clusters_own_configs_are_described_and_no_others(cluster: Cluster) -> None:
    assert rows(described(cluster, BROKER, "")) == {
        "log.retention.ms": ("8", OF_CLUSTER, LONG, WRITABLE, [("log.retention.ms", "8", OF_CLUSTER)]),
        "min.insync.replicas": ("2", OF_CLUSTER, INT, WRITABLE, [("min.insync.replicas", "2", OF_CLUSTER)]),
        "another.plugins.key": (
            None,
            OF_CLUSTER,
            UNKNOWN,
            UNKNOWN_KEY,
            [("another.plugins.key", None, OF_CLUSTER)],
        ),
    }


@pytest.mark.parametrize(
    ("name", "metrics", "source", "synonyms"),
    [("m", "*", OF_METRICS, [("metrics", "*", OF_METRICS)]), ("unknown", "", DEFAULT, [])],
)
def test_a_subscription_has_its_own_configs_and_defaults__kip714(
    cluster: Cluster, name: str, metrics: str, source: int, synonyms: list[Any]
) -> None:
    assert rows(described(cluster, CLIENT_METRICS, name)) == {
        "metrics": (metrics, source, LIST, WRITABLE, synonyms),
        "interval.ms": ("300000", DEFAULT, INT, WRITABLE, []),
        "match": ("", DEFAULT, LIST, WRITABLE, []),
    }


def test_internal_configs_are_described_if_they_are_set(cluster: Cluster) -> None:
    own = rows(described(cluster, BROKER, OWN))["internal.metadata.log.segment.bytes"]
    assert own[:2] == ("9", OF_FILE)
    assert "internal.metadata.delete.delay.millis" not in rows(described(cluster, BROKER, OWN))
    cluster.topic("plain", (1,))
    assert "internal.segment.bytes" not in rows(described(cluster, TOPIC, "plain"))


def test_a_node_has_one_logger__kip412(cluster: Cluster) -> None:
    cluster.log_levels.set_root("DEBUG")
    (row,) = described(cluster, LOGGER, OWN).configs
    assert (row.name, row.value, row.config_source, row.config_type) == ("root", "DEBUG", 6, 0)
    assert not (row.read_only or row.is_sensitive or row.synonyms)
    assert described(cluster, LOGGER, OWN, ["kafka"]).configs == []


@pytest.mark.parametrize(
    ("kind", "name", "code", "text"),
    [
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION, "A topic's name cannot be empty."),
        (TOPIC, "..", ErrorCode.INVALID_TOPIC_EXCEPTION, "A topic cannot be named '..'."),
        (TOPIC, "gone", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (BROKER, "7", ErrorCode.INVALID_REQUEST, "This is node 3000: ask node 7 itself for its configs."),
        (BROKER, "x", ErrorCode.INVALID_REQUEST, "A broker is named by its id, a whole number, not 'x'."),
        (
            BROKER,
            "2147483648",
            ErrorCode.INVALID_REQUEST,
            "A broker is named by its id, a whole number, not '2147483648'.",
        ),
        (
            LOGGER,
            "",
            ErrorCode.INVALID_REQUEST,
            "A node's id is needed: log levels have no default resource.",
        ),
        (LOGGER, "7", ErrorCode.INVALID_REQUEST, "This is node 3000: ask node 7 itself for its configs."),
        (
            GROUP,
            "",
            ErrorCode.INVALID_REQUEST,
            "A group's name is needed: groups have no default resource.",
        ),
        (CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST, "A subscription needs a name."),
        (99, "x", ErrorCode.INVALID_REQUEST, "Resources of type 99 ('x') have no configs."),
    ],
)
def test_a_resource_that_cannot_be_described_is_refused_and_others_are_not(
    cluster: Cluster, kind: int, name: str, code: ErrorCode, text: str
) -> None:
    refused = described(cluster, kind, name)
    assert (refused.error_code, refused.error_message, refused.configs) == (code, text, [])
    assert (refused.resource_type, refused.resource_name) == (kind, name)


def test_an_invalid_value_is_named_with_its_key_and_others_are_described(
    cluster: Cluster,
) -> None:
    cluster.topic("strange", (1,))
    cluster.config("retention.ms", "soon", topic="strange")
    resources = [DescribeConfigsResource(TOPIC, "strange"), DescribeConfigsResource(TOPIC, "gone")]
    resources.append(DescribeConfigsResource(TOPIC, "t", ("retention.ms",)))
    results = describe_configs(cluster.ctx, DescribeConfigsRequest(resources)).answer.results
    assert [(result.error_code, result.error_message, len(result.configs)) for result in results] == [
        (
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Invalid value soon for configuration retention.ms: must be a whole number of 64 bits",
            0,
        ),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "", 0),
        (ErrorCode.NONE, "", 1),
    ]
