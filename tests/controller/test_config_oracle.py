"""Configs of resources, compared with Kafka's own classes: the same errors, records and values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kraftd.configdef import facts
from kraftd.configdef.definition import ConfigDef, client_metrics_def, group_def, topic_def
from kraftd.configdef.node import NodeConfig
from kraftd.controller.configs.changes import (
    alter_configs,
    incremental_alter_configs,
    new_topic_configs,
)
from kraftd.controller.configs.description import describe_configs
from kraftd.controller.configs.values import effective_topic_configs
from kraftd.controller.context import Context
from kraftd.ground.pace import Pace
from kraftd.ground.refusal import Refusal
from kraftd.messages import alter_configs_request as legacy
from kraftd.messages import incremental_alter_configs_request as incremental
from kraftd.messages.clear_elr_record import ClearElrRecord
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord
from tests.controller.cluster import Cluster
from tests.controller.config_oracle import BASE, NODE_ID, ConfigOracle, configs_of

pytestmark = pytest.mark.kafka
TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
DEFINITIONS = {TOPIC: topic_def(), CLIENT_METRICS: client_metrics_def(), GROUP: group_def()}
quickly = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)

# Server configs that topics and groups inherit, with texts that a server takes.
STATIC = st.lists(
    st.sampled_from(
        [
            ("log.retention.hours", "3"),
            ("log.retention.minutes", "7"),
            ("log.retention.ms", "-5"),
            ("log.roll.hours", "2"),
            ("log.roll.ms", "50"),
            ("log.flush.interval.ms", "9"),
            ("log.flush.scheduler.interval.ms", "8"),
            ("log.cleanup.policy", "compact, delete"),
            ("log.segment.bytes", " 2097152 "),
            ("min.insync.replicas", "2"),
            ("compression.type", "gzip"),
            ("log.cleaner.min.compaction.lag.ms", "1000"),
            ("log.cleaner.max.compaction.lag.ms", "2000"),
            ("remote.log.storage.system.enable", "true"),
            ("log.local.retention.ms", "4"),
            ("unclean.leader.election.enable", "TRUE"),
            ("group.consumer.min.session.timeout.ms", "40000"),
            ("group.share.delivery.count.limit", "7"),
            ("ssl.keystore.password", "secret"),
            ("some.plugin.key", "x"),
        ]
    ),
    max_size=4,
).map(lambda pairs: dict(pairs) | BASE)
DYNAMIC = st.lists(
    st.sampled_from(
        [
            ("log.retention.ms", "77"),
            ("log.retention.hours", "78"),
            ("log.segment.bytes", "nonsense"),
            ("min.insync.replicas", "3"),
            ("num.io.threads", "9"),
            ("node.id", "9"),
            ("ssl.keystore.location", "/k"),
            ("listener.name.controller.ssl.keystore.location", "/k"),
            ("listener.name.controller.sasl.jaas.config", "j"),
            ("max.connections", "50"),
            ("leader.replication.throttled.rate", "1000"),
            ("a.plugin.key", "y"),
            ("compression.type", "zstd"),
        ]
    ),
    max_size=3,
).map(dict)


@pytest.fixture(scope="module")
def oracle() -> Iterator[ConfigOracle]:
    running = ConfigOracle()
    yield running
    running.close()


def cluster_with(
    static: dict[str, str], existing: list[tuple[int, str, str, str]], *, elr: bool = False, level: int = 30
) -> Context:
    """Topic "t" and node 7, as the oracle knows them."""
    cluster = Cluster(metadata_version=level, elr=elr)
    cluster.settings = type(cluster.settings)(
        cluster_id="c", node_id=NODE_ID, static_config=NodeConfig({**static, "broker.id": str(NODE_ID)})
    )
    cluster.topic("t", (NODE_ID,))
    cluster.apply([VersionedRecord(RegisterBrokerRecord(broker_id=NODE_ID, broker_epoch=1), 1)])
    cluster.apply(VersionedRecord(ConfigRecord(*row), 0) for row in existing)
    return cluster.ctx


def rows(records: list[VersionedRecord]) -> list[tuple[Any, ...]]:
    plain = []
    for message, _ in records:
        if isinstance(message, ConfigRecord):
            plain.append((message.resource_type, message.resource_name, message.name, message.value))
        else:
            assert isinstance(message, ClearElrRecord)
            plain.append(("clear", message.topic_name))
    return sorted(plain, key=repr)


def agree(
    oracle: ConfigOracle,
    resource: tuple[int, str],
    changes: list[tuple[str, int, str | None]],
    *,
    static: dict[str, str] = BASE,
    existing: list[tuple[int, str, str, str]] | tuple[()] = (),
    elr: bool = False,
    level: int = 30,
    is_incremental: bool = True,
    forwarded: bool = False,
) -> None:
    """Require that both decide the same error's name and records."""
    kind, name = resource
    theirs = oracle.ask(
        "alter",
        static=static,
        level=level,
        elr=elr,
        existing=list(existing),
        type=kind,
        name=name,
        incremental=is_incremental,
        changes=changes,
        created=False,
        forwarded=forwarded,
    )
    assert "thrown" not in theirs, theirs
    ctx = cluster_with(static, list(existing), elr=elr, level=level)
    ours: Any
    if is_incremental:
        operations = [incremental.AlterableConfig(*change) for change in changes]
        alteration = incremental.AlterConfigsResource(kind, name, operations)
        ours = incremental_alter_configs(
            ctx, incremental.IncrementalAlterConfigsRequest([alteration]), forwarded=forwarded
        )
    else:
        texts = [legacy.AlterableConfig(key, value) for key, _, value in changes]
        request = legacy.AlterConfigsRequest([legacy.AlterConfigsResource(kind, name, texts)])
        ours = alter_configs(ctx, request, forwarded=forwarded)
    response = ours.answer.responses[0]
    difference = f"{ErrorCode(response.error_code)!r}: {response.error_message}; Kafka: {theirs['says']}"
    assert response.error_code == ErrorCode[theirs["error"]], difference
    assert rows(ours.records) == sorted(map(tuple, theirs["records"]), key=repr), difference


