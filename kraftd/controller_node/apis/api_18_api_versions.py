"""ApiVersions (18), v0-4: the APIs and features that this node supports, and the finalized levels.

Authorization: none. Sent by: every client and node, first on every connection. Answered at once, also while
the log is being read and without a leader: then FinalizedFeaturesEpoch is -1. Errors: UNSUPPORTED_VERSION, in
version 0, which every client can read (KIP-511); INVALID_REQUEST for an invalid name or version of the
client's software. Differs from Apache Kafka: APIs that are not served are not listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.metadata.metadata_version import KRAFT_VERSION
from kraftd.requests.api_versions import answer, response

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.messages.api_versions_response import ApiVersionsResponse
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    answer(node.boundary, call, lambda: describe(node, call.version))


def describe(node: Node, version: int) -> ApiVersionsResponse:
    """The current answer."""
    finalized = node.following.finalized_features
    levels = {**finalized.levels, KRAFT_VERSION: node.core.kraft_version}
    return response(
        node.boundary.registry,
        version,
        levels,
        finalized.epoch,
        unstable_features=node.context.settings.unstable_feature_versions_enable,
    )
