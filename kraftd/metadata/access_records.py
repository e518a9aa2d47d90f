"""The records that hold an ACL or a delegation token, as a change and a snapshot write them."""

from __future__ import annotations

from kraftd.messages.access_control_entry_record import AccessControlEntryRecord
from kraftd.messages.delegation_token_record import DelegationTokenRecord
from kraftd.metadata.state import AclState, DelegationTokenState
from kraftd.wire.record_frame import VersionedRecord


def acl_record(acl_id: bytes, acl: AclState) -> VersionedRecord:
    """An AccessControlEntryRecord v0; `acl_id` is a uuid."""
    record = AccessControlEntryRecord(
        acl_id,
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )
    return VersionedRecord(record, 0)


def token_record(token_id: str, token: DelegationTokenState) -> VersionedRecord:
    """A DelegationTokenRecord v0."""
    record = DelegationTokenRecord(
        token.owner,
        token.requester,
        token.renewers,
        token.issue_timestamp_ms,
        token.max_timestamp_ms,
        token.expiration_timestamp_ms,
        token_id,
    )
    return VersionedRecord(record, 0)
