"""The records that a leader writes without a request. These are a new cluster's first records, the abort of a
transaction that an earlier leader left open, and periodic NoOp records.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraftd.controller.configs.elr import config_record
from kraftd.controller.configs.resources import CLUSTER, MIN_INSYNC_REPLICAS
from kraftd.controller.configs.values import node_config
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.end_transaction_record import EndTransactionRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.metadata.features import ELR_VERSION
from kraftd.metadata.metadata_version import METADATA_VERSION, allows_transactions
from kraftd.wire.record_frame import VersionedRecord

# Names that Kafka's tools show.
BOOTSTRAP_TRANSACTION = "Bootstrap records"
FAILOVER = "Controller failover"


class ActivationError(Exception):
    """The node cannot lead: the log and the bootstrap records contradict each other."""


def activate(ctx: Context, bootstrap: Sequence[VersionedRecord]) -> Decision[None]:
    """The first decision of a leader, before any other.

    An empty log gets the bootstrap records, in one metadata transaction if the metadata.version allows it
    (KIP-868), else in one batch. An open transaction is aborted first. Any other log only gets the abort.
    Raises ActivationError.
    """
    in_transaction = ctx.image.in_transaction
    current = ctx.image.features_before_transaction().get(METADATA_VERSION)
    level = current if current is not None else bootstrap_level(bootstrap, METADATA_VERSION)
    if level is None:
        raise ActivationError("neither the log nor the bootstrap records name a metadata.version")
    transactional = allows_transactions(level)
    if in_transaction and not transactional:
        raise ActivationError(
            f"a metadata transaction is open at offset {ctx.image.transaction_offset}, "
            f"which metadata.version {level} does not know"
        )
    records = [VersionedRecord(AbortTransactionRecord(FAILOVER), 0)] if in_transaction else []

    def start_sessions(_end_offset: int) -> None:
        ctx.heartbeats.start(ctx.image.brokers.values(), ctx.now_ms)

    if current is not None:
        return Decision(None, records, after=start_sessions)
    if transactional:
        records.append(VersionedRecord(BeginTransactionRecord(BOOTSTRAP_TRANSACTION), 0))
    records.extend(bootstrap)
    if (bootstrap_level(bootstrap, ELR_VERSION) or 0) > 0:
        # The ELR needs a min.insync.replicas that all nodes share (KIP-966); the first comes from this node's
        # file.
        records.append(config_record(CLUSTER, str(node_config(ctx).integer(MIN_INSYNC_REPLICAS))))
    if transactional:
        records.append(VersionedRecord(EndTransactionRecord(), 0))
    return Decision(None, records, atomic=not transactional, after=start_sessions)


def write_no_op(_ctx: Context) -> Decision[None]:
    """Write a NoOpRecord every metadata.max.idle.interval.ms, after other records too, so that the high
    watermark moves.
    """
    return Decision(None, [VersionedRecord(NoOpRecord(), 0)])


def bootstrap_level(bootstrap: Sequence[VersionedRecord], feature: str) -> int | None:
    """The last level that bootstrap records give a feature; None if they do not name it."""
    level = None
    for record in bootstrap:
        if isinstance(record.message, FeatureLevelRecord) and record.message.name == feature:
            level = record.message.feature_level
    return level
