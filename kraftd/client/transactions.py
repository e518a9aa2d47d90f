"""The transactions of a cluster from outside (KIP-664): at their coordinators, and open in partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from kraftd.client.all_brokers import ask_all
from kraftd.client.cluster import Cluster
from kraftd.client.connection import Connection
from kraftd.client.coordinator import (
    COORDINATOR_ERRORS,
    TRANSACTION,
    Coordinator,
    partitions_without_coordinator,
    repeated,
)
from kraftd.client.failures import Refused, Unreachable
from kraftd.client.open_transactions import UNKNOWN, IdState, Judged, OpenTransaction, judge
from kraftd.client.partition_reader import LEADER_ERRORS
from kraftd.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kraftd.messages.describe_producers_response import DescribeProducersResponse
from kraftd.messages.describe_transactions_request import DescribeTransactionsRequest
from kraftd.messages.describe_transactions_response import DescribeTransactionsResponse, TransactionState
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.init_producer_id_response import InitProducerIdResponse
from kraftd.messages.list_transactions_request import ListTransactionsRequest
from kraftd.messages.list_transactions_response import ListTransactionsResponse
from kraftd.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kraftd.messages.write_txn_markers_response import WriteTxnMarkersResponse
from kraftd.named_tuple import NamedTuple
from kraftd.types import address_text
from kraftd.wire.error_code import ErrorCode, error_name

IDS_A_REQUEST = 1_000
PARTITIONS_A_REQUEST = 1_000
FENCE_TIMEOUT_MS = 60_000  # of a transactional id whose own timeout no request may ask for
_ENDING = frozenset((ErrorCode.CONCURRENT_TRANSACTIONS,))


class ListedId(NamedTuple):
    """A transactional id of a coordinator, which is a broker's id."""

    transactional_id: str
    state: str
    producer_id: int
    coordinator: int


class Missing(NamedTuple):
    """A partition whose producers are unknown, and why."""

    topic: str
    partition: int
    why: str


async def list_transactions(
    cluster: Cluster,
    states: Sequence[str] = (),
    producer_ids: Sequence[int] = (),
    older_than_ms: int = -1,
) -> tuple[list[ListedId], dict[str, str]]:
    """The transactional ids of every coordinator, and whose are missing, and why: a broker's that does not
    answer, or those of partitions without a leader.

    Raises Unreachable if none does, Refused.
    """
    request = ListTransactionsRequest(tuple(states), tuple(producer_ids), older_than_ms)

    async def attempt(connection: Connection) -> tuple[int, ListTransactionsResponse]:
        answer = await connection.ask(request, ListTransactionsResponse)
        if answer.unknown_state_filters:
            names = ", ".join(answer.unknown_state_filters)
            raise Refused(f"No transaction has a state {names}.", ErrorCode.INVALID_REQUEST)
        return answer.error_code, answer

    answers, missing = await ask_all(cluster, attempt)
    missing |= await partitions_without_coordinator(cluster, TRANSACTION)
    listed = [
        ListedId(one.transactional_id, one.transaction_state, one.producer_id, node_id)
        for node_id, answer in answers.items()
        for one in answer.transaction_states
    ]
    return listed, missing


async def describe_transaction(cluster: Cluster, transactional_id: str) -> IdState | None:
    """A transactional id at its coordinator; None if there is none. Raises Refused, Unreachable."""
    coordinator = Coordinator(cluster, TRANSACTION, transactional_id)
    try:
        found = await coordinator.ask(lambda connection: _described(connection, transactional_id))
    except Refused as error:
        if error.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return None
        raise
    connection = await coordinator.connection()
    return _state(found, address_text((connection.host, connection.port)))


async def describe_all(cluster: Cluster, listed: Iterable[ListedId]) -> list[IdState]:
    """What is known of listed ids, by few requests. Ids that are gone meanwhile are left out."""
    by_broker: dict[int, list[str]] = {}
    for one in listed:
        by_broker.setdefault(one.coordinator, []).append(one.transactional_id)

    async def of_broker(node_id: int, ids: list[str]) -> list[IdState]:
        connection = await cluster.node(node_id)
        address, found = address_text((connection.host, connection.port)), []
        for first in range(0, len(ids), IDS_A_REQUEST):
            request = DescribeTransactionsRequest(tuple(ids[first : first + IDS_A_REQUEST]))
            answer = await connection.ask(request, DescribeTransactionsResponse)
            for row in answer.transaction_states:
                if row.error_code in COORDINATOR_ERRORS:  # it has moved since
                    state = await describe_transaction(cluster, row.transactional_id)
                    found += [] if state is None else [state]
                elif not row.error_code:
                    found.append(_state(row, address))
        return found

    several = await asyncio.gather(*(of_broker(*one) for one in by_broker.items()))
    return [one for states in several for one in states]


