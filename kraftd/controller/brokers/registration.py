"""Registration (KIP-631, KIP-858, KIP-966) and unregistration of brokers, and the check for stale requests of
brokers.
"""

from __future__ import annotations

from kraftd.controller.brokers.transitions import handle_broker_shutdown, handle_broker_unregistered
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.endpoints import checked_endpoints
from kraftd.controller.record_limit import check_record_count
from kraftd.ground.pace import Sliced, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest
from kraftd.messages.broker_registration_response import BrokerRegistrationResponse
from kraftd.messages.register_broker_record import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from kraftd.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftd.messages.unregister_broker_response import UnregisterBrokerResponse
from kraftd.metadata.metadata_version import (
    KRAFT_VERSION,
    METADATA_VERSION,
    allows_directory_assignment,
    register_broker_record_version,
)
from kraftd.metadata.state import BrokerState
from kraftd.types import uuid_text
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord

FIRST_VERSION_WITH_PREVIOUS_EPOCH = 3  # of the request: it then holds the previous broker epoch
RESERVED_DIRECTORY_IDS = 100  # directory ids below this number are reserved (KIP-858)


def check_broker_epoch(ctx: Context, broker_id: int, broker_epoch: int) -> BrokerState:
    """The broker, if broker_epoch is that of its registration.  Raises Refusal(STALE_BROKER_EPOCH)."""
    broker = ctx.image.brokers.get(broker_id)
    if broker is None:
        raise Refusal(ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} is not registered.")
    if broker.epoch != broker_epoch:
        raise Refusal(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Broker {broker_id} is registered with broker epoch {broker.epoch}, not {broker_epoch}.",
        )
    return broker


@Sliced
def register_broker(
    ctx: Context, request: BrokerRegistrationRequest, version: int
) -> Slices[Decision[BrokerRegistrationResponse]]:
    """BrokerRegistration (62), v0-4: a broker registers and gets its broker epoch.

    Authorization: CLUSTER_ACTION. Sent by: brokers, once per start. Answered after commit. Errors:
    INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION (its old session has not ended),
    INVALID_REGISTRATION, UNSUPPORTED_VERSION (a finalized feature is out of its range),
    BROKER_ID_NOT_REGISTERED. Differs from Apache Kafka: nowhere.

    BrokerRegistration: the records that clean up after a former incarnation, then that of the registration.

    The broker epoch is the offset of the first record. The same incarnation keeps its epoch and state, and
    only updates its endpoints, features, rack and directories. The records need not be one batch: a broker
    that gets no answer registers again.

    Raises Refusal: INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION (another incarnation is alive),
    BROKER_ID_NOT_REGISTERED (a broker that migrates from ZooKeeper); INVALID_REGISTRATION (directories, no
    metadata.version), UNSUPPORTED_VERSION (a finalized feature is outside of the broker's range).
    """
    existing = ctx.image.brokers.get(request.broker_id)
    same_incarnation = existing is not None and existing.incarnation_id == request.incarnation_id
    _check_incarnation(ctx, request, existing)
    level = ctx.image.metadata_version
    if allows_directory_assignment(level):
        _check_directories(ctx, request)
    endpoints = [BrokerEndpoint(*endpoint) for endpoint in checked_endpoints(request.listeners)]
    _check_features(ctx, request)

    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        end_points=endpoints,
        features=[
            BrokerFeature(f.name, f.min_supported_version, f.max_supported_version) for f in request.features
        ],
        rack=request.rack,
    )
    if allows_directory_assignment(level):
        record.log_dirs = request.log_dirs
    records: list[VersionedRecord] = []
    if existing is not None and same_incarnation:
        record.fenced = existing.fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
        record.broker_epoch = existing.epoch
    else:
        clean = (
            version >= FIRST_VERSION_WITH_PREVIOUS_EPOCH
            and existing is not None
            and request.previous_broker_epoch == existing.epoch
        )
        records += yield from handle_broker_shutdown.begin(ctx, request.broker_id, clean)
        record.broker_epoch = ctx.next_offset
    records.append(VersionedRecord(record, register_broker_record_version(level)))

    def forget_old_heartbeat(_end_offset: int) -> None:
        ctx.heartbeats.forget(request.broker_id)
        if existing is None:
            ctx.heartbeats.heard(request.broker_id, ctx.now_ms)

    answer = BrokerRegistrationResponse(broker_epoch=record.broker_epoch)
    return Decision(answer, records, atomic=False, after=forget_old_heartbeat)


