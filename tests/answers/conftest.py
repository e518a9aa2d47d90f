"""The controller with a client listener, as the tests of the metadata topic's node make it."""

from __future__ import annotations

from tests.metadata_topic_node.conftest import controller as controller
