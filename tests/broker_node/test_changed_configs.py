"""A broker checks changes of its own configs and of all brokers', and passes on the rest (KIP-226)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.acl import CLUSTER_NAME, AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.messages import alter_configs_request as legacy
from kraftd.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.metadata.state import AclState
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import BrokerHarness

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
AT_CLIENTS = "PLAINTEXT://127.0.0.1:9092"
SET, DELETE, APPEND, UNKNOWN = 0, 1, 2, 9
INVALID, BAD_CONFIG = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG


@pytest.fixture
def harness(tmp_path: Path) -> BrokerHarness:
    listeners = {
        "listeners": f"CONTROLLER://127.0.0.1:9093,{AT_CLIENTS}",
        "kraftd.client.listener.names": "PLAINTEXT",
    }
    return BrokerHarness(tmp_path, **listeners).run()  # type: ignore[arg-type]


def change(harness: BrokerHarness, *resources: tuple[int, str, list[AlterableConfig]]) -> dict[str, int]:
    """The error codes by resource name."""
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(*one) for one in resources])
    slot = harness.client_send(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    harness.pass_time(1_000)
    answer: Any = harness.response(slot)
    assert len(answer.responses) == len(resources)
    return {one.resource_name: one.error_code for one in answer.responses}


def change_one(harness: BrokerHarness, name: str, *configs: AlterableConfig) -> int:
    return change(harness, (BROKER, name, list(configs)))[name]


@pytest.mark.parametrize(
    ("name", "key", "operation", "value", "code"),
    [
        ("100", "log.retention.ms", SET, "1000", 0),
        ("", "log.retention.ms", SET, "1000", 0),
        ("100", "log.retention.ms", SET, "abc", INVALID),
        ("100", "log.retention.ms", SET, "0", INVALID),
        ("100", "log.retention.ms", SET, None, INVALID),
        ("100", "log.retention.ms", DELETE, None, 0),
        ("100", "log.retention.ms", APPEND, "1", BAD_CONFIG),
        ("100", "log.retention.ms", UNKNOWN, "1", INVALID),
        ("101", "log.retention.ms", SET, "1000", INVALID),  # another broker
        ("x", "log.retention.ms", SET, "1000", INVALID),
        ("100", "node.id", SET, "5", INVALID),  # needs a restart
        ("100", "node.id", DELETE, None, 0),
        ("100", "no.such", SET, "x", 0),  # may be a plugin's
        ("100", "ssl.keystore.location", SET, "/x", INVALID),  # of a listener only
        ("100", "listener.name.plaintext.ssl.keystore.location", SET, "/x", 0),
        ("", "listener.name.plaintext.ssl.keystore.location", SET, "/x", INVALID),  # of a broker only
        ("100", "listener.name.plaintext.num.network.threads", SET, "100", INVALID),
        ("100", "background.threads", SET, "20", 0),
        ("100", "background.threads", SET, "5", 0),
        ("100", "background.threads", SET, "21", INVALID),
        ("100", "background.threads", SET, "4", INVALID),
        ("100", "remote.log.reader.threads", SET, "20", 0),
        ("100", "remote.log.reader.threads", SET, "21", INVALID),
        ("", "remote.log.manager.copier.thread.pool.size", SET, "4", INVALID),
        ("100", "remote.log.manager.expiration.thread.pool.size", SET, "21", INVALID),
        ("100", "remote.log.manager.follower.thread.pool.size", SET, "5", INVALID),
        ("", "group.consumer.assignment.interval.ms", SET, "15000", 0),
        ("", "group.consumer.assignment.interval.ms", SET, "15001", INVALID),
        ("100", "group.share.assignment.interval.ms", SET, "15001", INVALID),
        ("100", "group.streams.assignment.interval.ms", SET, "15001", INVALID),
        ("100", "max.connections.per.ip", SET, "1", 0),
        ("100", "max.connections.per.ip", SET, "0", INVALID),  # no client could connect
        ("100", "max.connections.per.ip.overrides", SET, "127.0.0.1:5,", 0),
        ("100", "max.connections.per.ip.overrides", SET, "::1:5, a.host:6", 0),
        ("100", "max.connections.per.ip.overrides", SET, "[::1]:5", INVALID),
        ("100", "max.connections.per.ip.overrides", SET, "127.0.0.1", INVALID),
        ("100", "max.connections.per.ip.overrides", SET, "127.0.0.1:x", INVALID),
        ("100", "max.connections", SET, "0", INVALID),
        ("", "max.connection.creation.rate", SET, "0", INVALID),
        ("100", "listener.name.plaintext.max.connections", SET, "0", INVALID),
        ("100", "listener.name.plaintext.max.connections", SET, "1", 0),
        ("100", "listener.name.other.max.connections", SET, "0", 0),  # there is no such listener
        ("100", "listeners", SET, f"CONTROLLER://127.0.0.1:9999,{AT_CLIENTS}", 0),  # after a restart
        ("100", "listeners", SET, f"CONTROLLER://127.0.0.1:9093,MORE://127.0.0.1:9094,{AT_CLIENTS}", INVALID),
        ("100", "listeners", SET, "x", INVALID),
        ("100", "listener.security.protocol.map", SET, "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT", 0),
        ("100", "listener.security.protocol.map", SET, "CONTROLLER:SSL", INVALID),
        ("100", "listener.security.protocol.map", SET, "OTHER:PLAINTEXT", INVALID),
        ("100", "principal.builder.class", SET, "com.example.Builder", INVALID),
        ("100", "listener.name.any.principal.builder.class", SET, "com.example.Builder", INVALID),
        ("100", "listener.name.any.ssl.engine.factory.class", SET, "com.example.Factory", INVALID),
        ("100", "ssl.engine.factory.class", SET, "com.example.Factory", INVALID),
        ("", "metric.reporters", SET, "com.example.Reporter", INVALID),
        ("", "metric.reporters", SET, "org.apache.kafka.common.metrics.JmxReporter", 0),
        ("", "metric.reporters", SET, "", 0),
        ("100", "listener.name.none.num.network.threads", SET, "100", 0),
        ("100", "listener.name.controller.max.connections", SET, "0", 0),  # they are brokers' and clients'
        ("100", "listener.name.plaintext.group.max.size", SET, "x", INVALID),
        ("100", "listener.name.plaintext.plain.connections.max.reauth.ms", SET, "x", INVALID),
        ("100", "listener.name.plaintext.group.max.size", SET, "5", 0),
        ("100", "listener.name.none.group.max.size", SET, "x", 0),
        ("100", "cordoned.log.dirs", SET, "/data/", 0),
        ("100", "cordoned.log.dirs", SET, "*", 0),
        ("100", "cordoned.log.dirs", SET, "", 0),
        ("100", "cordoned.log.dirs", SET, "/data,/elsewhere", INVALID),
        ("100", "cordoned.log.dirs", SET, "/data,*", INVALID),
        ("100", "log.roll.ms", SET, "0", INVALID),
        ("100", "log.roll.ms", SET, "1", 0),
        ("", "log.roll.jitter.ms", SET, "-1", INVALID),
        ("100", "log.cleaner.dedupe.buffer.size", SET, "1048576", INVALID),
        ("100", "log.local.retention.bytes", SET, "5", 0),
        ("100", "log.local.retention.ms", SET, "-1", INVALID),
    ],
)
def test_a_change_of_a_brokers_configs_is_checked__kip226(
    harness: BrokerHarness, name: str, key: str, operation: int, value: str | None, code: int
) -> None:
    before = dict(harness.node.image.config(BROKER, name))
    assert change_one(harness, name, AlterableConfig(key, operation, value)) == code
    kept = {**before, key: value} if not code and operation == SET else before
    assert harness.node.image.config(BROKER, name) == kept


def test_a_number_of_threads_goes_on_from_what_it_became(harness: BrokerHarness) -> None:
    def become(number: int) -> int:
        return change_one(harness, "100", AlterableConfig("num.io.threads", SET, str(number)))

    assert [become(number) for number in (16, 32, 15, 16)] == [0, 0, INVALID, 0]
    assert [become(number) for number in (32, 64)] == [0, 0]
    assert change_one(harness, "100", AlterableConfig("num.io.threads", DELETE, None)) == INVALID  # 64 to 8


def test_what_is_refused_does_not_hold_up_the_rest(harness: BrokerHarness) -> None:
    harness.create_topic("t")
    topic = (TOPIC, "t", [AlterableConfig("retention.ms", SET, "7000")])
    bad = (BROKER, "100", [AlterableConfig("node.id", SET, "5")])
    good = (BROKER, "", [AlterableConfig("log.retention.ms", SET, "9000")])
    assert change(harness, bad, topic, good) == {"100": INVALID, "t": 0, "": 0}
    assert harness.node.image.config(TOPIC, "t") == {"retention.ms": "7000"}
    assert harness.node.image.config(BROKER, "")["log.retention.ms"] == "9000"


def test_a_resource_that_is_named_twice_is_refused_twice(harness: BrokerHarness) -> None:
    harness.create_topic("t")
    both = [(BROKER, "100", [AlterableConfig("x", DELETE, None)]), (TOPIC, "t", [])]
    assert change(harness, *both, *both) == {"100": INVALID, "t": INVALID}


@pytest.mark.parametrize(
    ("resource_type", "name"), [(TOPIC, "t"), (BROKER, "100"), (BROKER, ""), (METRICS, "m"), (GROUP, "g")]
)
def test_the_form_of_every_change_is_checked(harness: BrokerHarness, resource_type: int, name: str) -> None:
    harness.create_topic("t")

    def alter(*configs: AlterableConfig) -> int:
        return change(harness, (resource_type, name, list(configs)))[name]

    key = AlterableConfig("retention.ms", SET, "1000")
    assert alter(key, key) == INVALID
    assert alter(AlterableConfig("retention.ms", SET, None)) == INVALID
    assert alter(AlterableConfig("retention.ms", APPEND, None)) == INVALID
    assert alter(AlterableConfig("retention.ms", DELETE, None)) == 0
    assert "retention.ms" not in harness.node.image.config(resource_type, name)


@pytest.mark.parametrize("resource_type", [0, 1, 3, 64, -1])
def test_an_unknown_type_of_resource_is_refused(harness: BrokerHarness, resource_type: int) -> None:
    assert change(harness, (resource_type, "x", [])) == {"x": INVALID}


def test_a_broker_answers_for_its_own_log_levels(harness: BrokerHarness) -> None:
    level = [AlterableConfig("kafka", SET, "INFO")]
    found = change(harness, (LOGGER, "100", level), (LOGGER, "101", level), (LOGGER, "0100", []))
    assert found == {"100": BAD_CONFIG, "101": INVALID, "0100": 0}


def test_the_cleaner_follows_its_configs__kip226(harness: BrokerHarness) -> None:
    cleaner = harness.executor.cleaning.cleaner
    before = cleaner.settings
    looked_at_ms = cleaner.looked_at_ms
    configs = {
        "log.cleaner.backoff.ms": ("5000", 5_000),
        "log.cleaner.dedupe.buffer.size": ("8388608", 8_388_608),
        "log.cleaner.io.buffer.load.factor": ("0.5", 0.5),
        "log.cleaner.io.max.bytes.per.second": ("1000.5", 1000.5),
        "log.cleaner.threads": ("2", 2),
    }
    changes = [AlterableConfig(key, SET, text) for key, (text, _) in configs.items()]
    assert change_one(harness, "", *changes) == 0
    assert {key: getattr(cleaner.settings, key.replace(".", "_")) for key in configs} == {
        key: value for key, (_, value) in configs.items()
    }
    assert cleaner.settings.slots < before.slots
    harness.pass_time(5_000)  # the former backoff is three times as long
    assert cleaner.looked_at_ms is not None and cleaner.looked_at_ms >= (looked_at_ms or 0) + 5_000
    own = AlterableConfig("log.cleaner.backoff.ms", SET, "7000")
    assert change_one(harness, "100", own) == 0
    assert cleaner.settings.log_cleaner_backoff_ms == 7_000
    assert change_one(harness, "100", AlterableConfig("log.cleaner.backoff.ms", DELETE, None)) == 0
    gone = [AlterableConfig(key, DELETE, None) for key in configs]
    assert change_one(harness, "", *gone) == 0
    no_limit = cleaner.settings.log_cleaner_io_max_bytes_per_second
    assert cleaner.settings == before._replace(log_cleaner_io_max_bytes_per_second=no_limit)


def test_log_levels_need_the_right_to_the_clusters_configs(
    harness: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    authorizer = StandardAuthorizer(AuthorizerSettings())
    monkeypatch.setattr(harness.broker.boundary, "_authorizer", authorizer)
    authorizer.end_load()
    assert change(harness, (LOGGER, "100", [])) == {"100": ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    literal, allow = AclPatternType.LITERAL, AclPermission.ALLOW
    right = AclResourceType.CLUSTER, CLUSTER_NAME, literal, "User:ANONYMOUS", "*", AclOperation.ALTER_CONFIGS
    authorizer.change((), [AclState(*right, allow)])
    assert change(harness, (LOGGER, "100", [])) == {"100": 0}


def test_the_old_request_is_checked_too(harness: BrokerHarness) -> None:
    def alter(key: str, value: str) -> int:
        resource = legacy.AlterConfigsResource(BROKER, "100", [legacy.AlterableConfig(key, value)])
        slot = harness.client_send(ApiKey.ALTER_CONFIGS, 2, legacy.AlterConfigsRequest([resource]))
        harness.pass_time(1_000)
        answer: Any = harness.response(slot)
        return int(answer.responses[0].error_code)

    assert [alter("node.id", "5"), alter("log.retention.ms", "5000")] == [INVALID, 0]
    assert harness.node.image.config(BROKER, "100") == {"log.retention.ms": "5000"}


def test_the_old_request_changes_no_log_levels_and_needs_values(harness: BrokerHarness) -> None:
    harness.create_topic("t")
    resources = [
        legacy.AlterConfigsResource(LOGGER, "100", []),
        legacy.AlterConfigsResource(TOPIC, "t", [legacy.AlterableConfig("retention.ms", None)]),
    ]
    answer = harness.client_ask(ApiKey.ALTER_CONFIGS, 2, legacy.AlterConfigsRequest(resources))
    assert [one.error_code for one in answer.responses] == [INVALID, INVALID]


def test_the_metadata_log_has_no_producers(harness: BrokerHarness) -> None:
    request = DescribeProducersRequest([TopicRequest(METADATA_TOPIC, [0, 1])])
    (topic,) = harness.client_ask(ApiKey.DESCRIBE_PRODUCERS, 0, request).topics
    assert [one.error_code for one in topic.partitions] == [0, ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert topic.partitions[0].active_producers == []


def test_stores_that_the_broker_cannot_use_are_refused__kip226(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = BrokerHarness(tmp_path).run()
    asked: list[dict[str, str]] = []

    def fault_of(dynamic: dict[str, str]) -> str | None:
        asked.append(dynamic)
        return "there is no such file" if "gone" in dynamic.values() else None

    harness.broker.fault_of_stores = fault_of
    location, password = (f"listener.name.plaintext.ssl.keystore.{key}" for key in ("location", "password"))
    assert change_one(harness, "100", AlterableConfig(location, SET, "gone")) == INVALID
    assert change_one(harness, "100", AlterableConfig(location, SET, "good")) == 0
    assert change_one(harness, "100", AlterableConfig(password, SET, "x")) == 0
    assert change_one(harness, "100", AlterableConfig("num.io.threads", SET, "7")) == 0
    assert change_one(harness, "100", AlterableConfig(location, DELETE, None)) == 0
    changes: list[dict[str, str]] = [
        {location: "gone"},
        {location: "good"},
        {location: "good", password: "x"},
        {password: "x", "num.io.threads": "7"},
    ]
    assert asked == changes
    authorizer = StandardAuthorizer(AuthorizerSettings())
    monkeypatch.setattr(harness.broker.boundary, "_authorizer", authorizer)
    authorizer.end_load()
    row = legacy.AlterConfigsResource(BROKER, "100", [legacy.AlterableConfig(location, "gone")])
    slot = harness.client_send(ApiKey.ALTER_CONFIGS, 2, legacy.AlterConfigsRequest([row]))
    harness.pass_time(1_000)
    assert [one.error_code for one in harness.response(slot).responses] == [0]  # of this controller
    assert asked == changes, "a file was read for a client without the right"
