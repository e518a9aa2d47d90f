"""New connections over the rate wait as at a stock node, by listener and in all (KIP-612)."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from testkit.process import HOST
from tests.kafka.broker.pair import BrokerPair

pytestmark = pytest.mark.kafka

RATE = "max.connection.creation.rate"
SET, DELETE, BROKER = 0, 1, 4
API_VERSIONS = bytes.fromhex("0000000a001200000000000affff")
WINDOW_S = 1.0  # of a rate; a burst that begins with another window waits differently


@contextmanager
def configured(pair: BrokerPair, **rates: int) -> Iterator[None]:
    """Give both nodes the rates, by key, and take them back."""
    for operation in (SET, DELETE):
        configs = [AlterableConfig(key, operation, str(value)) for key, value in rates.items()]
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(BROKER, "1", configs)])
        for answer in pair.ask(request, 1):
            assert not answer.responses[0].error_code, answer  # type: ignore[union-attr]
        time.sleep(0.3)
        if operation == SET:
            yield


def burst(port: int, count: int) -> list[float]:
    """Open connections at once; the times of their answers, in seconds since the first."""
    with selectors.DefaultSelector() as selector, ExitStack() as opened:
        for _ in range(count):
            sock = opened.enter_context(socket.create_connection((HOST, port)))
            sock.sendall(API_VERSIONS)
            selector.register(sock, selectors.EVENT_READ)
        answered: list[float] = []
        while selector.get_map():
            for key, _ in selector.select(30):
                assert key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
                answered.append(time.monotonic())
                selector.unregister(key.fileobj)
    return [round(at - answered[0], 1) for at in answered]


def test_a_burst_waits_as_at_a_stock_node_but_not_that_of_brokers(pair: BrokerPair) -> None:
    """The listener among brokers has the rate for itself; those of controllers share it with clients."""
    bursts: dict[str, list[list[float]]] = {}
    with configured(pair, **{RATE: 3, f"listener.name.controller.{RATE}": 1}):
        for side in pair.sides:
            bursts.setdefault("clients", []).append(burst(side.users_port, 33))
            bursts.setdefault("brokers", []).append(burst(side.clients_port, 15))
            bursts.setdefault("controllers", []).append(burst(side.node.port, 3))
    for kafka, kraftd in (bursts["brokers"], bursts["controllers"]):
        assert all(abs(one - other) < 2 * WINDOW_S for one, other in zip(kafka, kraftd, strict=True)), bursts
    # Connections from before the burst count too, so clients are not compared one by one.
    assert min(times[-1] for times in bursts["clients"]) > 0.3
