"""DescribeClientQuotas: the quotas whose entities a filter matches (KIP-546). Client listeners serve it."""

from __future__ import annotations

from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.quotas.entities import CLIENT_ID, IP, USER
from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from kraftd.messages.describe_client_quotas_response import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from kraftd.wire.error_code import ErrorCode

EXACT, DEFAULT, SPECIFIED = 0, 1, 2
ENTITY_US = 3


@Sliced
def describe_client_quotas(
    ctx: Context, request: DescribeClientQuotasRequest, version: int
) -> Slices[Decision[DescribeClientQuotasResponse]]:
    """Every entity that has all components of the filter, and with ``strict`` no other.

    Raises Refusal: INVALID_REQUEST for an invalid filter, UNSUPPORTED_VERSION for an unknown type.
    """
    exact: dict[str, str | None] = {}
    any_name: set[str] = set()
    for component in request.components:
        _check(component, exact, any_name)
        if component.match_type == SPECIFIED:
            any_name.add(component.entity_type)
        else:
            exact[component.entity_type] = component.match
    types = exact.keys() | any_name
    if IP in types and len(types) > 1:
        raise _invalid("Invalid entity filter component combination: ip goes with no user or client-id.")
    answer = DescribeClientQuotasResponse(entries=[])
    assert answer.entries is not None
    pace = Pace()
    for entity, values in list(ctx.image.quotas.items()):  # on a client node it may change between slices
        if pace.spent(ENTITY_US):
            yield
        names = dict(entity)
        if request.strict and names.keys() != types:
            continue
        if types <= names.keys() and all(names[kind] == name for kind, name in exact.items()):
            named = [EntityData(kind, name) for kind, name in entity]
            answer.entries.append(EntryData(named, [ValueData(*value) for value in values.items()]))
    return Decision(answer)


def _check(component: ComponentData, exact: dict[str, str | None], any_name: set[str]) -> None:
    """Raises Refusal for a component that is invalid, alone or together with those before it."""
    kind = component.entity_type
    if not kind:
        raise _invalid("Invalid empty entity type.")
    if kind in exact or kind in any_name:
        raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
    if kind not in (IP, USER, CLIENT_ID):
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
    if component.match_type not in (EXACT, DEFAULT, SPECIFIED):
        raise _invalid(f"Unknown match type {component.match_type}")
    if component.match_type == EXACT and component.match is None:
        raise _invalid(f"The filter of {kind} asks for an exact name and gives none.")
    if component.match_type != EXACT and component.match is not None:
        raise _invalid(f"The filter of {kind} gives a name where its match type has none.")


def _invalid(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, text)