async def find_open(
    cluster: Cluster, places: Iterable[tuple[str, int]]
) -> tuple[list[OpenTransaction], list[Missing]]:
    """The transactions that are open in partitions, and the partitions whose leaders do not say.

    The cluster's metadata must have the topics.
    """
    left, missing = set(places), []

    async def of_leader(node_id: int, places: list[tuple[str, int]]) -> list[OpenTransaction]:
        topics: dict[str, list[int]] = {}
        for topic, index in places:
            topics.setdefault(topic, []).append(index)
        request = DescribeProducersRequest([TopicRequest(name, tuple(some)) for name, some in topics.items()])
        answer = await (await cluster.node(node_id)).ask(request, DescribeProducersResponse)
        found = []
        for row in answer.topics:
            for one in row.partitions:
                if one.error_code in LEADER_ERRORS:
                    missing.append(Missing(row.name, one.partition_index, "its leader has changed"))
                elif one.error_code:
                    missing.append(Missing(row.name, one.partition_index, error_name(one.error_code)))
                found += [
                    OpenTransaction(
                        row.name,
                        one.partition_index,
                        producer.producer_id,
                        producer.producer_epoch,
                        producer.coordinator_epoch,
                        producer.current_txn_start_offset,
                        producer.last_timestamp,
                    )
                    for producer in one.active_producers
                    if producer.current_txn_start_offset >= 0
                ]
        return found

    by_leader: dict[int, list[tuple[str, int]]] = {}
    for place in sorted(left):
        leader = cluster.cache.leader(*place)
        if leader is None or leader.id not in cluster.cache.nodes:
            missing.append(Missing(*place, "it has no leader" if leader else "there is no such partition"))
        else:
            by_leader.setdefault(leader.id, []).append(place)
    pieces = [
        (node_id, places[first : first + PARTITIONS_A_REQUEST])
        for node_id, places in by_leader.items()
        for first in range(0, len(places), PARTITIONS_A_REQUEST)
    ]
    several = await asyncio.gather(*(of_leader(*one) for one in pieces))
    return [one for found in several for one in found], missing


async def judge_open(cluster: Cluster, found: Sequence[OpenTransaction], now_ms: int) -> list[Judged]:
    """Judge open transactions by what the coordinators know of their producers.

    The partitions are asked once more afterwards: what has ended meanwhile is left out.
    """
    if not found:
        return []
    ids = sorted({one.producer_id for one in found})
    listed: list[ListedId] = []
    for first in range(0, len(ids), IDS_A_REQUEST):
        known, missing = await list_transactions(cluster, producer_ids=ids[first : first + IDS_A_REQUEST])
        if missing:  # a transaction of that coordinator's would be taken for one without an owner
            raise Unreachable(next(iter(missing.values())))
        listed += known
    owners = {one.producer_id: one for one in await describe_all(cluster, listed)}
    again, _ = await find_open(cluster, {(one.topic, one.partition) for one in found})
    still = {(one.topic, one.partition, one.start_offset) for one in again}
    return [
        judge(one, owners.get(one.producer_id), now_ms)
        for one in found
        if (one.topic, one.partition, one.start_offset) in still
    ]


async def abort_in_partition(cluster: Cluster, found: OpenTransaction) -> None:
    """Have the partition's leader write the abort marker that no coordinator sends.

    Raises Refused, Unreachable.
    """
    topic = WritableTxnMarkerTopic(found.topic, (found.partition,))
    epoch = max(found.coordinator_epoch, 0)
    marker = WritableTxnMarker(found.producer_id, found.producer_epoch, False, [topic], epoch)

    async def connect() -> Connection:
        return await cluster.node((await cluster.leader(found.topic, found.partition)).id)

    async def attempt(connection: Connection) -> tuple[int, None]:
        answer = await connection.ask(WriteTxnMarkersRequest([marker]), WriteTxnMarkersResponse)
        return answer.markers[0].topics[0].partitions[0].error_code, None

    await repeated(cluster, f"{found.topic}-{found.partition}", connect, attempt)


async def abort_by_fencing(cluster: Cluster, state: IdState) -> tuple[int, int]:
    """Abort the transaction of an id, as a new producer with that id would; the former one is fenced.

    Returns the new producer id and epoch. Raises Refused, Unreachable.
    """
    timeout_ms = state.timeout_ms if 0 < state.timeout_ms < 2**31 - 1 else FENCE_TIMEOUT_MS
    request = InitProducerIdRequest(state.transactional_id, timeout_ms)

    async def attempt(connection: Connection) -> tuple[int, tuple[int, int]]:
        answer = await connection.ask(request, InitProducerIdResponse)
        return answer.error_code, (answer.producer_id, answer.producer_epoch)

    return await Coordinator(cluster, TRANSACTION, state.transactional_id, _ENDING).ask(attempt)


async def _described(connection: Connection, id: str) -> tuple[int, TransactionState]:
    answer = await connection.ask(DescribeTransactionsRequest((id,)), DescribeTransactionsResponse)
    row = answer.transaction_states[0]
    return row.error_code, row


def _state(row: TransactionState, coordinator: str) -> IdState:
    return IdState(
        row.transactional_id,
        row.transaction_state,
        row.producer_id,
        row.producer_epoch,
        row.transaction_timeout_ms,
        row.transaction_start_time_ms if row.transaction_start_time_ms > 0 else UNKNOWN,
        frozenset((one.topic, index) for one in row.topics for index in one.partitions),
        coordinator,
    )
