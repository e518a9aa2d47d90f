"""The configs that a resource may have, and the text of each refusal: one row per rule.

test_config_oracle.py compares random configs with Kafka's own validator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kraftd.configdef.node import NodeConfig
from kraftd.controller.configs.validation import cut, is_java_pattern, validate_resource
from kraftd.ground.refusal import Refusal
from kraftd.wire.error_code import ErrorCode

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
INVALID_CONFIG, INVALID_REQUEST = ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST
TIERED = {"remote.log.storage.system.enable": "true"}


def refusal(
    kind: int,
    configs: Mapping[str, str],
    *,
    name: str = "t",
    existing: Mapping[str, str] | None = None,
    node: Mapping[str, str] | None = None,
) -> tuple[ErrorCode, str] | None:
    """The code and text of the refusal; None if the resource may have the configs."""
    try:
        validate_resource(kind, name, configs, existing or {}, NodeConfig(dict(node or {})))
    except Refusal as refused:
        return refused.code, refused.message or ""
    return None


@pytest.mark.parametrize(
    ("kind", "name", "code", "text"),
    [
        (TOPIC, "t", None, ""),
        (TOPIC, "", INVALID_REQUEST, "A topic's name is needed: topics have no default resource."),
        (TOPIC, "..", ErrorCode.INVALID_TOPIC_EXCEPTION, "A topic cannot be named '..'."),
        (BROKER, "", None, ""),
        (BROKER, "0", None, ""),
        (BROKER, "2147483647", None, ""),
        (BROKER, "-1", INVALID_REQUEST, "A broker's id is not negative, as -1 is."),
        (BROKER, "x", INVALID_REQUEST, "The name of a broker is its id, a whole number, not 'x'."),
        (
            BROKER,
            "2147483648",
            INVALID_REQUEST,
            "The name of a broker is its id, a whole number, not '2147483648'.",
        ),
        (CLIENT_METRICS, "t", None, ""),
        (CLIENT_METRICS, "", INVALID_REQUEST, "A subscription needs a name."),
        (GROUP, "t", None, ""),
        (GROUP, "", INVALID_REQUEST, "A group's name is needed: groups have no default resource."),
        (LOGGER, "1", INVALID_REQUEST, "Resources of type 8 have no configs here."),
    ],
)
def test_the_name_of_a_resource_must_be_valid_for_its_type(
    kind: int, name: str, code: ErrorCode | None, text: str
) -> None:
    assert refusal(kind, {}, name=name) == (None if code is None else (code, text))


def lag(least: int, greatest: int) -> dict[str, str]:
    return {"min.compaction.lag.ms": str(least), "max.compaction.lag.ms": str(greatest)}


@pytest.mark.parametrize(
    ("configs", "existing", "text"),
    [
        ({"no.such": "1"}, {}, "Unknown topic config name: no.such"),
        (
            {"retention.ms": "x"},
            {},
            "Invalid value x for configuration retention.ms: must be a whole number of 64 bits",
        ),
        (lag(5, 5), {}, None),
        (lag(6, 5), {}, "min.compaction.lag.ms (6) is greater than max.compaction.lag.ms (5)."),
        ({}, {"remote.storage.enable": "false"}, None),
        (
            {"remote.storage.enable": "false"},
            {"remote.storage.enable": "TRUE"},
            "remote.storage.enable=false would leave data in the remote storage: to delete it, set "
            "remote.log.delete.on.disable=true as well; to keep it for reading, let remote.storage.enable be "
            "true and set remote.log.copy.disable=true.",
        ),
        ({"remote.log.delete.on.disable": "true"}, {"remote.storage.enable": "true"}, None),
    ],
)
def test_a_topics_configs_must_fit_each_other(
    configs: dict[str, str], existing: dict[str, str], text: str | None
) -> None:
    assert refusal(TOPIC, configs, existing=existing) == (text and (INVALID_CONFIG, text))


def test_a_topics_configs_must_fit_those_inherited_from_the_server() -> None:
    server = {"log.cleaner.max.compaction.lag.ms": "5"}
    assert refusal(TOPIC, {"min.compaction.lag.ms": "5"}, node=server) is None
    assert refusal(TOPIC, {"min.compaction.lag.ms": "6"}, node=server) is not None


def retention(unit: str, whole: int, local: int, **more: str) -> dict[str, str]:
    return {f"retention.{unit}": str(whole), f"local.retention.{unit}": str(local)} | more


NO_COPY = {"remote.log.copy.disable": "true"}
UNLIMITED_SIZE = "local.retention.bytes ({}) must be limited, to at most retention.bytes ({})."
UNLIMITED_TIME = "local.retention.ms ({}) must be limited, to at most retention.ms ({})."
NOT_COPIED = (
    "With remote.log.copy.disable=true nothing more goes to the remote storage: "
    "local.retention.{0} ({1}) must be -2 or equal retention.{0} ({2})."
)


@pytest.mark.parametrize(
    ("configs", "text"),
    [
        ({}, None),
        ({"cleanup.policy": "delete"}, None),
        ({"cleanup.policy": ""}, None),
        (
            {"cleanup.policy": "compact"},
            "remote.storage.enable=true needs cleanup.policy=delete, or an empty cleanup.policy.",
        ),
        (
            {"cleanup.policy": "delete,compact"},
            "remote.storage.enable=true needs cleanup.policy=delete, or an empty cleanup.policy.",
        ),
        (retention("bytes", 100, 100), None),
        (retention("bytes", 100, 101), UNLIMITED_SIZE.format(101, 100)),
        (retention("bytes", 100, -1), UNLIMITED_SIZE.format(-1, 100)),
        (retention("bytes", 100, -2), None),
        (retention("bytes", 0, -2), None),
        (retention("bytes", 0, 1), UNLIMITED_SIZE.format(1, 0)),
        (retention("bytes", -1, 100), None),
        (retention("bytes", -2, 100), None),
        (retention("ms", 100, 100), None),
        (retention("ms", 100, 101), UNLIMITED_TIME.format(101, 100)),
        (retention("ms", 100, -1), UNLIMITED_TIME.format(-1, 100)),
        (retention("ms", 1, 2), UNLIMITED_TIME.format(2, 1)),
        (retention("ms", 100, -2), None),
        (retention("ms", -1, 100), None),
        (retention("bytes", 100, 100) | NO_COPY, None),
        (retention("bytes", 100, -2) | NO_COPY, None),
        (retention("bytes", 100, 99) | NO_COPY, NOT_COPIED.format("bytes", 99, 100)),
        (retention("ms", 100, 100) | NO_COPY, None),
        (retention("ms", 100, -2) | NO_COPY, None),
        (retention("ms", 100, 99) | NO_COPY, NOT_COPIED.format("ms", 99, 100)),
    ],
)
def test_a_topic_with_remote_storage_keeps_less_locally_than_in_all__kip405_kip950(
    configs: dict[str, str], text: str | None
) -> None:
    proposed = {"remote.storage.enable": "true"} | configs
    assert refusal(TOPIC, proposed, node=TIERED) == (text and (INVALID_CONFIG, text))


def test_a_topic_has_remote_storage_only_if_the_servers_have_it__kip405() -> None:
    assert refusal(TOPIC, {"remote.storage.enable": "true"}) == (
        INVALID_CONFIG,
        "remote.storage.enable=true needs remote.log.storage.system.enable=true on the servers.",
    )


MATCH_TEXT = (
    "match={}: must be <parameter>=<regular expression>, with a parameter of client_id, client_instance_id, "
    "client_software_name, client_software_version, client_source_address, client_source_port."
)


@pytest.mark.parametrize(
    ("configs", "refused"),
    [
        ({}, None),
        ({"no.such": "1"}, (INVALID_REQUEST, "Unknown client metrics configuration: no.such")),
        ({"interval.ms": "100"}, None),
        ({"interval.ms": "3600000"}, None),
        (
            {"interval.ms": "99"},
            (INVALID_REQUEST, "interval.ms must be from 100 to 3600000 (an hour), not 99."),
        ),
        (
            {"interval.ms": "3600001"},
            (INVALID_REQUEST, "interval.ms must be from 100 to 3600000 (an hour), not 3600001."),
        ),
        (
            {"interval.ms": "x"},
            (
                INVALID_CONFIG,
                "Invalid value x for configuration interval.ms: must be a whole number of 32 bits",
            ),
        ),
        ({"match": ""}, None),
        ({"match": "client_instance_id=a, client_source_port=1"}, None),
        ({"match": "client_id = a.* , client_software_name=b"}, None),
        ({"match": "client_software_version=1,client_source_address=::1"}, None),
        ({"match": "client_id=[a"}, (INVALID_CONFIG, MATCH_TEXT.format("client_id=[a"))),
        ({"match": "client_id"}, (INVALID_CONFIG, MATCH_TEXT.format("client_id"))),
        ({"match": "client_id=a=b"}, (INVALID_CONFIG, MATCH_TEXT.format("client_id=a=b"))),
        ({"match": "user=a"}, (INVALID_CONFIG, MATCH_TEXT.format("user=a"))),
        ({"match": "client_id=a,user=a"}, (INVALID_CONFIG, MATCH_TEXT.format("user=a"))),
    ],
)
def test_a_metrics_subscription_needs_a_valid_interval_and_matches__kip714(
    configs: dict[str, str], refused: tuple[ErrorCode, str] | None
) -> None:
    assert refusal(CLIENT_METRICS, configs) == refused


@pytest.mark.parametrize(
    ("text", "is_pattern"),
    [
        ("a.*", True),
        ("[a", False),
        ("(a", False),
        ("*", False),
        (r"\p{Lower}\P{^Alpha}\pL\p{script=Greek}", True),
        (r"\h\H\R\v\V\X\z\G", True),
        (r"\Q[(\E", True),
        ("\\Q[(\n", True),
        (r"\Qa\E[", False),
        ("(?<name>a)", True),
        ("(?<=a)b(?<!c)", True),
        ("a{9999999999}", False),
        # A replacement of Java's syntax must fit into the same place of an expression.
        (r"[A-\p{L}]", False),
        (r"\Qa\E*", True),
        (r"\Q\E*", False),
        ("(?<={1}a)", False),
        ("(?<!{1}a)", False),
    ],
)
def test_a_pattern_is_accepted_if_java_accepts_it(text: str, is_pattern: bool) -> None:
    assert is_java_pattern(text) is is_pattern


GROUP_KEYS = [
    # group config, the server's limits, and their defaults
    ("consumer.heartbeat.interval.ms", "consumer.{}.heartbeat.interval.ms", 5_000, 15_000),
    ("consumer.session.timeout.ms", "consumer.{}.session.timeout.ms", 45_000, 60_000),
    ("share.heartbeat.interval.ms", "share.{}.heartbeat.interval.ms", 5_000, 15_000),
    ("share.session.timeout.ms", "share.{}.session.timeout.ms", 45_000, 60_000),
    ("share.record.lock.duration.ms", "share.{}.record.lock.duration.ms", 15_000, 60_000),
    ("streams.heartbeat.interval.ms", "streams.{}.heartbeat.interval.ms", 5_000, 15_000),
    ("streams.session.timeout.ms", "streams.{}.session.timeout.ms", 45_000, 60_000),
]


@pytest.mark.parametrize(("key", "limit", "least", "greatest"), GROUP_KEYS)
def test_a_groups_configs_must_be_within_the_servers_limits(
    key: str, limit: str, least: int, greatest: int
) -> None:
    low, high = (f"group.{limit.format(end)}" for end in ("min", "max"))
    assert refusal(GROUP, {key: str(least)}) is None
    assert refusal(GROUP, {key: str(greatest)}) is None
    assert refusal(GROUP, {key: str(least - 1)}) == (
        INVALID_CONFIG,
        f"{key} ({least - 1}) must be at least {low} ({least}).",
    )
    assert refusal(GROUP, {key: str(greatest + 1)}) == (
        INVALID_CONFIG,
        f"{key} ({greatest + 1}) must be at most {high} ({greatest}).",
    )


STANDBY = "group.streams.max.standby.replicas"
SESSION = "{0}.session.timeout.ms (45000) must be greater than {0}.heartbeat.interval.ms (45000)."


@pytest.mark.parametrize(
    ("configs", "node", "refused"),
    [
        ({"no.such": "1"}, {}, "Unknown group config name: no.such"),
        (
            {"consumer.session.timeout.ms": "x"},
            {},
            "Invalid value x for configuration consumer.session.timeout.ms: must be a whole number of 32 "
            "bits",
        ),
        ({"streams.num.standby.replicas": "0"}, {}, None),
        ({"streams.num.standby.replicas": "2"}, {}, None),
        ({"streams.num.standby.replicas": "3"}, {STANDBY: "3"}, None),
        (
            {"streams.num.standby.replicas": "3"},
            {},
            f"streams.num.standby.replicas (3) must be at most {STANDBY} (2).",
        ),
        (
            {"share.assignment.interval.ms": "15001"},
            {},
            "share.assignment.interval.ms (15001) must be at most "
            "group.share.max.assignment.interval.ms (15000).",
        ),
        # A group inherits the interval between assignments, unchecked.
        ({}, {"group.consumer.max.assignment.interval.ms": "0"}, None),
        *[
            (
                {f"{kind}.heartbeat.interval.ms": "45000"},
                {f"group.{kind}.max.heartbeat.interval.ms": "45000"},
                SESSION.format(kind),
            )
            for kind in ("consumer", "share", "streams")
        ],
        (
            {"consumer.heartbeat.interval.ms": "46000"},
            {
                "group.consumer.max.heartbeat.interval.ms": "46000",
                "group.consumer.session.timeout.ms": "46001",
            },
            None,
        ),
        (
            {"consumer.heartbeat.interval.ms": "44999"},
            {"group.consumer.max.heartbeat.interval.ms": "45000"},
            None,
        ),
    ],
)
def test_a_groups_configs_must_fit_each_other_and_the_servers(
    configs: dict[str, str], node: dict[str, str], refused: str | None
) -> None:
    assert refusal(GROUP, configs, node=node) == (refused and (INVALID_CONFIG, refused))


def test_a_long_text_is_cut_to_fit_into_an_answer() -> None:
    assert cut("x" * 1000) == "x" * 1000
    assert cut("x" * 1001) == "x" * 1000 + "…"
    for kind, key in ((TOPIC, INVALID_CONFIG), (CLIENT_METRICS, INVALID_REQUEST)):
        refused: Any = refusal(kind, {"n" * 2000: "1"})
        assert (refused[0], len(refused[1])) == (key, 1001)
