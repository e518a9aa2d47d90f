"""Sentences about configs, quotas, ACLs, SCRAM credentials and delegation tokens, without secrets."""

from __future__ import annotations

from kraftd.configdef.text import double_text
from kraftd.history.event import Meaning
from kraftd.history.names import (
    ACL_RESOURCE_TYPES,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    SCRAM_MECHANISMS,
    named,
    resource_type,
)
from kraftd.messages.access_control_entry_record import AccessControlEntryRecord
from kraftd.messages.client_quota_record import ClientQuotaRecord
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.delegation_token_record import DelegationTokenRecord
from kraftd.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftd.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraftd.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.metadata.image import Image
from kraftd.metadata.state import BROKER_RESOURCE, TOPIC_RESOURCE, AclState, QuotaEntity
from kraftd.redaction.configs import shown
from kraftd.types import uuid_text


def config_owner(kind: int, name: str) -> str:
    """The owner of a config: "topic orders", "all brokers", "broker 1", "group g"."""
    if kind == BROKER_RESOURCE and not name:
        return "all brokers"
    return f"{resource_type(kind).lower().replace('_', ' ')} {name}".rstrip()


def config_changed(image: Image, record: ConfigRecord, show_secrets: bool = False) -> Meaning:
    kind, name, key = record.resource_type, record.resource_name, record.name
    before = shown(kind, key, image.config(kind, name).get(key), show_secrets)
    after = shown(kind, key, record.value, show_secrets)
    owner = config_owner(kind, name)
    if after is None:
        text = f"config {key} of {owner} removed" + ("" if before is None else f" (was {before})")
        event = "config-removed"
    else:
        text = f"config {key} of {owner} set to {after}" + ("" if before is None else f" (was {before})")
        event = "config-changed"
    topic = name if kind == TOPIC_RESOURCE else None
    details = {"resource": resource_type(kind), "key": key, "value": after, "before": before}
    return Meaning(event, text, "config", name, topic, None, details)


def quota_entity(entity: QuotaEntity) -> str:
    """ "user alice, client-id app" or "the default user"."""
    return ", ".join(f"the default {kind}" if name is None else f"{kind} {name}" for kind, name in entity)


def quota_changed(image: Image, record: ClientQuotaRecord) -> Meaning:
    entity: QuotaEntity = tuple(sorted({one.entity_type: one.entity_name for one in record.entity}.items()))
    before = image.quotas.get(entity, {}).get(record.key)
    was = "" if before is None else f" (was {double_text(before)})"
    act = "removed" if record.remove else f"set to {double_text(record.value)}"
    text = f"quota {record.key} of {quota_entity(entity)} {act}{was}"
    details = {"key": record.key, "value": None if record.remove else record.value, "before": before}
    kind = "quota-removed" if record.remove else "quota-changed"
    return Meaning(kind, text, "quota", quota_entity(entity), details=details)


def acl_words(acl: AclState | AccessControlEntryRecord) -> str:
    """ "User:alice from * is allowed READ on topic orders (LITERAL)"."""
    allowed = {"ALLOW": "allowed", "DENY": "denied"}.get(named(PERMISSIONS, acl.permission_type), "given")
    resource = named(ACL_RESOURCE_TYPES, acl.resource_type).lower().replace("_", " ")
    pattern = named(PATTERN_TYPES, acl.pattern_type)
    return (
        f"{acl.principal} from {acl.host} is {allowed} {named(OPERATIONS, acl.operation)} on {resource} "
        f"{acl.resource_name} ({pattern})"
    )


def acl_added(image: Image, record: AccessControlEntryRecord) -> Meaning:
    return Meaning("acl-added", f"ACL added: {acl_words(record)}", "acl", uuid_text(record.id))


def acl_removed(image: Image, record: RemoveAccessControlEntryRecord) -> Meaning:
    acl, name = image.acls.get(record.id), uuid_text(record.id)
    return Meaning("acl-removed", f"ACL removed: {name if acl is None else acl_words(acl)}", "acl", name)


def credential_set(image: Image, record: UserScramCredentialRecord) -> Meaning:
    mechanism = SCRAM_MECHANISMS.get(record.mechanism, str(record.mechanism))
    changed = "changed" if (record.mechanism, record.name) in image.scram else "added"
    text = f"{mechanism} credential of user {record.name} {changed}"
    return Meaning(
        f"credential-{changed}", text, "user", record.name, details={"iterations": record.iterations}
    )


def credential_removed(image: Image, record: RemoveUserScramCredentialRecord) -> Meaning:
    mechanism = SCRAM_MECHANISMS.get(record.mechanism, str(record.mechanism))
    return Meaning(
        "credential-removed", f"{mechanism} credential of user {record.name} removed", "user", record.name
    )


def token_changed(image: Image, record: DelegationTokenRecord) -> Meaning:
    known = record.token_id in image.delegation_tokens
    verb, kind = ("renewed", "token-renewed") if known else ("created", "token-created")
    details = {"expires_ms": record.expiration_timestamp}
    return Meaning(kind, f"delegation token of {record.owner} {verb}", "token", record.owner, details=details)


def token_removed(image: Image, record: RemoveDelegationTokenRecord) -> Meaning:
    token = image.delegation_tokens.get(record.token_id)
    owner = "" if token is None else f" of {token.owner}"
    return Meaning(
        "token-removed", f"delegation token{owner} removed", "token", "" if token is None else token.owner
    )
