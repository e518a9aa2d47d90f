"""Records and answers of changes of configs, without Java; the oracle's tests cover the rest."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest
from msgspec import structs

from kraftd.configdef.node import NodeConfig
from kraftd.controller.configs.changes import (
    Resource,
    alter_configs,
    changed_value,
    incremental_alter_configs,
    new_topic_configs,
)
from kraftd.controller.configs.description import describe_configs
from kraftd.controller.configs.elr import elr_safety_records
from kraftd.controller.configs.loggers import LEVELS, LogLevels
from kraftd.controller.configs.values import (
    effective_topic_configs,
    election_settings,
)
from kraftd.controller.decision import Decision
from kraftd.ground.pace import Pace
from kraftd.ground.refusal import Refusal
from kraftd.messages import alter_configs_request as legacy
from kraftd.messages.clear_elr_record import ClearElrRecord
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord
from tests.controller.cluster import CONTROLLER_ID, Cluster

TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def change(*resources: tuple[int, str, list[tuple[Any, ...]]], **more: Any) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        [
            AlterConfigsResource(kind, name, [AlterableConfig(*operation) for operation in operations])
            for kind, name, operations in resources
        ],
        **more,
    )


def decide(cluster: Cluster, request: IncrementalAlterConfigsRequest) -> Decision[Any]:
    return incremental_alter_configs(cluster.ctx, request, forwarded=False)


def codes(decision: Decision[Any]) -> list[ErrorCode]:
    return [ErrorCode.__members__[response.error_code.name] for response in decision.answer.responses]


def effective(cluster: Cluster, key: str) -> str | None:
    """The effective value of a config of topic t."""
    configs = effective_topic_configs(cluster.ctx, cluster.image.config(TOPIC, "t"))
    return next(config.value for config in configs if config.name == key)


@pytest.fixture
def cluster() -> Cluster:
    built = Cluster().broker(1)
    built.topic("t", (1,))
    built.topic("u", (1,))
    return built


def test_a_config_is_written_as_its_record(cluster: Cluster) -> None:
    decided = decide(cluster, change((TOPIC, "t", [("retention.ms", SET, "5")])))
    assert decided.records == [VersionedRecord(ConfigRecord(TOPIC, "t", "retention.ms", "5"), 0)]
    [response] = decided.answer.responses
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)


def test_an_unchanged_value_is_not_written_again(cluster: Cluster) -> None:
    cluster.config("retention.ms", "5", topic="t")
    request = change((TOPIC, "t", [("retention.ms", SET, "5"), ("segment.ms", DELETE, None)]))
    assert decide(cluster, request).records == []


def test_an_unchanged_value_of_a_node_is_written_so_that_it_reloads_files(cluster: Cluster) -> None:
    request = change((BROKER, "1", [("ssl.keystore.location", SET, "/k")]))
    cluster.apply(decide(cluster, request).records)
    assert len(decide(cluster, request).records) == 1


def test_each_resource_is_accepted_or_refused_separately(cluster: Cluster) -> None:
    decided = decide(
        cluster,
        change(
            (TOPIC, "t", [("retention.ms", SET, "5"), ("segment.ms", SET, "x")]),
            (TOPIC, "u", [("retention.ms", SET, "6")]),
            (TOPIC, "none", [("retention.ms", SET, "7")]),
        ),
    )
    assert codes(decided) == [
        ErrorCode.INVALID_CONFIG,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert [record.message.resource_name for record in decided.records] == ["u"]


def test_validate_only_writes_no_config(cluster: Cluster) -> None:
    decided = decide(cluster, change((TOPIC, "t", [("retention.ms", SET, "5")]), validate_only=True))
    assert (codes(decided), decided.records) == ([ErrorCode.NONE], [])


def test_items_are_appended_to_and_removed_from_a_list(cluster: Cluster) -> None:
    cluster.apply(decide(cluster, change((TOPIC, "t", [("cleanup.policy", APPEND, "compact")]))).records)
    assert effective(cluster, "cleanup.policy") == "delete,compact"
    cluster.apply(decide(cluster, change((TOPIC, "t", [("cleanup.policy", SUBTRACT, "delete")]))).records)
    assert effective(cluster, "cleanup.policy") == "compact"


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (("retention.ms", APPEND, "5"), ErrorCode.INVALID_CONFIG),
        (("cleanup.policy", APPEND, None), ErrorCode.INVALID_REQUEST),
        (("cleanup.policy", 9, "x"), ErrorCode.INVALID_REQUEST),
        (("no.such.key", SET, "x"), ErrorCode.INVALID_CONFIG),
        (("min.cleanable.dirty.ratio", SET, "1.5"), ErrorCode.INVALID_CONFIG),
        (("leader.replication.throttled.replicas", SET, "1:" + "2" * 40000), ErrorCode.INVALID_CONFIG),
    ],
)
def test_invalid_operations_are_refused(
    cluster: Cluster, operation: tuple[str, int, str | None], code: ErrorCode
) -> None:
    assert codes(decide(cluster, change((TOPIC, "t", [operation])))) == [code]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("1", ErrorCode.NONE),
        ("", ErrorCode.NONE),
        ("2", ErrorCode.BROKER_ID_NOT_REGISTERED),
        ("one", ErrorCode.INVALID_REQUEST),
        ("-1", ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_broker_resource_must_be_the_id_of_a_registered_broker(
    cluster: Cluster, name: str, code: ErrorCode
) -> None:
    assert codes(decide(cluster, change((BROKER, name, [("log.retention.ms", SET, "5")])))) == [code]


@pytest.mark.parametrize(
    ("resource", "code", "text"),
    [
        (
            (TOPIC, "gone", [("retention.ms", SET, "5")]),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "There is no topic 'gone'.",
        ),
        (
            (BROKER, "7", [("log.retention.ms", SET, "5")]),
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "There is no node with id 7.",
        ),
        (
            (LOGGER, str(CONTROLLER_ID), [("kafka", APPEND, "DEBUG")]),
            ErrorCode.INVALID_REQUEST,
            "A log level can be set or deleted, nothing else.",
        ),
        (
            (LOGGER, str(CONTROLLER_ID), [("kafka", DELETE, None)]),
            ErrorCode.INVALID_CONFIG,
            "There is no logger 'kafka'; the only one is root.",
        ),
        (
            (LOGGER, str(CONTROLLER_ID), [("root", DELETE, None)]),
            ErrorCode.INVALID_REQUEST,
            "The level of root can be set, not deleted.",
        ),
        (
            (LOGGER, str(CONTROLLER_ID), [("root", SET, "debug")]),
            ErrorCode.INVALID_CONFIG,
            "'debug' is no log level; there are DEBUG, ERROR, FATAL, INFO, TRACE, WARN.",
        ),
        ((LOGGER, "x", []), ErrorCode.INVALID_REQUEST, "This is node 3000, not 'x'."),
        ((LOGGER, "7", []), ErrorCode.INVALID_REQUEST, "This is node 3000, not '7'."),
        (
            (TOPIC, "t", [("cleanup.policy", 9, "x")]),
            ErrorCode.INVALID_REQUEST,
            "There is no operation 9 on a config.",
        ),
        (
            (TOPIC, "t", [("cleanup.policy", SUBTRACT, None)]),
            ErrorCode.INVALID_REQUEST,
            "SUBTRACT to cleanup.policy needs a value.",
        ),
        (
            (GROUP, "g", [("share.isolation.level", APPEND, "x")]),
            ErrorCode.INVALID_CONFIG,
            "Cannot APPEND to share.isolation.level: it is not a list.",
        ),
    ],
)
def test_a_refused_change_has_the_reason(
    cluster: Cluster, resource: tuple[int, str, list[tuple[Any, ...]]], code: ErrorCode, text: str
) -> None:
    [response] = decide(cluster, change(resource)).answer.responses
    assert (response.error_code, response.error_message) == (code, text)


THROTTLED = "leader.replication.throttled.replicas"


@pytest.mark.parametrize(
    ("before", "operation", "value", "after"),
    [
        ("0:1,1:2", APPEND, "1:2,2:3", "0:1,1:2,2:3"),
        ("0:1,1:2,2:3", SUBTRACT, "2:3,0:1,9:9", "1:2"),
        ("0:1", SUBTRACT, "9:9", "0:1"),
        ("0:1", SUBTRACT, "0:1", ""),
        (None, APPEND, "0:1", "0:1"),
    ],
)
def test_an_item_of_a_list_is_appended_once_and_removed_if_present(
    cluster: Cluster, before: str | None, operation: int, value: str, after: str
) -> None:
    if before is not None:
        cluster.config(THROTTLED, before, topic="t")
    cluster.apply(decide(cluster, change((TOPIC, "t", [(THROTTLED, operation, value)]))).records)
    assert effective(cluster, THROTTLED) == after


@pytest.mark.parametrize(
    ("length", "letter", "is_taken"),
    [(32_767, "a", True), (32_768, "a", False), (16_384, "é", False), (10_922, "é", True)],
)
def test_a_value_may_be_as_long_as_a_field_allows(
    cluster: Cluster, length: int, letter: str, is_taken: bool
) -> None:
    decided = decide(cluster, change((BROKER, "1", [("plugins.key", SET, letter * length)])))
    assert codes(decided) == [ErrorCode.NONE if is_taken else ErrorCode.INVALID_CONFIG]
    if not is_taken:
        [response] = decided.answer.responses
        assert response.error_message == "The value of plugins.key is longer than 32767 bytes."


def test_a_config_is_checked_with_the_others_after_the_change(cluster: Cluster) -> None:
    cluster.config("min.compaction.lag.ms", "9", topic="t")
    bound = ("max.compaction.lag.ms", SET, "5")
    assert codes(decide(cluster, change((TOPIC, "t", [bound])))) == [ErrorCode.INVALID_CONFIG]
    freed = [("min.compaction.lag.ms", DELETE, None), bound, ("segment.ms", DELETE, None)]
    assert codes(decide(cluster, change((TOPIC, "t", freed)))) == [ErrorCode.NONE]
    resource = legacy.AlterConfigsResource(TOPIC, "t", [legacy.AlterableConfig("max.compaction.lag.ms", "5")])
    decided = alter_configs(cluster.ctx, legacy.AlterConfigsRequest([resource]), forwarded=False)
    assert codes(decided) == [ErrorCode.NONE]


@pytest.mark.parametrize("forwarded", [False, True])
def test_only_a_broker_cordons_directories__kip1066(cluster: Cluster, forwarded: bool) -> None:
    cluster.apply([VersionedRecord(ConfigRecord(BROKER, "1", "cordoned.log.dirs", "/a,/b"), 0)])
    for value, is_taken in (("/a", True), ("/a,/c", forwarded)):
        request = change((BROKER, "1", [("cordoned.log.dirs", SET, value)]))
        decided = incremental_alter_configs(cluster.ctx, request, forwarded=forwarded)
        assert codes(decided) == [ErrorCode.NONE if is_taken else ErrorCode.INVALID_CONFIG]


@pytest.mark.parametrize("level", LEVELS)
def test_the_level_of_root_is_set(cluster: Cluster, level: str) -> None:
    taken: list[str] = []
    cluster.log_levels = LogLevels("WARN", taken.append)
    request = change((LOGGER, str(CONTROLLER_ID), [("root", SET, level)]))
    assert codes(decide(cluster, structs.replace(request, validate_only=True))) == [ErrorCode.NONE]
    assert cluster.log_levels.root == "WARN" and not taken
    decided = decide(cluster, request)
    assert codes(decided) == [ErrorCode.NONE] and not decided.records
    assert cluster.log_levels.root == level and taken == [level]


def test_one_refused_change_of_a_level_leaves_the_others_undone(cluster: Cluster) -> None:
    request = change((LOGGER, str(CONTROLLER_ID), [("root", SET, "DEBUG"), ("kafka", SET, "DEBUG")]))
    assert codes(decide(cluster, request)) == [ErrorCode.INVALID_CONFIG]
    assert cluster.log_levels.root == "INFO"


def test_more_records_than_a_batch_can_hold_refuse_the_request(cluster: Cluster) -> None:
    many = [(f"listener.name.x.key{number}", SET, "v") for number in range(10_001)]
    with pytest.raises(Refusal) as refused:
        decide(cluster, change((BROKER, "1", many)))
    assert refused.value.code == ErrorCode.POLICY_VIOLATION


def test_alter_configs_deletes_the_configs_that_it_does_not_name(cluster: Cluster) -> None:
    cluster.config("retention.ms", "5", topic="t")
    cluster.config("segment.ms", "6", topic="t")
    resource = legacy.AlterConfigsResource(TOPIC, "t", [legacy.AlterableConfig("segment.ms", "7")])
    decided = alter_configs(cluster.ctx, legacy.AlterConfigsRequest([resource]), forwarded=False)
    assert [(record.message.name, record.message.value) for record in decided.records] == [
        ("segment.ms", "7"),
        ("retention.ms", None),
    ]


def test_a_new_topic_may_have_configs_before_it_exists(cluster: Cluster) -> None:
    records = new_topic_configs(cluster.ctx, "new", {"cleanup.policy": "compact", "segment.ms": "9"}, Pace())
    assert [record.message.name for record in records] == ["cleanup.policy", "segment.ms"]
    assert new_topic_configs(cluster.ctx, "new", {}, Pace()) == []


def test_a_change_of_min_insync_replicas_clears_the_elrs_it_affects__kip966() -> None:
    cluster = Cluster(elr=True)
    cluster.topic("t", (1,))
    setting = [("min.insync.replicas", SET, "2")]
    decided = decide(cluster, change((TOPIC, "t", setting), (BROKER, "", setting)))
    assert decided.records[2:] == [
        VersionedRecord(ClearElrRecord(topic_name="t"), 0),
        VersionedRecord(ClearElrRecord(topic_name=""), 0),
    ]
    other = change((TOPIC, "t", [("retention.ms", SET, "5")]), (BROKER, "", [("plugins.key", SET, "x")]))
    assert len(decide(cluster, other).records) == 2


def test_an_equal_min_insync_replicas_of_the_cluster_clears_all_elrs__kip966() -> None:
    cluster = Cluster(elr=True)
    setting = change((BROKER, "", [("min.insync.replicas", SET, "2")]))
    cluster.apply(decide(cluster, setting).records)
    again = decide(cluster, setting).records
    assert again[-1] == VersionedRecord(ClearElrRecord(topic_name=""), 0)


def test_with_elr_no_single_broker_has_its_own_min_insync_replicas__kip966() -> None:
    cluster = Cluster(elr=True).broker(1)
    assert codes(decide(cluster, change((BROKER, "1", [("min.insync.replicas", SET, "2")])))) == [
        ErrorCode.INVALID_CONFIG
    ]
    assert codes(decide(cluster, change((BROKER, "", [("min.insync.replicas", DELETE, None)])))) == [
        ErrorCode.INVALID_CONFIG
    ]


def test_enabling_elr_sets_a_cluster_default_and_clears_brokers_values__kip966(
    cluster: Cluster,
) -> None:
    cluster.apply([VersionedRecord(ConfigRecord(BROKER, "1", "min.insync.replicas", "2"), 0)])
    records = [record.message for record in elr_safety_records(cluster.ctx)]
    assert [(record.resource_name, record.value) for record in records] == [("", "1"), ("1", None)]
    cluster.apply(elr_safety_records(cluster.ctx))
    assert elr_safety_records(cluster.ctx) == []


def test_a_topics_value_wins_over_the_nodes_the_clusters_and_the_files(cluster: Cluster) -> None:
    cluster.settings = type(cluster.settings)(
        cluster_id="c", node_id=CONTROLLER_ID, static_config=NodeConfig({"log.retention.hours": "1"})
    )

    def effective() -> tuple[str | None, int]:
        entries = {entry.name: entry for entry in effective_topic_configs(cluster.ctx, {})}
        return entries["retention.ms"].value, entries["retention.ms"].config_source

    assert effective() == ("3600000", 4)
    cluster.config("log.retention.minutes", "1")
    assert effective() == ("60000", 3)
    cluster.apply([VersionedRecord(ConfigRecord(BROKER, str(CONTROLLER_ID), "log.retention.ms", "7"), 0)])
    assert effective() == ("7", 2)
    configs = effective_topic_configs(cluster.ctx, {"retention.ms": "9"})
    assert [(entry.value, entry.config_source) for entry in configs if entry.name == "retention.ms"] == [
        ("9", 1)
    ]


def test_topics_with_equal_configs_share_their_effective_configs(cluster: Cluster) -> None:
    configs = {"retention.ms": "9"}
    first = effective_topic_configs(cluster.ctx, configs)
    assert effective_topic_configs(cluster.ctx, dict(configs)) is first
    assert len(first) == 33


def test_election_settings_have_parsed_values(cluster: Cluster) -> None:
    assert election_settings(cluster.ctx, "t") == (1, False)
    cluster.config("min.insync.replicas", "2")
    cluster.config("unclean.leader.election.enable", "TRUE", topic="t")
    assert election_settings(cluster.ctx, "t") == (2, True)
    assert election_settings(cluster.ctx, "another") == (2, False)
    cluster.apply([VersionedRecord(ConfigRecord(BROKER, str(CONTROLLER_ID), "min.insync.replicas", "3"), 0)])
    assert election_settings(cluster.ctx, "another") == (3, False)


def test_an_unknown_kind_of_resource_refuses_the_whole_description(cluster: Cluster) -> None:
    resources = [DescribeConfigsResource(TOPIC, "t"), DescribeConfigsResource(99, "t")]
    results = describe_configs(cluster.ctx, DescribeConfigsRequest(resources)).answer.results
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2


def test_only_the_requested_keys_are_described(cluster: Cluster) -> None:
    resource = DescribeConfigsResource(TOPIC, "t", ("retention.ms", "no.such"))
    [result] = describe_configs(cluster.ctx, DescribeConfigsRequest([resource])).answer.results
    assert [(entry.name, entry.synonyms) for entry in result.configs] == [("retention.ms", [])]


def test_secrets_are_never_described(cluster: Cluster) -> None:
    cluster.settings = type(cluster.settings)(
        cluster_id="c",
        node_id=CONTROLLER_ID,
        static_config=NodeConfig(
            {"ssl.keystore.password": "hunter2", "a.plugins.key": "hunter2", "node.id": "1"}
        ),
    )
    request = DescribeConfigsRequest(
        [DescribeConfigsResource(BROKER, str(CONTROLLER_ID), None)], include_synonyms=True
    )
    assert "hunter2" not in repr(describe_configs(cluster.ctx, request).answer)


def test_invalid_values_of_the_log_are_described_without_an_error(cluster: Cluster) -> None:
    cluster.config("retention.ms", "nonsense", topic="t")
    request = DescribeConfigsRequest([DescribeConfigsResource(TOPIC, "t", None)])
    [result] = describe_configs(cluster.ctx, request).answer.results
    assert result.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_unknown_configs_of_the_log_have_no_effect(cluster: Cluster) -> None:
    cluster.config("gone.in.this.release", "x", topic="t")
    decided = decide(cluster, change((TOPIC, "t", [("retention.ms", SET, "5")])))
    assert codes(decided) == [ErrorCode.NONE]
    request = DescribeConfigsRequest([DescribeConfigsResource(TOPIC, "t", None)])
    [result] = describe_configs(cluster.ctx, request).answer.results
    assert result.error_code == ErrorCode.NONE
    assert "gone.in.this.release" not in {entry.name for entry in result.configs}


@pytest.mark.parametrize(
    "resource",
    [
        (TOPIC, "t", [("retention.ms", SET, "x" * 32_767)]),
        (TOPIC, "t", [("k" * 32_767, SET, "x")]),
        (TOPIC, "t" * 32_767, []),
        (BROKER, "b" * 32_767, []),
        (16, "m", [("match", SET, "é" * 16_000)]),
    ],
)
def test_a_refusal_of_a_very_long_name_or_value_fits_into_the_answer(
    cluster: Cluster, resource: tuple[int, str, list[tuple[Any, ...]]]
) -> None:
    [response] = decide(cluster, change(resource)).answer.responses
    assert response.error_code != ErrorCode.NONE
    assert len(response.error_message.encode()) < 5_000


def test_a_refused_value_is_named_with_its_key(cluster: Cluster) -> None:
    request = change((TOPIC, "t", [("retention.ms", SET, "soon")]))
    [response] = decide(cluster, request).answer.responses
    assert "retention.ms" in response.error_message and "soon" in response.error_message


def test_a_groups_configs_are_checked_with_those_of_its_server__kip848(cluster: Cluster) -> None:
    for key, value, code in (
        ("consumer.session.timeout.ms", "50000", ErrorCode.NONE),
        ("consumer.session.timeout.ms", "1", ErrorCode.INVALID_CONFIG),
        ("consumer.session.timeout.ms", "x", ErrorCode.INVALID_CONFIG),
        ("no.such.key", "1", ErrorCode.INVALID_CONFIG),
    ):
        assert codes(decide(cluster, change((32, "g", [(key, SET, value)])))) == [code]


def test_a_description_has_every_possible_value_and_its_source(cluster: Cluster) -> None:
    cluster.config("retention.ms", "9", topic="t")
    cluster.config("log.retention.ms", "8")
    resource = DescribeConfigsResource(TOPIC, "t", ("retention.ms", "segment.ms"))

    def described(include_synonyms: bool) -> Any:
        request = DescribeConfigsRequest([resource], include_synonyms=include_synonyms)
        [result] = describe_configs(cluster.ctx, request).answer.results
        return {entry.name: entry for entry in result.configs}

    entry = described(True)["retention.ms"]
    assert (entry.value, entry.config_source, entry.is_sensitive) == ("9", 1, False)
    assert [(one.name, one.value, one.source) for one in entry.synonyms] == [
        ("retention.ms", "9", 1),
        ("log.retention.ms", "8", 3),
        ("log.retention.hours", "168", 5),
    ]
    assert described(False)["retention.ms"].synonyms == []
    assert described(False)["segment.ms"].config_source == 5
    own = DescribeConfigsResource(BROKER, str(CONTROLLER_ID), ("ssl.keystore.password", "node.id"))
    [result] = describe_configs(cluster.ctx, DescribeConfigsRequest([own])).answer.results
    assert {entry.name: entry.is_sensitive for entry in result.configs} == {
        "ssl.keystore.password": True,
        "node.id": False,
    }


def test_a_topics_effective_config_comes_from_the_file_as_a_last_resort(cluster: Cluster) -> None:
    assert effective(cluster, "retention.ms") == "604800000"
    cluster.settings = type(cluster.settings)(
        cluster_id="c", node_id=CONTROLLER_ID, static_config=NodeConfig({"log.retention.hours": "1"})
    )
    assert effective(cluster, "retention.ms") == "3600000"


def test_a_nodes_config_precedes_the_clusters_in_a_topics_effective_config(cluster: Cluster) -> None:
    cluster.config("log.retention.ms", "8")
    assert effective(cluster, "retention.ms") == "8"
    cluster.apply([VersionedRecord(ConfigRecord(BROKER, str(CONTROLLER_ID), "log.retention.ms", "9"), 0)])
    assert effective(cluster, "retention.ms") == "9"


@pytest.mark.parametrize(
    ("hours", "ms"),
    [(" 2 ", "7200000"), ("x", "0"), (str(2**31 - 1), str((2**31 - 1) * 3_600_000)), (str(2**31), "0")],
)
def test_a_servers_hours_become_a_topics_milliseconds(cluster: Cluster, hours: str, ms: str) -> None:
    cluster.config("log.retention.hours", hours)
    assert effective(cluster, "retention.ms") == ms


def test_election_settings_come_from_the_file_as_a_last_resort(cluster: Cluster) -> None:
    cluster.settings = type(cluster.settings)(
        cluster_id="c", node_id=CONTROLLER_ID, static_config=NodeConfig({"min.insync.replicas": "2"})
    )
    assert election_settings(cluster.ctx, "t") == (2, False)


def test_deleting_a_key_that_is_not_set_is_accepted(cluster: Cluster) -> None:
    decided = decide(cluster, change((BROKER, "1", [("plugins.key", DELETE, None)])))
    assert codes(decided) == [ErrorCode.NONE]
    assert [record.message for record in decided.records] == [ConfigRecord(BROKER, "1", "plugins.key", None)]


def test_a_new_topic_with_its_own_min_insync_replicas_has_no_elr__kip966() -> None:
    records = new_topic_configs(Cluster(elr=True).ctx, "new", {"min.insync.replicas": "2"}, Pace())
    assert [record.message for record in records] == [
        ConfigRecord(TOPIC, "new", "min.insync.replicas", "2"),
        ClearElrRecord(topic_name="new"),
    ]


def test_very_many_items_are_appended_and_subtracted_in_linear_time(cluster: Cluster) -> None:
    items = ",".join(f"{number:x}" for number in range(6_000))
    resource = Resource(TOPIC, "t")
    config = AlterableConfig(THROTTLED, APPEND, items)
    began = process_time()
    assert changed_value(resource, items, config) == items
    config.config_operation = SUBTRACT
    assert changed_value(resource, items, config) == ""
    assert process_time() - began < 0.5
    config.value = "a" * 40_000
    with pytest.raises(Refusal, match="longer than 32767 bytes"):
        changed_value(resource, items, config)
