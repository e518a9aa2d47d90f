"""The APIs of a broker's listener, and where the handler of each is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers.routes import routes_of, shared_routes
from kraftd.requests.registry import Ask, Registry, Row
from kraftd.requests.unread_refusals import UnreadRow
from kraftd.wire.api import ApiKey

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode

_TOPIC = AclResourceType.TOPIC
_GROUP, _CLUSTER = AclResourceType.GROUP, AclResourceType.CLUSTER
_TRANSACTIONS = AclResourceType.TRANSACTIONAL_ID
_READ, _DESCRIBE, _DELETE = AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DELETE
_WRITE, _ACTION = AclOperation.WRITE, AclOperation.CLUSTER_ACTION
# What an answer asks to show what its client may do with a group (KIP-430).
_SHOWN = tuple(
    (operation, _GROUP)
    for operation in (_READ, _DELETE, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
)
_OF_FOLLOWERS = ((AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER),)


def _of_groups(key: ApiKey, operation: AclOperation, *also: Ask) -> Row:
    """A row of an API that the group coordinator answers."""
    return Row(key, operation, _GROUP, "broker_node.coordination.group_requests", also)


def _of_transactions(key: ApiKey, operation: AclOperation, *also: Ask) -> Row:
    """A row of an API that the transaction coordinator answers."""
    return Row(key, operation, _TRANSACTIONS, "broker_node.coordination.transaction_requests", also)


def _of_share_states(key: ApiKey) -> Row:
    """A row of an API that the share coordinator answers to brokers."""
    unread = UnreadRow(("topics",), "topic_id", inner="partitions", inner_copied="partition")
    return Row(key, _ACTION, _CLUSTER, "broker_node.coordination.share_state_requests", unread=unread)


# Those beside `answers.routes`, which any node with an image serves.
ROWS: tuple[Row, ...] = (
    Row(
        ApiKey.PRODUCE,
        AclOperation.WRITE,
        _TOPIC,
        "broker_node.apis.api_00_produce",
        ((AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID),),
    ),
    Row(ApiKey.FETCH, AclOperation.READ, _TOPIC, "broker_node.apis.api_01_fetch", _OF_FOLLOWERS),
    Row(ApiKey.LIST_OFFSETS, _DESCRIBE, _TOPIC, "broker_node.apis.api_02_list_offsets"),
    _of_groups(ApiKey.OFFSET_COMMIT, _READ, (_READ, _TOPIC)),
    _of_groups(ApiKey.OFFSET_FETCH, _DESCRIBE, (_DESCRIBE, _TOPIC)),
    _of_groups(ApiKey.JOIN_GROUP, _READ, (_DESCRIBE, _TOPIC)),
    _of_groups(ApiKey.HEARTBEAT, _READ),
    _of_groups(ApiKey.LEAVE_GROUP, _READ),
    _of_groups(ApiKey.SYNC_GROUP, _READ),
    _of_groups(ApiKey.DESCRIBE_GROUPS, _DESCRIBE, *_SHOWN),
    _of_groups(ApiKey.LIST_GROUPS, _DESCRIBE, (_DESCRIBE, _CLUSTER)),
    _of_groups(ApiKey.DELETE_GROUPS, _DELETE),
    _of_groups(ApiKey.CONSUMER_GROUP_HEARTBEAT, _READ, (_DESCRIBE, _TOPIC)),
    _of_groups(ApiKey.CONSUMER_GROUP_DESCRIBE, _DESCRIBE, *_SHOWN, (_DESCRIBE, _TOPIC)),
    _of_groups(ApiKey.SHARE_GROUP_HEARTBEAT, _READ, (_DESCRIBE, _TOPIC)),
    _of_groups(ApiKey.SHARE_GROUP_DESCRIBE, _DESCRIBE, *_SHOWN, (_DESCRIBE, _TOPIC)),
    _of_groups(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, _DESCRIBE, (_DESCRIBE, _TOPIC)),
    _of_groups(ApiKey.ALTER_SHARE_GROUP_OFFSETS, _READ, (_READ, _TOPIC)),
    _of_groups(ApiKey.DELETE_SHARE_GROUP_OFFSETS, _DELETE, (_READ, _TOPIC)),
    _of_groups(ApiKey.OFFSET_DELETE, _DELETE, (_READ, _TOPIC)),
    Row(
        ApiKey.FIND_COORDINATOR,
        _DESCRIBE,
        _GROUP,
        "broker_node.apis.api_10_find_coordinator",
        ((_DESCRIBE, _TRANSACTIONS), (AclOperation.CLUSTER_ACTION, _CLUSTER)),
    ),
    Row(
        ApiKey.INIT_PRODUCER_ID,
        AclOperation.WRITE,
        _TRANSACTIONS,
        "broker_node.apis.api_22_init_producer_id",
        (
            (AclOperation.TWO_PHASE_COMMIT, _TRANSACTIONS),
            (AclOperation.IDEMPOTENT_WRITE, _CLUSTER),
            (AclOperation.WRITE, _TOPIC),
        ),
    ),
    _of_transactions(ApiKey.ADD_PARTITIONS_TO_TXN, _WRITE, (_WRITE, _TOPIC), (_ACTION, _CLUSTER)),
    _of_transactions(ApiKey.ADD_OFFSETS_TO_TXN, _WRITE, (_READ, _GROUP)),
    _of_transactions(ApiKey.END_TXN, _WRITE),
    # Either permission is enough, so the handler asks for both.
    Row(
        ApiKey.WRITE_TXN_MARKERS,
        None,
        None,
        "broker_node.apis.api_27_write_txn_markers",
        ((AclOperation.ALTER, _CLUSTER), (_ACTION, _CLUSTER)),
    ),
    Row(
        ApiKey.TXN_OFFSET_COMMIT,
        _WRITE,
        _TRANSACTIONS,
        "broker_node.apis.api_28_txn_offset_commit",
        ((_READ, _GROUP), (_READ, _TOPIC)),
    ),
    _of_transactions(ApiKey.DESCRIBE_TRANSACTIONS, _DESCRIBE, (_DESCRIBE, _TOPIC)),
    _of_transactions(ApiKey.LIST_TRANSACTIONS, _DESCRIBE),
    Row(ApiKey.SHARE_FETCH, _READ, _GROUP, "broker_node.apis.api_78_share_fetch", ((_READ, _TOPIC),)),
    Row(
        ApiKey.SHARE_ACKNOWLEDGE,
        _READ,
        _GROUP,
        "broker_node.apis.api_79_share_acknowledge",
        ((_READ, _TOPIC),),
    ),
    _of_share_states(ApiKey.INITIALIZE_SHARE_GROUP_STATE),
    _of_share_states(ApiKey.READ_SHARE_GROUP_STATE),
    _of_share_states(ApiKey.WRITE_SHARE_GROUP_STATE),
    _of_share_states(ApiKey.DELETE_SHARE_GROUP_STATE),
    _of_share_states(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY),
    Row(ApiKey.DELETE_RECORDS, AclOperation.DELETE, _TOPIC, "broker_node.apis.api_21_delete_records"),
    Row(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        AclOperation.ALTER,
        _CLUSTER,
        "broker_node.apis.api_34_alter_replica_log_dirs",
    ),
    Row(ApiKey.DESCRIBE_LOG_DIRS, _DESCRIBE, _CLUSTER, "broker_node.apis.api_35_describe_log_dirs"),
    Row(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        AclOperation.DESCRIBE,
        _TOPIC,
        "broker_node.apis.api_23_offset_for_leader_epoch",
        _OF_FOLLOWERS,
    ),
    # A broker checks its own configs; the controller authorizes the change, but for log levels.
    Row(
        ApiKey.ALTER_CONFIGS,
        None,
        None,
        "broker_node.apis.api_33_alter_configs",
        ((AclOperation.ALTER_CONFIGS, _CLUSTER),),
    ),
    Row(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        None,
        None,
        "broker_node.apis.api_44_incremental_alter_configs",
        ((AclOperation.ALTER_CONFIGS, AclResourceType.CLUSTER),),
    ),
    Row(ApiKey.DESCRIBE_PRODUCERS, AclOperation.READ, _TOPIC, "broker_node.apis.api_61_describe_producers"),
)


_WITH_COORDINATORS = {
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
}
# Those whose handlers are of the coordinators' code, or import it.
OF_COORDINATORS = {
    row.key: f"kraftd.{row.module}"
    for row in ROWS
    if row.key in _WITH_COORDINATORS or str(row.module).startswith("broker_node.coordination.")
}


def broker_registry(node: BrokerNode) -> Registry:
    """The registry of a broker's listener, with handlers bound to that node."""
    routes = [*routes_of(node, ROWS), *shared_routes(node, (row[0] for row in ROWS))]
    registry = Registry(routes, unstable=node.settings.unstable_versions)
    for key in OF_COORDINATORS:
        registry.routes[key].hold_back(lambda call: node.coordinators.can_take(call))
    return registry
