"""The answers to requests for delegation tokens that are refused before a decision (KIP-48, KIP-373)."""

from __future__ import annotations

from typing import Any, Final

from kraftd.controller.tokens.change import FIRST_VERSION_WITH_REQUESTER
from kraftd.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kraftd.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kraftd.wire.api import ApiKey, response_class
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

NO_TIME_MS: Final = -1


def owner_of(request: CreateDelegationTokenRequest, requester: tuple[str, str]) -> tuple[str, str]:
    """The owner of a new token, as type and name: the requester, unless the request names another."""
    if request.owner_principal_name:
        return request.owner_principal_type or "", request.owner_principal_name
    return requester


def refused_token(
    key: int, version: int, request: Any, requester: tuple[str, str], code: ErrorCode
) -> Message:
    """The answer to a CreateDelegationToken, Renew- or ExpireDelegationToken: with the principals, and times
    of -1.
    """
    if key != ApiKey.CREATE_DELEGATION_TOKEN:
        response: Any = response_class(key)
        answer: Message = response(code, NO_TIME_MS)
        return answer
    shown = requester if version >= FIRST_VERSION_WITH_REQUESTER else ("", "")
    times = NO_TIME_MS, NO_TIME_MS, NO_TIME_MS
    return CreateDelegationTokenResponse(code, *owner_of(request, requester), *shown, *times)
