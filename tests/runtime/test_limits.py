"""The limits of a daemon are those of its configuration."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from kraftd.config import DaemonConfig, load
from kraftd.net.connection_limits import ConnectionLimits
from kraftd.net.connection_rates import ConnectionRates
from kraftd.runtime.assembly import StartupError, limits, log_files_limit
from kraftd.runtime.runner import connection_windows

ROOT = Path(__file__).resolve().parent.parent.parent


def configured(*overrides: str) -> DaemonConfig:
    return load(ROOT / "config" / "controller.properties", overrides)


def test_connection_overrides_apply_by_address_and_names_are_resolved() -> None:
    overrides = "max.connections.per.ip.overrides=10.0.0.1:5,localhost:7,[::2]:9"
    found = ConnectionLimits(limits(configured("max.connections.per.ip=3", overrides)))
    assert [found.of_address(ip) for ip in ("10.0.0.1", "127.0.0.1", "::2", "10.0.0.2")] == [
        5,
        7,
        9,
        3,
    ]


def test_an_override_of_an_unknown_host_prevents_the_start() -> None:
    config = configured("max.connections.per.ip.overrides=no.such.host.invalid:5")
    with pytest.raises(
        StartupError, match=r"max\.connections\.per\.ip\.overrides=no\.such\.host\.invalid:5: "
    ):
        limits(config)


@pytest.mark.parametrize(("files", "connections"), [(64, 32), (80, 40), (256, 128), (1_024, 896)])
def test_the_connection_limit_reserves_file_descriptors_for_the_log(
    files: int, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert limits(configured()).max_connections == connections


def test_a_brokers_logs_have_a_share_of_the_file_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1_024, 1_024))
    broker = load(ROOT / "config" / "server.properties", ())
    assert (log_files_limit(), limits(broker).max_connections) == (256, 640)


def test_rates_of_new_connections_are_of_all_listeners_and_of_single_ones() -> None:
    config = configured(
        "max.connection.creation.rate=100", "listener.name.controller.max.connection.creation.rate=2"
    )
    rates = ConnectionRates(config.max_connection_creation_rate, config.connection_creation_rates)
    assert [bool(rates.accept("CONTROLLER", 0)) for _ in range(21)] == [False] * 20 + [True]
    assert not rates.accept("OTHER", 0)


def test_rates_of_connections_have_the_windows_of_a_brokers_file() -> None:
    windows = ("quota.window.size.seconds=2", "quota.window.num=5")
    broker = load(ROOT / "config" / "server.properties", windows)
    assert (connection_windows(broker), connection_windows(configured())) == ((2_000, 5), (1_000, 11))


@pytest.mark.parametrize(("names", "protected"), [("PLAINTEXT", ""), ("PLAINTEXT,OTHER", "PLAINTEXT")])
def test_the_listener_among_brokers_is_one_beside_those_of_clients(names: str, protected: str) -> None:
    every = [*names.split(","), "CONTROLLER"]
    addresses = ",".join(f"{name}://localhost:{9000 + at}" for at, name in enumerate(every))
    settings = (
        f"listeners={addresses}",
        f"advertised.listeners={addresses}",
        "listener.security.protocol.map=" + ",".join(f"{name}:PLAINTEXT" for name in every),
        "inter.broker.listener.name=PLAINTEXT",
        "kraftd.client.listener.names=",
    )
    assert load(ROOT / "config" / "server.properties", settings).listener_among_brokers == protected


def test_connections_are_limited_in_all_and_at_single_listeners() -> None:
    config = configured("max.connections=9", "listener.name.controller.max.connections=2")
    found = ConnectionLimits(limits(config))
    assert (found.of_all(), found.of_listener("CONTROLLER"), found.of_listener("OTHER")) == (9, 2, None)
