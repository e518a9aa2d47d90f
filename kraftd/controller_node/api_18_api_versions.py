"""ApiVersions (18), v0-4: which APIs and features this node supports, and which levels are finalized.

Authorization: none. Sent by: everyone, first on every connection. Answered at once, also while the log is
being read and without a leader: then FinalizedFeaturesEpoch is -1. Errors: UNSUPPORTED_VERSION, in version
0, which everyone can read (KIP-511); INVALID_REQUEST for a name or version of the software that is none.
Below v4 features whose lowest level is 0 are left out: older clients cannot read them.
Differs from Apache Kafka: APIs that are not served are not listed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kraftd.controller.decision import Refusal
from kraftd.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kraftd.metadata.features import supported_features
from kraftd.metadata.metadata_version import KRAFT_VERSION, METADATA_VERSION
from kraftd.wire.api import ApiKey, is_valid
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", re.ASCII)
# The order in which Kafka's controllers list finalized levels.
_FINALIZED_ORDER = (
    "group.version",
    KRAFT_VERSION,
    "share.version",
    METADATA_VERSION,
    "streams.version",
    "transaction.version",
    "eligible.leader.replicas.version",
)


def handle(node: Node, call: Call) -> None:
    if not is_valid(call.key, call.version):
        own = node.boundary.registry.routes[ApiKey.API_VERSIONS]
        keys = [ApiVersion(own.key, own.first, own.last)]
        call.version = 0
        node.boundary.answer(call, ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, keys))
        return
    request = call.message
    if call.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        raise Refusal(ErrorCode.INVALID_REQUEST)
    node.boundary.answer(call, describe(node, call.version))


def describe(node: Node, version: int) -> ApiVersionsResponse:
    """The answer as of now."""
    supported = supported_features(unstable=node.context.settings.unstable_features)
    finalized = node.following.finalized
    levels = {**finalized.levels, KRAFT_VERSION: node.core.kraft_version}
    order = [name for name in _FINALIZED_ORDER if levels.get(name)]
    order += sorted(name for name, level in levels.items() if level and name not in _FINALIZED_ORDER)
    return ApiVersionsResponse(
        api_keys=[ApiVersion(*versions) for versions in node.boundary.registry.versions()],
        supported_features=[
            SupportedFeatureKey(name, low, high)
            for name, (low, high) in supported.items()
            if version >= 4 or low > 0
        ],
        finalized_features_epoch=finalized.epoch,
        finalized_features=[FinalizedFeatureKey(name, levels[name], levels[name]) for name in order],
    )
