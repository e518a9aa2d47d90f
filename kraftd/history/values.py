"""The leaves of the tree: a thing of the image as Kafka's metadata-shell prints it, and as JSON.

The texts are those of Kafka 4.3's toString, so that a familiar grep finds them here as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kraftd.history.names import (
    ACL_RESOURCE_TYPES,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RECOVERY_STATES,
    SECURITY_PROTOCOLS,
    named,
)
from kraftd.metadata.state import AclState, BrokerState, ControllerState, PartitionState
from kraftd.types import Endpoint, uuid_text

Fields = dict[str, Any]
_LATEST = 32767  # the open end of a range of versions


def partition_fields(partition: PartitionState) -> Fields:
    return {
        "replicas": list(partition.replicas),
        "directories": [uuid_text(one) for one in partition.directories],
        "isr": list(partition.isr),
        "removingReplicas": list(partition.removing_replicas),
        "addingReplicas": list(partition.adding_replicas),
        "elr": list(partition.elr),
        "lastKnownElr": list(partition.last_known_elr),
        "leader": partition.leader,
        "leaderRecoveryState": named(RECOVERY_STATES, partition.leader_recovery_state),
        "leaderEpoch": partition.leader_epoch,
        "partitionEpoch": partition.partition_epoch,
    }


def broker_fields(broker: BrokerState) -> Fields:
    cordoned = broker.cordoned_directories
    return {
        "id": broker.id,
        "epoch": broker.epoch,
        "incarnationId": uuid_text(broker.incarnation_id),
        "listeners": _listeners(broker.listeners),
        "supportedFeatures": _features(broker.features),
        "rack": broker.rack,
        "fenced": broker.fenced,
        "inControlledShutdown": broker.in_controlled_shutdown,
        "isMigratingZkBroker": broker.is_migrating_zk,
        "directories": [uuid_text(one) for one in broker.directories],
        "cordonedDirectories": None if cordoned is None else [uuid_text(one) for one in cordoned],
    }


def controller_fields(controller: ControllerState) -> Fields:
    return {
        "id": controller.id,
        "incarnationId": uuid_text(controller.incarnation_id),
        "zkMigrationReady": controller.zk_migration_ready,
        "listeners": _listeners(controller.listeners),
        "supportedFeatures": _features(controller.features),
    }


def acl_fields(acl: AclState) -> Fields:
    return {
        "resourceType": named(ACL_RESOURCE_TYPES, acl.resource_type),
        "resourceName": acl.resource_name,
        "patternType": named(PATTERN_TYPES, acl.pattern_type),
        "principal": acl.principal,
        "host": acl.host,
        "operation": named(OPERATIONS, acl.operation),
        "permissionType": named(PERMISSIONS, acl.permission_type),
    }


def java_text(name: str, fields: Mapping[str, Any], brackets: str = "()") -> str:
    """`PartitionRegistration(replicas=[1, 2], ...)`."""
    inside = ", ".join(f"{key}={_text(value)}" for key, value in fields.items())
    return f"{name}{brackets[0]}{inside}{brackets[1]}"


def _listeners(endpoints: Iterable[Endpoint]) -> list[Fields]:
    return [
        {
            "listenerName": one.listener,
            "securityProtocol": named(SECURITY_PROTOCOLS, one.security_protocol),
            "host": one.host,
            "port": one.port,
        }
        for one in sorted(endpoints)
    ]


def _features(features: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    return {
        name: str(low) if low == high else f"{low}+" if high == _LATEST else f"{low}-{high}"
        for name, (low, high) in sorted(features.items())
    }


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(_listener_text(one) if isinstance(one, dict) else str(one) for one in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {text}" for key, text in value.items()) + "}"
    return str(value)


def _listener_text(fields: Fields) -> str:
    return (
        f"Endpoint(listenerName='{fields['listenerName']}', securityProtocol={fields['securityProtocol']}, "
        f"host='{fields['host']}', port={fields['port']})"
    )