@quickly
@given(data=st.data())
@pytest.mark.parametrize("kind", [TOPIC, GROUP, CLIENT_METRICS])
def test_configs_are_accepted_and_refused_as_kafka_does(
    oracle: ConfigOracle, kind: int, data: st.DataObject
) -> None:
    definition: ConfigDef = DEFINITIONS[kind]
    configs = data.draw(configs_of(definition))
    agree(oracle, (kind, "t"), [(name, 0, text) for name, text in configs.items()])


@quickly
@given(static=STATIC, existing=configs_of(topic_def()), configs=configs_of(topic_def()))
@example(BASE, {"remote.storage.enable": "true"}, {"remote.storage.enable": "false"})
@example(BASE | {"remote.log.storage.system.enable": "true"}, {}, {"remote.storage.enable": "true"})
@example(
    BASE | {"remote.log.storage.system.enable": "true"},
    {"remote.storage.enable": "true"},
    {"local.retention.ms": "100", "retention.ms": "50"},
)
@example(
    BASE | {"remote.log.storage.system.enable": "true"},
    {"remote.storage.enable": "true", "remote.log.copy.disable": "true"},
    {"local.retention.bytes": "100"},
)
@example(BASE | {"log.cleaner.max.compaction.lag.ms": "5"}, {}, {"min.compaction.lag.ms": "6"})
def test_a_topics_configs_are_checked_against_what_it_has_and_what_the_server_has(
    oracle: ConfigOracle, static: dict[str, str], existing: dict[str, str], configs: dict[str, str]
) -> None:
    if not starts(oracle, static):
        return
    known = [(TOPIC, "t", name, text) for name, text in existing.items() if name in topic_def()]
    agree(
        oracle,
        (TOPIC, "t"),
        [(name, 0, text) for name, text in configs.items()],
        static=static,
        existing=known,
    )


def starts(oracle: ConfigOracle, static: dict[str, str]) -> bool:
    return "thrown" not in oracle.ask("server", static=static)


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "cleanup.policy",
                "retention.ms",
                "min.insync.replicas",
                "leader.replication.throttled.replicas",
                "cordoned.log.dirs",
                "no.such",
                "metrics",
                "log.cleanup.policy",
                "follower.replication.throttled.replicas",
            ]
        ),
        st.sampled_from([0, 1, 2, 3]),
        st.sampled_from(
            ["", "compact", "delete", "compact,delete", "0:1", "0:1,1:2,", "3", ",", "/a", "/a , /b"]
        ),
    ),
    max_size=3,
    unique_by=lambda operation: operation[0],
)
RESOURCES = st.sampled_from(
    [
        *(
            (kind, name)
            for kind in (TOPIC, BROKER, CLIENT_METRICS, GROUP)
            for name in ("t", "", "7", "8", "-1")
        ),
        (TOPIC, "bad/name"),
        (TOPIC, ".."),
        (TOPIC, "x" * 250),
        (BROKER, " 7"),
        (BROKER, "+7"),
        (BROKER, "99999999999"),
    ]
)


