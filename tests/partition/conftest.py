"""One process of Kafka's log for all tests of partitions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testkit.java import JavaMissing
from tests.partition.oracle import LogOracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[LogOracle]:
    """Kafka's own log."""
    try:
        process = LogOracle()
    except JavaMissing as error:
        pytest.skip(f"not run: {error}")
    yield process
    process.close()
