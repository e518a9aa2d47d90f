"""The pair of nodes that this folder's tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kafka.broker.pair import BrokerPair


@pytest.fixture(scope="package")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerPair]:
    with BrokerPair(tmp_path_factory.mktemp("pair")) as pair:
        yield pair
