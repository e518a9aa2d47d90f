"""The controller with a client listener that several modules share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.metadata_topic_node.clients import ClientHarness


@pytest.fixture
def controller(tmp_path: Path) -> ClientHarness:
    """A leader with broker 1 and the topic t."""
    leader = ClientHarness(tmp_path)
    leader.start()
    leader.unfenced(1)
    leader.create("t")
    return leader
