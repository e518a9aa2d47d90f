"""Waits until Kafka's controller has applied what its log holds.

Another thread applies ACLs and tokens from the log, maybe only after their creation was answered.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import time_ns
from typing import Any

from kraftd.messages.access_control_entry_record import AccessControlEntryRecord
from kraftd.messages.default_principal_data import DefaultPrincipalData
from kraftd.messages.delegation_token_record import DelegationTokenRecord
from kraftd.messages.describe_acls_request import DescribeAclsRequest
from kraftd.messages.envelope_request import EnvelopeRequest
from kraftd.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftd.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraftd.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kraftd.wire.api import ApiKey, valid_versions
from kraftd.wire.codec import encode_bytes
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request, parse_response
from kraftd.wire.message import Message
from kraftd.wire.table import api_key
from testkit.client import Client
from testkit.process import wait_until

ANY_ACL = (1, None, 1, None, None, 1, 1)
FORWARDED = "forwarded"  # the client id of requests in Envelopes
_WAIT_S = 30
_SOON_MS = 1_000


class Settling:
    """The ACLs and tokens that one controller should have applied by now."""

    def __init__(self) -> None:
        self.acl_count = 0

    def __repr__(self) -> str:
        return f"<Settling, {self.acl_count} ACLs>"

    def wait(self, client: Client, records: Iterable[Message], hmacs: dict[str, bytes]) -> None:
        """Wait until the controller has applied these records; `hmacs` are those of tokens by their ids."""
        before, tokens = self.acl_count, dict[str, int]()
        for record in records:
            match record:
                case AccessControlEntryRecord():
                    self.acl_count += 1
                case RemoveAccessControlEntryRecord():
                    self.acl_count -= 1
                case DelegationTokenRecord():
                    ends_soon = record.expiration_timestamp - time_ns() // 1_000_000 < _SOON_MS
                    tokens[record.token_id] = (
                        ErrorCode.DELEGATION_TOKEN_EXPIRED
                        if ends_soon
                        else ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
                    )
                case RemoveDelegationTokenRecord():
                    tokens[record.token_id] = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        for token_id, refusal in tokens.items():
            self._wait_for_token(client, hmacs[token_id], refusal)
        if self.acl_count != before:
            wait_until(lambda: self._knows_acls(client), f"{self!r} are known", _WAIT_S, poll_s=0.001)

    def _knows_acls(self, client: Client) -> bool:
        answer = client.call(DescribeAclsRequest(*ANY_ACL), 3)
        return sum(len(resource.acls) for resource in answer.resources) == self.acl_count

    def _wait_for_token(self, client: Client, hmac: bytes, refusal: int) -> None:
        """Renew it without the right to: the error shows whether the controller has applied the token."""
        request = envelope("nobody", RenewDelegationTokenRequest(hmac, 1))

        def known() -> bool:
            outer = client.call(request, 0)
            _, answer = parse_response(ApiKey.RENEW_DELEGATION_TOKEN, 2, bytes(outer.response_data))
            found: Any = answer
            return bool(found.error_code == refusal)

        wait_until(known, f"the token is refused with {refusal}", _WAIT_S, poll_s=0.001)


def envelope(name: str, request: Message, older: int = 0, *, by_token: bool = False) -> EnvelopeRequest:
    """The request as a broker forwards it for a user, in its newest version, or that many versions older.

    The user has logged in at the broker `by_token`, or with a password.
    """
    version = valid_versions(api_key(request))[1] - older
    frame = b"".join(encode_request(api_key(request), version, 77, FORWARDED, request))[4:]
    principal = b"\0\0" + encode_bytes(DefaultPrincipalData("User", name, by_token), 0)
    return EnvelopeRequest(frame, principal, b"\x7f\0\0\1")
