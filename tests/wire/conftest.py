"""One oracle process for all tests of the wire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kafka.java import JavaMissing
from tests.wire.oracle import Oracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """Kafka's own codecs."""
    try:
        process = Oracle()
    except JavaMissing as error:
        pytest.skip(f"not run: {error}")
    yield process
    process.close()
