"""The requests that the controller mutation quota charges, and the versions from which on it refuses
(KIP-599).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kraftd.controller.context import Context
from kraftd.controller.quotas.mutation import Charge
from kraftd.requests.call import Call
from kraftd.wire.api import ApiKey

# Clients of older versions do not know THROTTLING_QUOTA_EXCEEDED: they only get a time to wait.
STRICT_SINCE: Final[Mapping[int, int]] = MappingProxyType(
    {ApiKey.CREATE_TOPICS: 6, ApiKey.DELETE_TOPICS: 5, ApiKey.CREATE_PARTITIONS: 3}
)


def charge_of(ctx: Context, call: Call) -> Charge:
    """The charge of one request, by its principal's name and its client id.

    A client that has to wait is muted (KIP-219), by its broker if one has forwarded the request.
    """

    def mute(for_ms: int) -> None:
        if call.envelope is None:
            call.mute_ms = max(call.mute_ms, for_ms)

    strict = call.version >= STRICT_SINCE[call.key]
    quotas = ctx.image.quotas
    return ctx.mutations.charge(
        quotas, call.principal.name, call.client_id, ctx.now_ms, strict=strict, on_throttle=mute
    )
