"""The controller with a client listener that several modules share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.client_node.clients import ClientHouse


@pytest.fixture
def controller(tmp_path: Path) -> ClientHouse:
    """A leader with broker 1 and the topic t."""
    leader = ClientHouse(tmp_path)
    leader.start()
    leader.unfenced(1)
    leader.create("t")
    return leader
