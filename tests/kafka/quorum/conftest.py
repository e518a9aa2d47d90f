"""The quorum that this folder's tests share; after each test, stopped nodes are started again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testkit.node import Kind
from testkit.quorum import Quorum


@pytest.fixture(scope="package")
def three(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    """Three controllers of one kind in a dynamic quorum, and broker 1."""
    with Quorum(tmp_path_factory.mktemp("three"), dict.fromkeys((100, 101, 102), kind)) as quorum:
        quorum.start_controllers()
        quorum.start_brokers(1)
        yield quorum


@pytest.fixture
def healed(three: Quorum) -> Iterator[Quorum]:
    yield three
    three.heal()
