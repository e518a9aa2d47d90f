"""ApiVersions (18), v0-4: the APIs of this listener, and the finalized levels of features.

Authorization: none. Sent by: every client, first on every connection. Answered at once. Errors:
UNSUPPORTED_VERSION, in version 0, which every client can read (KIP-511); INVALID_REQUEST for an invalid name
or version of the client's software. Differs from a broker: nowhere, also where this listener refuses what it
lists (see `routes`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.metadata.metadata_version import KRAFT_VERSION
from kraftd.requests.api_versions import answer, response

if TYPE_CHECKING:
    from kraftd.answers.node import AnsweringNode
    from kraftd.messages.api_versions_response import ApiVersionsResponse
    from kraftd.requests.call import Call


def handle(node: AnsweringNode, call: Call) -> None:
    answer(node.boundary, call, lambda: describe(node, call.version))


def describe(node: AnsweringNode, version: int) -> ApiVersionsResponse:
    """The current answer."""
    view = node.view
    levels, epoch = view.finalized_features
    unstable_features = view.context.settings.unstable_feature_versions_enable
    levels = {**levels, KRAFT_VERSION: view.kraft_version}
    return response(node.boundary.registry, version, levels, epoch, unstable_features=unstable_features)