@quickly
@given(
    resource=RESOURCES,
    changes=OPERATIONS,
    elr=st.booleans(),
    level=st.sampled_from([29, 30]),
    is_incremental=st.booleans(),
    forwarded=st.booleans(),
    with_existing=st.booleans(),
)
def test_operations_on_every_kind_of_resource_write_what_kafka_writes(
    oracle: ConfigOracle,
    resource: tuple[int, str],
    changes: list[tuple[str, int, str | None]],
    elr: bool,
    level: int,
    is_incremental: bool,
    forwarded: bool,
    with_existing: bool,
) -> None:
    existing = [
        (TOPIC, "t", "cleanup.policy", "compact"),
        (TOPIC, "t", "min.insync.replicas", "2"),
        (BROKER, "7", "cordoned.log.dirs", "/a, /b"),
        (BROKER, "7", "min.insync.replicas", "2"),
        (BROKER, "", "min.insync.replicas", "3"),
        (CLIENT_METRICS, "t", "metrics", "*"),
    ]
    agree(
        oracle,
        resource,
        changes,
        existing=existing if with_existing else (),
        elr=elr,
        level=level,
        is_incremental=is_incremental,
        forwarded=forwarded,
    )


@quickly
@given(static=STATIC, cluster=DYNAMIC, node=DYNAMIC, topic=configs_of(topic_def()))
def test_effective_topic_configs_have_kafkas_values_and_sources(
    oracle: ConfigOracle,
    static: dict[str, str],
    cluster: dict[str, str],
    node: dict[str, str],
    topic: dict[str, str],
) -> None:
    topic = {name: text for name, text in topic.items() if name in topic_def()}
    existing = [(BROKER, "", *row) for row in cluster.items()]
    existing += [(BROKER, str(NODE_ID), *row) for row in node.items()]
    ours = effective_topic_configs(cluster_with(static, existing), topic)
    theirs = oracle.ask("effective", static=static, cluster=cluster, node=node, topic=topic)
    assert [
        [entry.name, entry.value, entry.config_source, entry.read_only, entry.is_sensitive] for entry in ours
    ] == theirs["configs"]


@settings(quickly, max_examples=40)
@given(
    static=STATIC,
    cluster=DYNAMIC,
    node=DYNAMIC,
    kind=st.sampled_from([TOPIC, BROKER, GROUP, CLIENT_METRICS]),
    name=st.sampled_from(["t", "", "7", "8", "x", "bad/name"]),
    own=st.sampled_from(
        [
            {},
            {"retention.ms": "5", "cleanup.policy": "compact,delete"},
            {"internal.segment.bytes": "100"},
            {"min.cleanable.dirty.ratio": "1e-5"},
        ]
    ),
    own_group=st.sampled_from(
        [{}, {"consumer.session.timeout.ms": "50000"}, {"share.isolation.level": "read_committed"}]
    ),
    own_metrics=st.sampled_from([{}, {"metrics": "*", "interval.ms": "100"}]),
)
def test_descriptions_have_kafkas_values_sources_and_synonyms(
    oracle: ConfigOracle,
    static: dict[str, str],
    cluster: dict[str, str],
    node: dict[str, str],
    kind: int,
    name: str,
    own: dict[str, str],
    own_group: dict[str, str],
    own_metrics: dict[str, str],
) -> None:
    if not starts(oracle, static):
        return
    own = {TOPIC: own, GROUP: own_group, CLIENT_METRICS: own_metrics, BROKER: {}}[kind]
    existing = [(BROKER, "", *row) for row in cluster.items()]
    existing += [(BROKER, str(NODE_ID), *row) for row in node.items()]
    if name:
        existing += [(kind, name, *row) for row in own.items()]
    ctx = cluster_with(static, existing)
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, None)], include_synonyms=True)
    ours = describe_configs(ctx, request).answer.results[0]
    theirs = oracle.ask("describe", static=static, cluster=cluster, node=node, own=own, type=kind, name=name)
    assert "thrown" not in theirs, theirs
    assert ours.error_code == ErrorCode[theirs["error"]], (ours.error_message, theirs["says"])
    described = {
        entry.name: [
            entry.value,
            entry.read_only,
            entry.config_source,
            entry.is_sensitive,
            entry.config_type,
            [[synonym.name, synonym.value, synonym.source] for synonym in entry.synonyms],
        ]
        for entry in ours.configs
    }
    assert described.keys() == theirs["configs"].keys()
    for key, row in theirs["configs"].items():
        assert described[key] == row, key


def test_every_synonym_of_a_topic_config_is_a_key_of_the_server() -> None:
    from kraftd.configdef.definition import broker_def

    servers = {server for group in facts.TOPIC_SYNONYMS.values() for server, _ in group}
    assert servers <= set(broker_def())


def test_a_new_topics_configs_are_refused_with_the_code_of_the_first_problem(oracle: ConfigOracle) -> None:
    ctx = cluster_with(BASE, [])
    with pytest.raises(Refusal) as refused:
        new_topic_configs(ctx, "new", {"retention.ms": "x"}, Pace())
    assert refused.value.code == ErrorCode.INVALID_CONFIG
