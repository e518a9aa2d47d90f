"""Registries: an API key may have another handler on another kind of listener."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.answers.settings import ClientSettings
from kraftd.controller_node.routes import ROWS, controller_registry
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.metadata_topic_node.node import MetadataTopicNode
from kraftd.metadata_topic_node.routes import client_registry
from kraftd.requests.events import FramesReceived
from kraftd.requests.intake import NotServed, read_call
from kraftd.requests.registry import Handle, Registry, Route
from kraftd.wire.api import ApiKey, listeners
from kraftd.wire.frames import encode_request
from tests.metadata_topic_node.clients import ClientHarness


def route(key: ApiKey, handle: Handle = lambda call: None) -> Route:
    return Route(key, None, None, lambda: handle)


def test_two_handlers_of_one_api_are_refused() -> None:
    with pytest.raises(ValueError, match="FETCH has two handlers"):
        Registry([route(ApiKey.FETCH), route(ApiKey.FETCH)])


def test_an_unstable_version_is_served_only_if_configured() -> None:
    routes = [route(ApiKey.INIT_PRODUCER_ID)]
    assert Registry(routes, unstable=True).versions() == [(22, 0, 6)]
    stable = Registry(routes)
    assert stable.versions() == [(22, 0, 5)]
    frame = b"".join(encode_request(ApiKey.INIT_PRODUCER_ID, 6, 1, "test", InitProducerIdRequest()))[4:]
    with pytest.raises(NotServed):
        read_call(stable.routes, FramesReceived(1, 0, [], "CLIENT", "127.0.0.1"), 0, frame)


def test_a_handler_is_loaded_when_its_first_request_comes() -> None:
    loaded: list[int] = []

    def load() -> Handle:
        loaded.append(1)
        return lambda call: None

    found = Route(ApiKey.VOTE, AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, load)
    assert not loaded
    found.handle(None)  # type: ignore[arg-type]
    found.handle(None)  # type: ignore[arg-type]
    assert loaded == [1]


def test_the_boundary_authorizes_operations_on_the_cluster_alone() -> None:
    registry = controller_registry(None)  # type: ignore[arg-type]
    assert registry.routes[ApiKey.VOTE].door == (
        AclOperation.CLUSTER_ACTION,
        AclResourceType.CLUSTER,
        CLUSTER_NAME,
    )
    assert registry.routes[ApiKey.CREATE_TOPICS].door is None  # each topic is authorized
    assert registry.routes[ApiKey.API_VERSIONS].door is None  # it needs no authorization


def test_every_api_of_a_controller_is_one_of_kafkas_controller_apis() -> None:
    assert all("controller" in listeners(row[0]) for row in ROWS)
    assert len({row[0] for row in ROWS}) == len(ROWS)
    assert {key for key, operation, *_ in ROWS if operation is None} == {
        ApiKey.API_VERSIONS,
        ApiKey.CREATE_DELEGATION_TOKEN,  # a principal's own tokens need no permission
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_CLUSTER,  # the handler authorizes, and refuses all callers alike
    }
    assert all((row[1] is None) == (row[2] is None) for row in ROWS)


@pytest.mark.parametrize("unstable", [False, True])
def test_a_client_listener_serves_unstable_versions_by_its_settings(unstable: bool, tmp_path: Path) -> None:
    harness = ClientHarness(tmp_path)
    settings = ClientSettings({}, unstable_versions=unstable)
    node = MetadataTopicNode(harness.view, settings, client_registry, lambda: 1)
    listed = {key: last for key, _, last in node.boundary.registry.versions()}
    assert listed[ApiKey.INIT_PRODUCER_ID] == (6 if unstable else 5)
