"""ApiVersions (18), v0-4: which APIs this listener serves, and which levels of features are finalized.

Authorization: none. Sent by: every client, first on every connection. Answered at once. Errors:
UNSUPPORTED_VERSION, in version 0, which every client can read (KIP-511); INVALID_REQUEST for a name or
version of the software that is none.
Differs from a broker: what this listener does not serve is not listed.
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
from kraftd.metadata.metadata_version import KRAFT_VERSION
from kraftd.wire.api import ApiKey, is_valid
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.client_node.node import ClientNode
    from kraftd.requests.call import Call

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", re.ASCII)


def handle(node: ClientNode, call: Call) -> None:
    if not is_valid(call.key, call.version):
        own = node.boundary.registry.routes[ApiKey.API_VERSIONS]
        call.version = 0
        keys = [ApiVersion(own.key, own.first, own.last)]
        node.boundary.answer(call, ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, keys))
        return
    request = call.message
    if call.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        raise Refusal(ErrorCode.INVALID_REQUEST)
    node.boundary.answer(call, describe(node, call.version))


def describe(node: ClientNode, version: int) -> ApiVersionsResponse:
    """The answer as of now. Below v4 features whose lowest level is 0 cannot be read by the client."""
    view = node.view
    levels, epoch = view.finalized
    levels = {**levels, KRAFT_VERSION: view.kraft_version}
    supported = supported_features(unstable=view.context.settings.unstable_features)
    return ApiVersionsResponse(
        api_keys=[ApiVersion(*versions) for versions in node.boundary.registry.versions()],
        supported_features=[
            SupportedFeatureKey(name, low, high)
            for name, (low, high) in supported.items()
            if version >= 4 or low > 0
        ],
        finalized_features_epoch=epoch,
        finalized_features=[
            FinalizedFeatureKey(name, level, level) for name, level in sorted(levels.items()) if level
        ],
    )
