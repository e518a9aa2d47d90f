"""Kafka's error codes in answers."""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """A code of a response, with ``message``: a few words, used if there is no better text.

    Names and numbers are those of Kafka's protocol.
    """

    message: str

    def __new__(cls, code: int, message: str) -> ErrorCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.message = message
        return member

    UNKNOWN_SERVER_ERROR = -1, "The server met an unexpected error."
    NONE = 0, "No error."
    OFFSET_OUT_OF_RANGE = 1, "The offset is outside of the log."
    CORRUPT_MESSAGE = 2, "The records are corrupt: bad checksum, bad size, or no key where one is needed."
    UNKNOWN_TOPIC_OR_PARTITION = 3, "There is no such topic or partition here."
    INVALID_FETCH_SIZE = 4, "The fetch size is not valid."
    LEADER_NOT_AVAILABLE = 5, "The partition has no leader at the moment."
    NOT_LEADER_OR_FOLLOWER = 6, "This node is not the leader, or no replica, of the partition."
    REQUEST_TIMED_OUT = 7, "The request timed out."
    BROKER_NOT_AVAILABLE = 8, "The broker is not available."
    REPLICA_NOT_AVAILABLE = 9, "The replica is not available for the partition."
    MESSAGE_TOO_LARGE = 10, "The message is larger than the server accepts."
    STALE_CONTROLLER_EPOCH = 11, "The controller epoch is stale: another controller took over."
    OFFSET_METADATA_TOO_LARGE = 12, "The metadata of the offset is too large."
    NETWORK_EXCEPTION = 13, "The connection ended before a response came."
    COORDINATOR_LOAD_IN_PROGRESS = 14, "The coordinator is still loading."
    COORDINATOR_NOT_AVAILABLE = 15, "The coordinator is not available."
    NOT_COORDINATOR = 16, "This node is not the coordinator."
    INVALID_TOPIC_EXCEPTION = 17, "The topic is not valid for this operation."
    RECORD_LIST_TOO_LARGE = 18, "The batch is larger than a segment may be."
    NOT_ENOUGH_REPLICAS = 19, "There are fewer in-sync replicas than required; nothing was written."
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "Written, but to fewer in-sync replicas than required."
    INVALID_REQUIRED_ACKS = 21, "The value of acks is not valid."
    ILLEGAL_GENERATION = 22, "The generation of the group is not the current one."
    INCONSISTENT_GROUP_PROTOCOL = 23, "The member has no protocol in common with its group."
    INVALID_GROUP_ID = 24, "The group id is not valid."
    UNKNOWN_MEMBER_ID = 25, "The group has no such member."
    INVALID_SESSION_TIMEOUT = 26, "The session timeout is outside of the configured bounds."
    REBALANCE_IN_PROGRESS = 27, "The group is rebalancing; join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, "The offsets to commit are too large."
    TOPIC_AUTHORIZATION_FAILED = 29, "Not authorized for the topic."
    GROUP_AUTHORIZATION_FAILED = 30, "Not authorized for the group."
    CLUSTER_AUTHORIZATION_FAILED = 31, "Not authorized for the cluster."
    INVALID_TIMESTAMP = 32, "The timestamp is out of the accepted range."
    UNSUPPORTED_SASL_MECHANISM = 33, "The SASL mechanism is not supported."
    ILLEGAL_SASL_STATE = 34, "The request does not fit the state of SASL authentication."
    UNSUPPORTED_VERSION = 35, "The API or its version is not supported."
    TOPIC_ALREADY_EXISTS = 36, "A topic of that name exists."
    INVALID_PARTITIONS = 37, "The number of partitions is not valid."
    INVALID_REPLICATION_FACTOR = (
        38,
        "The replication factor is below 1 or above the number of usable brokers.",
    )
    INVALID_REPLICA_ASSIGNMENT = 39, "The replica assignment is not valid."
    INVALID_CONFIG = 40, "The configuration is not valid."
    NOT_CONTROLLER = 41, "This node is not the active controller."
    INVALID_REQUEST = 42, "The request is malformed, or not meant for this node."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "The message format does not support the request."
    POLICY_VIOLATION = 44, "The request violates a policy."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "The sequence number is out of order."
    DUPLICATE_SEQUENCE_NUMBER = 46, "The sequence number was used before."
    INVALID_PRODUCER_EPOCH = 47, "The producer's epoch is old."
    INVALID_TXN_STATE = 48, "The state of the transaction does not allow the operation."
    INVALID_PRODUCER_ID_MAPPING = 49, "The producer id does not belong to the transactional id."
    INVALID_TRANSACTION_TIMEOUT = 50, "The transaction timeout is larger than configured."
    CONCURRENT_TRANSACTIONS = 51, "Another operation on the transaction is going on."
    TRANSACTION_COORDINATOR_FENCED = 52, "The coordinator of the transaction was replaced."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "Not authorized for the transactional id."
    SECURITY_DISABLED = 54, "Security is disabled."
    OPERATION_NOT_ATTEMPTED = 55, "Not attempted, as another operation of the request failed."
    KAFKA_STORAGE_ERROR = 56, "A disk error in the log directory."
    LOG_DIR_NOT_FOUND = 57, "The broker has no such log directory."
    SASL_AUTHENTICATION_FAILED = 58, "SASL authentication failed."
    UNKNOWN_PRODUCER_ID = 59, "Nothing is known of the producer id any more."
    REASSIGNMENT_IN_PROGRESS = 60, "The partition is being reassigned."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "Delegation tokens are not enabled."
    DELEGATION_TOKEN_NOT_FOUND = 62, "There is no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = (
        63,
        "The principal is neither owner nor renewer of the delegation token.",
    )
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "Delegation tokens cannot be asked for on this connection."
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "Not authorized for the delegation token."
    DELEGATION_TOKEN_EXPIRED = 66, "The delegation token has expired."
    INVALID_PRINCIPAL_TYPE = 67, "The type of principal is not supported."
    NON_EMPTY_GROUP = 68, "The group has members."
    GROUP_ID_NOT_FOUND = 69, "There is no such group."
    FETCH_SESSION_ID_NOT_FOUND = 70, "There is no such fetch session."
    INVALID_FETCH_SESSION_EPOCH = 71, "The epoch of the fetch session is not the expected one."
    LISTENER_NOT_FOUND = 72, "The leader has no listener of the name that the request came in on."
    TOPIC_DELETION_DISABLED = 73, "Topics cannot be deleted here."
    FENCED_LEADER_EPOCH = 74, "The leader epoch is older than the current one."
    UNKNOWN_LEADER_EPOCH = 75, "The leader epoch is newer than the one known here."
    UNSUPPORTED_COMPRESSION_TYPE = 76, "The client does not support the compression type of the partition."
    STALE_BROKER_EPOCH = 77, "The broker epoch is not the current one."
    OFFSET_NOT_AVAILABLE = 78, "The new leader does not know the high watermark yet."
    MEMBER_ID_REQUIRED = 79, "The member needs a member id to join."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "The preferred leader is not available."
    GROUP_MAX_SIZE_REACHED = 81, "The group is full."
    FENCED_INSTANCE_ID = 82, "Another member took over the group instance id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "No replica is eligible to lead the partition."
    ELECTION_NOT_NEEDED = 84, "The partition needs no leader election."
    NO_REASSIGNMENT_IN_PROGRESS = 85, "The partition is not being reassigned."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "The group still consumes the topic whose offsets are to be deleted."
    INVALID_RECORD = 87, "The record is not valid."
    UNSTABLE_OFFSET_COMMIT = 88, "Offsets of an open transaction have to be settled first."
    THROTTLING_QUOTA_EXCEEDED = 89, "The quota is used up."
    PRODUCER_FENCED = 90, "A newer producer uses the transactional id."
    RESOURCE_NOT_FOUND = 91, "There is no such resource."
    DUPLICATE_RESOURCE = 92, "The request names a resource twice."
    UNACCEPTABLE_CREDENTIAL = 93, "The credential is not acceptable."
    INCONSISTENT_VOTER_SET = 94, "Sender or receiver is not one of the voters."
    INVALID_UPDATE_VERSION = 95, "The version of the update is not valid."
    FEATURE_UPDATE_FAILED = 96, "The features could not be updated."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "The forwarded principal cannot be read."
    SNAPSHOT_NOT_FOUND = 98, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, "The position is outside of the snapshot."
    UNKNOWN_TOPIC_ID = 100, "There is no topic of that id here."
    DUPLICATE_BROKER_REGISTRATION = 101, "The broker id is in use."
    BROKER_ID_NOT_REGISTERED = 102, "The broker id is not registered."
    INCONSISTENT_TOPIC_ID = 103, "The topic id does not match that of the log."
    INCONSISTENT_CLUSTER_ID = 104, "The cluster id is not that of this cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, "There is no such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "The fetch session mixes topic ids and names."
    INELIGIBLE_REPLICA = 107, "The new ISR has a replica that may not be in it."
    NEW_LEADER_ELECTED = 108, "The partition changed as asked, and its leader changed too."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "The offset is in tiered storage."
    FENCED_MEMBER_EPOCH = 110, "The member epoch is fenced: give up all partitions and join again."
    UNRELEASED_INSTANCE_ID = 111, "Another member still has the instance id."
    UNSUPPORTED_ASSIGNOR = 112, "The group does not support the assignor."
    STALE_MEMBER_EPOCH = 113, "The member epoch is stale."
    MISMATCHED_ENDPOINT_TYPE = 114, "The request is not for this type of endpoint."
    UNSUPPORTED_ENDPOINT_TYPE = 115, "The type of endpoint is not supported."
    UNKNOWN_CONTROLLER_ID = 116, "There is no controller of that id."
    UNKNOWN_SUBSCRIPTION_ID = 117, "The telemetry subscription is not known or out of date."
    TELEMETRY_TOO_LARGE = 118, "The telemetry is larger than the server accepts."
    INVALID_REGISTRATION = 119, "The registration is not valid."
    TRANSACTION_ABORTABLE = 120, "The transaction failed and can be aborted."
    INVALID_RECORD_STATE = 121, "The state of the records does not allow the acknowledgement."
    SHARE_SESSION_NOT_FOUND = 122, "There is no such share session."
    INVALID_SHARE_SESSION_EPOCH = 123, "The epoch of the share session is not the expected one."
    FENCED_STATE_EPOCH = 124, "The state epoch of the share group does not match."
    INVALID_VOTER_KEY = 125, "The voter key is not that of this replica."
    DUPLICATE_VOTER = 126, "The replica is a voter already."
    VOTER_NOT_FOUND = 127, "The replica is not a voter."
    INVALID_REGULAR_EXPRESSION = 128, "The regular expression is not valid."
    REBOOTSTRAP_REQUIRED = 129, "The client's metadata is too old; it has to bootstrap again."
    STREAMS_INVALID_TOPOLOGY = 130, "The topology is not valid."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "The topology epoch is not valid."
    STREAMS_TOPOLOGY_FENCED = 132, "The topology epoch is out of date."
    SHARE_SESSION_LIMIT_REACHED = 133, "There are too many share sessions."


def known_error(code: int) -> ErrorCode:
    """The error of a code; UNKNOWN_SERVER_ERROR for a code that is not known here."""
    found = ErrorCode._value2member_map_.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert isinstance(found, ErrorCode)
    return found


def error_of(code: int) -> ErrorCode:
    """The error of a code; UNKNOWN_SERVER_ERROR for one that this release does not know."""
    found = ErrorCode._value2member_map_.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert isinstance(found, ErrorCode)
    return found


def error_name(code: int) -> str:
    """Kafka's name of a code, or the code itself if it has none here."""
    return (
        ErrorCode._value2member_map_[code].name if code in ErrorCode._value2member_map_ else f"error {code}"
    )