def _check_incarnation(
    ctx: Context, request: BrokerRegistrationRequest, existing: BrokerState | None
) -> None:
    """Raises Refusal for a broker of another cluster or kind, or beside an incarnation that is alive."""
    if request.cluster_id != ctx.settings.cluster_id:
        raise Refusal(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Broker {request.broker_id} is of cluster {request.cluster_id}, not {ctx.settings.cluster_id}.",
        )
    if (
        existing is not None
        and existing.incarnation_id != request.incarnation_id
        and ctx.heartbeats.has_valid_session(existing.id, existing.epoch, ctx.now_ms)
    ):
        raise Refusal(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"Broker {existing.id} is registered and alive with another incarnation; "
            "after a restart, its old session ends by itself.",
        )
    if request.is_migrating_zk_broker:
        raise Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, "Brokers of a ZooKeeper cluster cannot register.")


@Sliced
def unregister_broker(
    ctx: Context, request: UnregisterBrokerRequest, _version: int = 0
) -> Slices[Decision[UnregisterBrokerResponse]]:
    """UnregisterBroker (64), v0: forget a broker that will not come back.

    Authorization: ALTER on the cluster. Sent by: admin clients. Answered after commit. Errors:
    BROKER_ID_NOT_REGISTERED.
    Differs from Apache Kafka: nowhere.

    UnregisterBroker: the broker leaves every ISR and ELR, then is forgotten.

    Raises Refusal: BROKER_ID_NOT_REGISTERED, POLICY_VIOLATION (more records than one request may write).
    """
    broker = ctx.image.brokers.get(request.broker_id)
    if broker is None:
        raise Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {request.broker_id} is not registered.")
    records = yield from handle_broker_unregistered.begin(ctx, broker.id, broker.epoch)
    check_record_count(len(records))

    def forget_heartbeat(_end_offset: int) -> None:
        ctx.heartbeats.forget(request.broker_id)

    return Decision(UnregisterBrokerResponse(), records, atomic=False, after=forget_heartbeat)


def _check_directories(ctx: Context, request: BrokerRegistrationRequest) -> None:
    """Check that the broker has directories, and shares none with another broker."""
    directories = request.log_dirs
    if not directories:
        raise Refusal(ErrorCode.INVALID_REGISTRATION, "The registration names no log directory.")
    for directory in directories:
        if not any(directory[:8]) and int.from_bytes(directory[8:], signed=True) < RESERVED_DIRECTORY_IDS:
            raise Refusal(
                ErrorCode.INVALID_REGISTRATION, f"Directory id {uuid_text(directory)} is a reserved one."
            )
    if len(set(directories)) != len(directories):
        raise Refusal(ErrorCode.INVALID_REGISTRATION, "The registration names a log directory twice.")
    wanted = set(directories)
    for broker in ctx.image.brokers.values():
        if broker.id != request.broker_id:
            for directory in broker.directories:
                if directory in wanted:
                    raise Refusal(
                        ErrorCode.INVALID_REGISTRATION,
                        f"Directory {uuid_text(directory)} belongs to broker {broker.id} already.",
                    )


def _check_features(ctx: Context, request: BrokerRegistrationRequest) -> None:
    """Check that finalized levels are in the broker's ranges; a feature that it does not name has the range 0
    to 0.
    """
    finalized = {**ctx.image.features, KRAFT_VERSION: ctx.kraft_version}
    finalized.setdefault(METADATA_VERSION, ctx.image.metadata_version)
    named = set()
    for feature in request.features:
        named.add(feature.name)
        level = finalized.get(feature.name, 0)
        if not feature.min_supported_version <= level <= feature.max_supported_version:
            raise _unsupported(
                feature.name, level, feature.min_supported_version, feature.max_supported_version
            )
    if METADATA_VERSION not in named:
        raise Refusal(ErrorCode.INVALID_REGISTRATION, "The registration has no range for metadata.version.")
    for name, level in finalized.items():
        if level != 0 and name not in named:
            raise _unsupported(name, level, 0, 0)


def _unsupported(name: str, level: int, low: int, high: int) -> Refusal:
    return Refusal(
        ErrorCode.UNSUPPORTED_VERSION, f"{name} is finalized at {level}; the broker supports {low} to {high}."
    )
