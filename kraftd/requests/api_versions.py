"""Every listener's answer to ApiVersions: its APIs, and the levels of features (KIP-584)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kraftd.ground.refusal import Refusal
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
    from kraftd.requests.boundary import Boundary
    from kraftd.requests.call import Call
    from kraftd.requests.registry import Registry

# Kafka lists v0 to v2 without serving them, because librdkafka compresses only for nodes with them
# (KAFKA-18659).
PRODUCE_FIRST = 0
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


def answer(boundary: Boundary, call: Call, described: Callable[[], ApiVersionsResponse]) -> None:
    """Answer a call with what `described` returns; in version 0 if its own is unknown (KIP-511).

    Raises Refusal (INVALID_REQUEST) for an invalid name or version of the client's software.
    """
    if not is_valid(call.key, call.version):
        own = boundary.registry.routes[ApiKey.API_VERSIONS]
        call.version = 0
        keys = [ApiVersion(own.key, own.first, own.last)]
        boundary.answer(call, ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, keys))
        return
    request = call.message
    if call.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        raise Refusal(ErrorCode.INVALID_REQUEST)
    boundary.answer(call, described())


def response(
    registry: Registry, version: int, levels: Mapping[str, int], epoch: int, *, unstable_features: bool
) -> ApiVersionsResponse:
    """The answer for finalized `levels` as of `epoch`, -1 if they are unknown.

    Below v4, features whose lowest level is 0 are left out: older clients cannot read them.
    """
    order = [name for name in _FINALIZED_ORDER if levels.get(name)]
    order += sorted(name for name, level in levels.items() if level and name not in _FINALIZED_ORDER)
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(key, PRODUCE_FIRST if key == ApiKey.PRODUCE else first, last)
            for key, first, last in registry.versions()
        ],
        supported_features=[
            SupportedFeatureKey(name, low, high)
            for name, (low, high) in supported_features(unstable=unstable_features).items()
            if version >= 4 or low > 0
        ],
        finalized_features_epoch=epoch,
        finalized_features=[FinalizedFeatureKey(name, levels[name], levels[name]) for name in order],
    )
