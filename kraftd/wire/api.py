"""The APIs: their keys, versions, listeners and messages; and the records by their keys.

Messages are loaded when they are first needed, except the two headers. This is the one module of
``kraftd.wire`` that knows ``kraftd.messages``.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from importlib import import_module

from kraftd.messages import registry
from kraftd.messages.request_header import RequestHeader as RequestHeader
from kraftd.messages.response_header import ResponseHeader as ResponseHeader
from kraftd.wire.message import Message, Range


class ApiKey(IntEnum):
    """The APIs that have a valid version."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


def is_known(key: int) -> bool:
    """Return whether there is an API with this key."""
    return key in registry.APIS


def valid_versions(key: int) -> Range:
    """The first and the last version of an API; KeyError when there is no such API."""
    row = registry.APIS[key]
    return row[5], row[6]


def is_valid(key: int, version: int) -> bool:
    """Return whether an API and this version of it exist."""
    row = registry.APIS.get(key)
    return row is not None and row[5] <= version <= row[6]


def latest_version_unstable(key: int) -> bool:
    """Return whether the last version of an API is unstable, so that it is offered only on request."""
    return registry.APIS[key][9]


def listeners(key: int) -> tuple[str, ...]:
    """The listeners that serve an API: ``broker``, ``controller`` or both."""
    return registry.APIS[key][8]


def flexible(key: int, version: int) -> bool:
    """Return whether a version, valid or not, has tagged fields; false for an unknown API."""
    row = registry.APIS.get(key)
    return row is not None and version >= row[7]


def request_header_version(key: int, version: int) -> int:
    """2 for flexible versions, otherwise 1 (0 went with the ControlledShutdown request)."""
    return 2 if flexible(key, version) else 1


NO_VERSION = 1 << 15  # above all of them
# By API key: the first version whose responses have header version 1. Read for every response.
FIRST_FLEXIBLE_RESPONSE = {
    key: NO_VERSION if key == ApiKey.API_VERSIONS else row[7] for key, row in registry.APIS.items()
}


def response_header_version(key: int, version: int) -> int:
    """1 for flexible versions, otherwise 0.

    An ApiVersions response always has 0: its client does not know the node's versions yet (KIP-511).
    """
    return 1 if version >= FIRST_FLEXIBLE_RESPONSE.get(key, NO_VERSION) else 0


def response_version(key: int, version: int) -> int:
    """The version to answer in: the request's, but 0 for an ApiVersions version that does not exist."""
    return 0 if key == ApiKey.API_VERSIONS and not is_valid(key, version) else version


@cache
def request_class(key: int) -> type[Message]:
    """The class of an API's requests; KeyError when there is no such API."""
    row = registry.APIS[key]
    return load(row[1], row[2])


@cache
def response_class(key: int) -> type[Message]:
    """The class of an API's responses; KeyError when there is no such API."""
    row = registry.APIS[key]
    return load(row[3], row[4])


@cache
def metadata_record_class(key: int) -> type[Message]:
    """The class of the metadata records with a key; KeyError when there is none."""
    row = registry.METADATA_RECORDS[key]
    return load(row[0], row[1])


@cache
def control_record_class(kind: int) -> type[Message]:
    """The class of the values of a type of control record; KeyError when there is none."""
    row = registry.CONTROL_RECORDS[kind]
    return load(row[0], row[1])


@cache
def group_record_classes(key: int) -> tuple[type[Message], type[Message]]:
    """The classes of key and value of a record of ``__consumer_offsets``; KeyError when there is none."""
    row = registry.GROUP_RECORDS[key]
    return load(row[0], row[1]), load(row[2], row[3])


@cache
def transaction_record_classes(key: int) -> tuple[type[Message], type[Message]]:
    """The same of a record of ``__transaction_state``."""
    row = registry.TRANSACTION_RECORDS[key]
    return load(row[0], row[1]), load(row[2], row[3])


@cache
def share_record_classes(key: int) -> tuple[type[Message], type[Message]]:
    """The same of a record of ``__share_group_state``."""
    row = registry.SHARE_RECORDS[key]
    return load(row[0], row[1]), load(row[2], row[3])


@cache
def message_class(name: str) -> type[Message]:
    """The class of any message by its name, such as ``QuorumStateData``; KeyError when there is none."""
    return load(registry.MODULES[name], name)


def load(module: str, name: str) -> type[Message]:
    """A class of a module of messages."""
    found: type[Message] = getattr(import_module(f"kraftd.messages.{module}"), name)
    return found
