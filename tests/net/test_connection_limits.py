"""Connections are limited as in Kafka: in all, by listener and by address, also by dynamic configs."""

from __future__ import annotations

import pytest

from kraftd.net.connection_limits import ConnectionLimits
from kraftd.net.limits import Limits
from tests.net.test_connection import Peer


def test_dynamic_configs_override_the_file_the_nodes_own_first() -> None:
    own: dict[str, str] = {}
    every: dict[str, str] = {}
    file = Limits(
        max_connections=10,
        openable_connections=50,
        reserved_connections=1,
        max_connections_per_ip=5,
        max_connections_per_ip_overrides={"10.0.0.1": 6},
        max_connections_by_listener={"A": 7},
    )
    limits = ConnectionLimits(file, lambda: (own, every))

    def found() -> tuple[object, ...]:
        addresses = [limits.of_address(host) for host in ("10.0.0.1", "::2", "10.0.0.3")]
        return limits.of_all(), limits.for_strangers(), limits.of_listener("A"), *addresses

    assert found() == (10, 9, 7, 6, 5, 5)
    every |= {"max.connections": "40", "max.connections.per.ip": "3", "listener.name.a.max.connections": "2"}
    assert found() == (40, 36, 2, 6, 3, 3)
    own |= {"max.connections": "99", "max.connections.per.ip.overrides": "[::2]:8,::ffff:10.0.0.3:9,nonsense"}
    assert found() == (50, 45, 2, 3, 8, 9)
    own |= {"max.connections": "many"}
    assert found()[0] == 10
    assert repr(limits) == "<ConnectionLimits 10 in all>"


def test_a_listener_at_its_limit_refuses_connections_until_one_ends() -> None:
    peer = Peer(max_connections_by_listener={"CONTROLLER": 1})
    first, _ = peer.connect()
    refused, transport = peer.connect()
    refused.connection_lost(None)
    assert transport.closed
    assert peer.lost == ["CONTROLLER has 1 connections, and may have 1 (refused so far: 1)"]
    first.connection_lost(None)
    assert not peer.connect()[1].closed


@pytest.mark.parametrize(("dynamic", "closed"), [("3", []), ("1", ["b", "c"]), ("0", ["b", "c"])])
def test_a_lower_limit_closes_the_connections_that_were_silent_longest(
    dynamic: str, closed: list[str]
) -> None:
    peer = Peer(is_known={"a"}.__contains__)
    made = {host: peer.connect(host) for host in ("a", "b", "c")}
    peer.connections.counts.dynamic = lambda: ({"max.connections": "3"},)
    peer.connections.sweep(0)
    assert not any(transport.closed for _, transport in made.values())
    made["c"][0].reads += 1
    peer.connections.sweep(1_000)
    peer.connections.counts.dynamic = lambda: ({"max.connections": dynamic},)
    peer.connections.sweep(1_000)
    assert [host for host, (_, transport) in made.items() if transport.closed] == closed


def test_of_two_connections_the_one_that_was_silent_longer_is_closed() -> None:
    peer = Peer()
    (first, first_transport), (_, second_transport) = peer.connect(), peer.connect()
    peer.connections.sweep(0)
    first.reads += 1
    peer.connections.sweep(1_000)
    peer.connections.counts.dynamic = lambda: ({"max.connections": "1"},)
    peer.connections.sweep(1_000)
    assert (first_transport.closed, second_transport.closed) == (False, True)
