"""AllocateProducerIds: blocks of producer ids, each allocated to one broker only (KIP-730)."""

from __future__ import annotations

from kraftd.controller.brokers.registration import check_broker_epoch
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.ground.refusal import Refusal
from kraftd.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraftd.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from kraftd.messages.producer_ids_record import ProducerIdsRecord
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord

BLOCK_SIZE = 1_000
_LAST_ID = (1 << 63) - 1


def allocate_producer_ids(
    ctx: Context, request: AllocateProducerIdsRequest, _version: int = 0
) -> Decision[AllocateProducerIdsResponse]:
    """AllocateProducerIds (67), v0: a broker gets a block of 1,000 producer ids (KIP-730).

    Authorization: CLUSTER_ACTION. Sent by: brokers. Answered after commit. Errors: STALE_BROKER_EPOCH.
    Differs from Apache Kafka: nowhere.

    The next block. Raises Refusal: STALE_BROKER_EPOCH, UNKNOWN_SERVER_ERROR if the ids are used up.
    """
    check_broker_epoch(ctx, request.broker_id, request.broker_epoch)
    first = max(ctx.image.next_producer_id, 0)
    if first > _LAST_ID - BLOCK_SIZE:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids are used up.")
    record = ProducerIdsRecord(request.broker_id, request.broker_epoch, first + BLOCK_SIZE)
    answer = AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)
    return Decision(answer, [VersionedRecord(record, 0)])
