"""Dynamic configs of servers, without Java: which take effect on a server, and which values they hide."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from kraftd.configdef.node import NodeConfig
from kraftd.controller.configs.cordoned import check_cordoned_log_dirs
from kraftd.controller.configs.dynamic import dynamic_server_configs, overlaid, server_config
from kraftd.ground.refusal import Refusal
from kraftd.messages.config_record import ConfigRecord
from kraftd.metadata.metadata_version import LATEST_PRODUCTION
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord
from tests.controller.cluster import CONTROLLER_ID, Cluster

CORDONED = "cordoned.log.dirs"


@pytest.mark.parametrize(
    ("name", "text", "of_the_cluster", "of_the_node"),
    [
        ("log.retention.ms", "5", True, True),
        ("log.retention.ms", "x", False, False),
        ("log.retention.hours", "5", False, False),  # not dynamic: it needs a restart
        ("leader.replication.throttled.rate", "5", True, True),  # exists as a dynamic config only
        ("leader.replication.throttled.rate", "x", False, False),
        ("plugins.key", "x", True, True),
        ("principal.builder.class", "a.B", False, True),
        ("ssl.keystore.location", "/k", False, False),  # needs a listener's prefix
        ("listener.name.client.ssl.keystore.location", "/k", False, True),
        ("listener.name.client.max.connections", "5", True, True),
        ("listener.name.client.max.connections", "x", False, False),
        ("listener.name.client.plugins.key", "x", False, True),
        ("listener.name.client.node.id", "x", False, True),  # no key of a listener: not parsed
        ("listener.name.a.b.max.connections", "x", False, True),  # no key of a listener that Kafka knows
    ],
)
def test_a_server_applies_the_dynamic_configs_of_its_scope__kip226(
    name: str, text: str, of_the_cluster: bool, of_the_node: bool
) -> None:
    obeyed = {name: text}
    assert dynamic_server_configs(obeyed, per_node=False) == (obeyed if of_the_cluster else {})
    assert dynamic_server_configs(obeyed, per_node=True) == (obeyed if of_the_node else {})


def test_an_invalid_config_does_not_hide_the_others() -> None:
    configs = {"log.retention.ms": "x", "log.roll.ms": "7"}
    assert dynamic_server_configs(configs, per_node=True) == {"log.roll.ms": "7"}


def test_a_dynamic_config_hides_the_other_names_of_its_setting_and_nothing_else() -> None:
    static = NodeConfig({"log.retention.hours": "1", "log.retention.minutes": "2", "log.roll.hours": "3"})
    shown = overlaid(static, {"log.retention.ms": "5", "log.roll.ms": "6"}, {"log.roll.ms": "7"})
    assert shown == {"log.retention.ms": "5", "log.roll.ms": "7"}
    assert isinstance(shown, NodeConfig)
    assert overlaid(static, {}, {"log.roll.ms": "7"}) == {
        "log.retention.hours": "1",
        "log.retention.minutes": "2",
        "log.roll.ms": "7",
    }
    assert overlaid(static, {}, {}) is static


def test_a_nodes_configs_precede_the_clusters_which_precede_its_file() -> None:
    cluster = Cluster()
    static = server_config(cluster.ctx)
    assert static == {}
    cluster.config("log.retention.ms", "5")
    cluster.config("principal.builder.class", "a.B")  # for single nodes only
    assert server_config(cluster.ctx) == {"log.retention.ms": "5"}
    for name, text in (("log.retention.ms", "6"), ("principal.builder.class", "c.D")):
        cluster.apply([VersionedRecord(ConfigRecord(4, str(CONTROLLER_ID), name, text), 0)])
    assert server_config(cluster.ctx) == {"log.retention.ms": "6", "principal.builder.class": "c.D"}
    cluster.config("log.retention.ms", None)
    cluster.config("principal.builder.class", None)
    assert server_config(cluster.ctx) == {"log.retention.ms": "6", "principal.builder.class": "c.D"}


def refusal(
    cluster: Cluster, value: str | None, current: Mapping[str, str], *, forwarded: bool = False
) -> Refusal | None:
    try:
        check_cordoned_log_dirs(cluster.ctx, CORDONED, value, current, forwarded=forwarded)
    except Refusal as refused:
        return refused
    return None


@pytest.mark.parametrize(
    ("before", "after", "is_taken"),
    [
        (None, "/a", False),
        (None, " ", True),
        (None, None, True),
        ("", "/a", False),
        ("/a,/b", "/a,/b", True),
        (" /a , /b ", "/b", True),
        ("/a,/b", " /b\t, /a ", True),
        ("/a,/b", "/a,/c", False),
        ("/a,/b", "/b,,/a", False),
        ("/a,/b", None, True),
    ],
)
def test_only_a_broker_adds_a_cordoned_directory_of_its_own__kip1066(
    before: str | None, after: str | None, is_taken: bool
) -> None:
    cluster = Cluster()
    current = {} if before is None else {CORDONED: before}
    refused = refusal(cluster, after, current)
    assert (refused is None) == is_taken
    if refused is not None:
        assert refused.code == ErrorCode.INVALID_CONFIG
        assert re.search("to add one, ask the broker", str(refused))
    assert refusal(cluster, after, current, forwarded=True) is None


def test_directories_can_be_cordoned_from_4_3_iv0_on__kip1066() -> None:
    older = Cluster(metadata_version=LATEST_PRODUCTION - 1)
    for forwarded in (False, True):
        refused = refusal(older, "/a", {CORDONED: "/a"}, forwarded=forwarded)
        assert refused is not None
        assert refused.code == ErrorCode.INVALID_CONFIG
        assert re.search("4.3-IV0", str(refused))
    check_cordoned_log_dirs(older.ctx, "log.dirs", "/a", {}, forwarded=False)
    assert refusal(Cluster(metadata_version=LATEST_PRODUCTION), "/a", {CORDONED: "/a"}) is None
