"""AlterClientQuotas: each entity is changed completely or not at all, with an answer of its own (KIP-546).

Facts: ClientQuotaControlManager of Apache Kafka 4.3.1. Differs from it: neither change of an entity that is
named twice is made, while Kafka refuses it and makes the first; a NaN is refused; an ip is an address, not a
host name that would have to be resolved.
"""

from __future__ import annotations

from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.quotas.entities import check_value, keys_of
from kraftd.controller.record_limit import check_record_count
from kraftd.ground.occurrences import count_in_slices
from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.alter_client_quotas_request import AlterClientQuotasRequest, OpData
from kraftd.messages.alter_client_quotas_request import EntryData as RequestedEntry
from kraftd.messages.alter_client_quotas_response import AlterClientQuotasResponse, EntityData, EntryData
from kraftd.messages.client_quota_record import ClientQuotaRecord
from kraftd.messages.client_quota_record import EntityData as RecordEntity
from kraftd.metadata.state import QuotaEntity
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord

ENTITY_US, OP_US = 8, 4
MAX_PARTS = 100  # of an entity


@Sliced
def alter_client_quotas(
    ctx: Context, request: AlterClientQuotasRequest, version: int
) -> Slices[Decision[AlterClientQuotasResponse]]:
    """AlterClientQuotas (49), v0-1: the quotas of users, clients and addresses (KIP-546, KIP-612).

    Authorization: ALTER_CONFIGS on the cluster. Sent by: admin clients. Answered after commit. Errors, per
    entity: INVALID_REQUEST; POLICY_VIOLATION for more than 10,000 changes.
    Differs from Apache Kafka: an entity that is named twice is changed by neither, NaN is refused, and an ip
    is an address, never a host name.

    The records of all changes in one batch, and per entity the reason if refused (INVALID_REQUEST).

    With validate_only the same answer and no records. Raises Refusal(POLICY_VIOLATION) for more than 10,000
    records.
    """
    answer = AlterClientQuotasResponse(entries=[])
    records: list[VersionedRecord] = []
    pace = Pace()
    times = yield from count_in_slices(request.entries, entity_of, pace, ENTITY_US)
    for requested in request.entries:
        check_record_count(len(requested.ops))
        if pace.spent(ENTITY_US):
            yield
        entity = entity_of(requested)
        count = times.take(entity)
        if not count:
            continue  # answered at its first place
        code, message = ErrorCode.NONE, None
        try:
            if count > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, f"The request names {_text(entity)} more than once")
            if len(requested.entity) > MAX_PARTS:
                raise Refusal(ErrorCode.INVALID_REQUEST, "An entity has more than 100 parts")
            records += yield from _records(ctx, entity, requested.ops, pace)
        except Refusal as refusal:
            code, message = refusal.code, refusal.message
        answer.entries.append(EntryData(code, message, [EntityData(*part) for part in entity]))
        check_record_count(len(records))
    return Decision(answer, [] if request.validate_only else records)


def entity_of(requested: RequestedEntry) -> QuotaEntity:
    """The entity as in the image: pairs sorted by type; of a repeated type the last counts.

    There are three types. Of very many parts the first ones are enough for a refusal.
    """
    parts = requested.entity[:MAX_PARTS]
    return tuple(sorted({part.entity_type: part.entity_name for part in parts}.items()))


def _records(
    ctx: Context, entity: QuotaEntity, ops: list[OpData], pace: Pace
) -> Slices[list[VersionedRecord]]:
    """The records of one entity's changes; an unchanged value needs none. Raises Refusal."""
    named = set()
    for op in ops:
        if pace.spent(OP_US):
            yield
        named.add(op.key)
    if not entity or len(named) == len(ops):
        keys = keys_of(entity)
    else:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"A quota key is named twice for {_text(entity)}")
    current = ctx.image.quotas.get(entity, {})
    records = []
    for op in ops:
        if pace.spent(OP_US):
            yield
        if op.remove:
            if op.key in current:
                records.append(_record(entity, op.key, 0.0, remove=True))
            continue
        check_value(keys, op.key, op.value)
        if current.get(op.key) != op.value:
            records.append(_record(entity, op.key, op.value, remove=False))
    return records


def _record(entity: QuotaEntity, key: str, value: float, *, remove: bool) -> VersionedRecord:
    named = [RecordEntity(kind, name) for kind, name in entity]
    return VersionedRecord(ClientQuotaRecord(named, key, value, remove), 0)


def _text(entity: QuotaEntity) -> str:
    return ", ".join(f"{kind} {'<default>' if name is None else name}" for kind, name in entity)
