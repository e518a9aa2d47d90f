"""The common part of AlterConfigs (33) and IncrementalAlterConfigs (44): denied resources, then a
decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import structs

from kraftd.controller.decision import Decision
from kraftd.controller_node.permissions import no_config_left, refused_configs, with_refusals

if TYPE_CHECKING:
    from kraftd.controller.slices import Sliced
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def decide_change(
    node: Node,
    call: Call,
    change: Sliced[..., Decision[Any]],
    response: type[Any],
    *,
    loggers: bool,
) -> None:
    """Answer each denied resource with a `response`; decide on the others by `change`.

    `loggers` says whether log levels can be changed, and thus be denied.
    """
    forwarded = call.envelope is not None
    request = call.message
    refused = refused_configs(node, call, request.resources, altering=True, loggers=loggers)
    refusals = [
        response(code, code.message, one.resource_type, one.resource_name)
        for at, code in refused.items()
        for one in (request.resources[at],)
    ]
    if refused:
        left = [one for at, one in enumerate(request.resources) if at not in refused]
        request = structs.replace(request, resources=left)
    node.decisions.decide(
        call,
        lambda ctx, _, version: with_refusals(
            change.begin(ctx, request, forwarded=forwarded), "responses", refusals
        ),
        on_standby=no_config_left(request.resources),
    )
