"""One engine with the image of this checkout, for all tests of containers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.container.engine import Engine

ROOT = Path(__file__).resolve().parents[2]
TAG = "localhost/kraftd:test"


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine that has built the image from this checkout."""
    engine = Engine(tmp_path_factory.mktemp("engine"))
    try:
        engine.import_base()
        engine.build(ROOT, "docker/Dockerfile", TAG)
        yield engine
    finally:
        engine.close()
