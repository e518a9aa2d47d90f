"""Secrets of metadata records: salts and keys of SCRAM credentials, and sensitive values of configs.

A record of a delegation token has none: the HMAC is made of the token's id and a key that no log holds.
"""

from __future__ import annotations

from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.redaction.configs import REDACTED, is_sensitive
from kraftd.wire.message import Message

# Records without secrets. All fields of a type that is not in this list are hidden.
HARMLESS = frozenset(
    (
        "AbortTransactionRecord",
        "AccessControlEntryRecord",
        "BeginTransactionRecord",
        "BrokerRegistrationChangeRecord",
        "ClearElrRecord",
        "ClientQuotaRecord",
        "DelegationTokenRecord",
        "EndTransactionRecord",
        "FeatureLevelRecord",
        "FenceBrokerRecord",
        "NoOpRecord",
        "PartitionChangeRecord",
        "PartitionRecord",
        "ProducerIdsRecord",
        "RegisterBrokerRecord",
        "RegisterControllerRecord",
        "RemoveAccessControlEntryRecord",
        "RemoveDelegationTokenRecord",
        "RemoveTopicRecord",
        "RemoveUserScramCredentialRecord",
        "TopicRecord",
        "UnfenceBrokerRecord",
        "UnregisterBrokerRecord",
        "ZkMigrationStateRecord",
    )
)
SCRAM_SECRETS = ("salt", "stored_key", "server_key")
UNKNOWN = "unknown_tags"  # fields of a later version


def hidden_fields(message: Message) -> tuple[str, ...]:
    """The names of the fields of a metadata record that readers may not see; most records have none."""
    kind = type(message)
    if kind.__name__ in HARMLESS:
        return ()
    if isinstance(message, ConfigRecord):
        if message.value is None or not is_sensitive(message.resource_type, message.name):
            return ()
        return "value", UNKNOWN
    if isinstance(message, UserScramCredentialRecord):
        return *SCRAM_SECRETS, UNKNOWN
    return kind.__struct_fields__


def redacted(message: Message) -> Message:
    """The record as readers get it: the same object if nothing is hidden, a NoOpRecord if everything is."""
    if not hidden_fields(message):
        return message
    if isinstance(message, ConfigRecord):
        return ConfigRecord(message.resource_type, message.resource_name, message.name, REDACTED)
    if isinstance(message, UserScramCredentialRecord):
        return UserScramCredentialRecord(message.name, message.mechanism, b"", b"", b"", message.iterations)
    return NoOpRecord()


def is_blanked(message: Message) -> bool:
    """Return whether the record is one that `redacted` has made: it lacks what it had in the log."""
    if isinstance(message, ConfigRecord):
        return message.value == REDACTED
    return isinstance(message, UserScramCredentialRecord) and not message.stored_key
