"""The quorum that this folder's tests share: three kraftd controllers that serve clients, and broker 1."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testkit.node import Kind
from testkit.quorum import Quorum
from tests.kafka.clients.listeners import Addresses, serve_clients


class Served(Quorum):
    """`clients` are the addresses of the client listeners by controller."""

    addresses: dict[int, Addresses]

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers of clients: all controllers, never the broker."""
        return ",".join(one.clients for one in self.addresses.values())

    @property
    def log_bootstrap(self) -> str:
        """The bootstrap servers of clients whose Metadata answers name no broker."""
        return ",".join(one.log for one in self.addresses.values())


@pytest.fixture(scope="package")
def served(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    if kind != "kraftd":
        pytest.skip("Apache Kafka's controllers serve no clients")
    with Served(tmp_path_factory.mktemp("served"), dict.fromkeys((100, 101, 102), "kraftd")) as quorum:
        quorum.addresses = {one.node_id: serve_clients(one) for one in quorum.controllers.values()}
        quorum.start_controllers()
        quorum.start_brokers(1)
        yield quorum
