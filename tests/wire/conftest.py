"""One oracle process for all tests of the wire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.wire.oracle import Oracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """Kafka's own codecs."""
    process = Oracle()
    yield process
    process.close()
