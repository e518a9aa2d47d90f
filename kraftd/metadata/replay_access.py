"""Replay of configs, client quotas, ACLs, SCRAM credentials and delegation tokens."""

from __future__ import annotations

from kraftd.messages.access_control_entry_record import AccessControlEntryRecord
from kraftd.messages.client_quota_record import ClientQuotaRecord
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.delegation_token_record import DelegationTokenRecord
from kraftd.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftd.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraftd.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.metadata.errors import ReplayError
from kraftd.metadata.journal import ABSENT
from kraftd.metadata.state import AclState, DelegationTokenState, ScramState
from kraftd.metadata.tables import Tables
from kraftd.types import uuid_text


def set_config(tables: Tables, record: ConfigRecord) -> None:
    """Set or remove (null value) a key; a resource without keys is removed."""
    resource = (record.resource_type, record.resource_name)
    values = dict(tables.configs.get(resource, ()))
    if record.value is None:
        values.pop(record.name, None)
    else:
        values[record.name] = record.value
    tables.put(tables.configs, resource, values or ABSENT)


def set_quota(tables: Tables, record: ClientQuotaRecord) -> None:
    entity = tuple(sorted({e.entity_type: e.entity_name for e in record.entity}.items()))
    values = dict(tables.quotas.get(entity, ()))
    if record.remove:
        values.pop(record.key, None)
    else:
        values[record.key] = record.value
    tables.put(tables.quotas, entity, values or ABSENT)


def add_acl(tables: Tables, record: AccessControlEntryRecord) -> None:
    if record.id in tables.acls:
        raise ReplayError(f"ACL {uuid_text(record.id)} exists already")
    state = AclState(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )
    tables.put(tables.acls, record.id, state)


def remove_acl(tables: Tables, record: RemoveAccessControlEntryRecord) -> None:
    if record.id not in tables.acls:
        raise ReplayError(f"no ACL {uuid_text(record.id)}")
    tables.put(tables.acls, record.id, ABSENT)


def set_scram(tables: Tables, record: UserScramCredentialRecord) -> None:
    state = ScramState(
        bytes(record.salt), bytes(record.stored_key), bytes(record.server_key), record.iterations
    )
    tables.put(tables.scram, (record.mechanism, record.name), state)


def remove_scram(tables: Tables, record: RemoveUserScramCredentialRecord) -> None:
    if (record.mechanism, record.name) not in tables.scram:
        raise ReplayError(f"user {record.name} has no SCRAM credential of mechanism {record.mechanism}")
    tables.put(tables.scram, (record.mechanism, record.name), ABSENT)


def set_delegation_token(tables: Tables, record: DelegationTokenRecord) -> None:
    state = DelegationTokenState(
        record.owner,
        record.requester,
        tuple(record.renewers),
        record.issue_timestamp,
        record.max_timestamp,
        record.expiration_timestamp,
    )
    tables.put(tables.delegation_tokens, record.token_id, state)


def remove_delegation_token(tables: Tables, record: RemoveDelegationTokenRecord) -> None:
    tables.put(tables.delegation_tokens, record.token_id, ABSENT)
