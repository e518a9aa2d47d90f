"""ListConfigResources (74), v0-1: which resources may have configs (KIP-1142).

Authorization: DESCRIBE_CONFIGS on the cluster. Sent by: admin clients. Answered from committed metadata, in
several event loop callbacks where it is long. Groups and client metrics subscriptions are those with configs.
Errors: CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION for a type of which there is no list.
Differs from a broker: the metadata topic exists.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from kraftd.answers.nodes import broker_listener
from kraftd.answers.operations import check_may_describe_configs
from kraftd.ground.refusal import Refusal
from kraftd.messages.list_config_resources_response import ConfigResource, ListConfigResourcesResponse
from kraftd.metadata.state import BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.answers.node import AnsweringNode
    from kraftd.requests.call import Call

BROKER_LOGGER_RESOURCE = 8
OF_V0 = (CLIENT_METRICS_RESOURCE,)
LISTED = (GROUP_RESOURCE, CLIENT_METRICS_RESOURCE, BROKER_LOGGER_RESOURCE, BROKER_RESOURCE, TOPIC_RESOURCE)
RESOURCES_PER_CALLBACK = 5_000  # about 3 ms


def handle(node: AnsweringNode, call: Call) -> None:
    check_may_describe_configs(node, call)
    if node.knows_metadata(call):
        node.answer_in_slices(call, describe(node, call))


def describe(node: AnsweringNode, call: Call) -> Generator[None, None, ListConfigResourcesResponse]:
    listed = LISTED if call.version else OF_V0
    resource_types = call.message.resource_types
    requested: set[int] = set() if resource_types else set(listed)
    for first in range(0, len(resource_types), RESOURCES_PER_CALLBACK):
        if first:
            yield
        requested.update(resource_types[first : first + RESOURCES_PER_CALLBACK])
    if not requested <= set(listed):
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION)
    found = []
    for resource_type in listed:
        if resource_type in requested:
            for number, name in enumerate(list(names(node, call, resource_type)), 1):
                found.append(ConfigResource(name, resource_type))
                if number % RESOURCES_PER_CALLBACK == 0:
                    yield
    return ListConfigResourcesResponse(config_resources=found)


def names(node: AnsweringNode, call: Call, resource_type: int) -> Iterator[str]:
    """The resources of that type."""
    image = node.view.image
    if resource_type in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE):
        listener = broker_listener(node.settings, call.listener)
        yield from (str(one.id) for one in image.brokers.values() if one.listener(listener) is not None)
    elif resource_type == TOPIC_RESOURCE:
        if node.settings.serves_metadata_topic:
            yield METADATA_TOPIC
        yield from image.topic_names()
    else:
        yield from (name for kind, name in image.configs if kind == resource_type)
