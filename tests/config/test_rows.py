"""Code reads every key that the docs list as used, and every setting derived from such keys."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import kraftd
from kraftd.answers.settings import ClientSettings
from kraftd.broker_node.fetching.followed import FetchSettings
from kraftd.config.broker_keys import OF_BROKERS
from kraftd.config.daemon import ROWS, DaemonConfig
from kraftd.config.keys import OF_LISTENERS
from kraftd.config.security import (
    ClientSecurity,
    ListenerSecurity,
    SecurityConfig,
    TlsSettings,
    TokenSettings,
)
from kraftd.configdef.node import NodeConfig
from kraftd.controller.context import ControllerSettings
from kraftd.controller.context import TokenSettings as DelegationTokenSettings
from kraftd.fetch.session_cache import CacheLimits
from kraftd.groups.config import GroupConfig
from kraftd.groups.transactions.config import TransactionConfig
from kraftd.host.broker_logs.broker_logs import Schedules
from kraftd.host.upkeep.retention import RetentionRules
from kraftd.host.upkeep.snapshot_keeper import KeeperSettings
from kraftd.log.settings import LogSettings
from kraftd.net.limits import Limits
from kraftd.raft.config import RaftConfig
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.security.sasl.client_credentials import RefreshRules, TokenGrant
from kraftd.security.sasl.jwt_validation import TokenRules
from kraftd.security.tls_settings import StoreSettings

PACKAGE = Path(kraftd.__file__).parent
# Here keys are named without being used.
DEFINITIONS = (
    "config/daemon.py",
    "config/own_token_keys.py",
    "config/security_rows.py",
    "config/keys.py",
    "configdef/facts.py",
)
# Settings that are passed on whole: code must read each of their fields, too.
HANDED_ON: tuple[type[Any], ...] = (
    ControllerSettings,
    RaftConfig,
    Limits,
    ClientSettings,
    KeeperSettings,
    RetentionRules,
    SecurityConfig,
    ListenerSecurity,
    ClientSecurity,
    TlsSettings,
    TokenSettings,
    AuthorizerSettings,
    CacheLimits,
    DelegationTokenSettings,
    LogSettings,
    RefreshRules,
    StoreSettings,
    TokenGrant,
    TokenRules,
    FetchSettings,
    GroupConfig,
    Schedules,
    TransactionConfig,
)


# Keys of these settings that nodes without the broker role read as well.
ELSEWHERE_TOO = {
    "group.coordinator.rebalance.protocols",
    *(
        f"group.{kind}.{bound}{timing}.ms"
        for kind in ("consumer", "share")
        for timing in ("session.timeout", "heartbeat.interval", "assignment.interval")
        for bound in ("", "min.", "max.")
    ),
    "replica.fetch.response.max.bytes",
    "replica.high.watermark.checkpoint.interval.ms",
    "request.timeout.ms",
}

# These read the keys of one listener.
READERS_OF_LISTENERS = (
    "config/checks.py",
    "config/security.py",
    "config/security_keys.py",
    "config/own_token.py",
)


@cache
def uses() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The names of attributes that code reads, including those of configs, and its string literals."""
    attributes, of_configs, literals = set(), set(), set()
    for path in PACKAGE.rglob("*.py"):
        file = path.relative_to(PACKAGE).as_posix()
        if file in DEFINITIONS or file.startswith("messages/"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                attributes.add(node.attr)
                owner = node.value
                name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
                if name in ("config", "_config"):
                    of_configs.add(node.attr)
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "settings":
                kind, *prefix = node.args
                start = prefix[0].value if prefix else ""
                for made in HANDED_ON:
                    if made.__name__ == getattr(kind, "id", ""):
                        of_configs |= {name for one in made.__annotations__ for name in (one, start + one)}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                literals.add(node.value)
    return frozenset(attributes), frozenset(of_configs), frozenset(literals)


def targets_read_by_daemon_config() -> set[str]:
    """The targets that DaemonConfig's own properties combine."""
    tree = ast.parse((PACKAGE / "config" / "daemon.py").read_text())
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "DaemonConfig")
    return {node.attr for node in ast.walk(found) if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize("key", ROWS)
def test_a_documented_key_is_read_by_something(key: str) -> None:
    _, of_configs, literals = uses()
    assert ROWS[key].target in of_configs | targets_read_by_daemon_config() or key in literals


@pytest.mark.parametrize("key", sorted(OF_LISTENERS))
def test_a_key_that_a_listener_may_have_is_read_for_listeners(key: str) -> None:
    assert any(f'"{key}"' in (PACKAGE / file).read_text() for file in READERS_OF_LISTENERS)


@pytest.mark.parametrize("settings", HANDED_ON, ids=lambda settings: settings.__name__)
def test_every_field_of_settings_that_are_passed_on_is_read(settings: type[Any]) -> None:
    attributes, _, _ = uses()
    fields = getattr(settings, "__struct_fields__", None) or settings._fields
    assert set(fields) <= attributes


@pytest.mark.parametrize("kind", [GroupConfig, TransactionConfig])
def test_settings_named_after_keys_have_kafkas_defaults(kind: type[Any]) -> None:
    assert NodeConfig({}).settings(kind) == kind()


@pytest.mark.parametrize("kind", [GroupConfig, TransactionConfig, FetchSettings, Schedules])
def test_each_field_of_settings_by_name_is_a_key_of_brokers(kind: type[Any]) -> None:
    keys = {name.replace("_", ".") for name in kind.__annotations__}
    of_no_key = {"max.batch.bytes", "members.max.bytes", "deletion.ms", "assignors"}
    assert keys - of_no_key <= OF_BROKERS | ELSEWHERE_TOO


def test_a_row_read_from_the_class_is_the_row_itself() -> None:
    assert DaemonConfig.num_partitions.key == "num.partitions"
    assert repr(DaemonConfig.num_partitions) == "<Row num.partitions -> num_partitions>"
