"""The two whole Kafkas that this folder's tests share: one node of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testkit.cluster import random_uuid
from testkit.node import CombinedNode, Kind

PROPERTIES = {
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 3,
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 30_000,  # a busy machine fences neither: epochs of coordinators are compared
    "auto.create.topics.enable": "false",
    "unstable.api.versions.enable": "true",
    "num.network.threads": 1,
    "num.io.threads": 2,
}


@contextmanager
def one_of_each(home: Path) -> Iterator[dict[Kind, CombinedNode]]:
    """A node of each kind, both ready."""
    kinds: tuple[Kind, ...] = ("kraftd", "apache")
    nodes: dict[Kind, CombinedNode] = {one: CombinedNode(one, home / one, PROPERTIES) for one in kinds}
    try:
        for node in nodes.values():
            node.format(random_uuid(), "--standalone")
            node.start()
        for node in nodes.values():
            node.wait_ready()
        yield nodes
    finally:
        for node in nodes.values():
            node.kill()


@pytest.fixture(scope="package")
def whole_kafkas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Kind, CombinedNode]]:
    with one_of_each(tmp_path_factory.mktemp("transactions")) as nodes:
        yield nodes
