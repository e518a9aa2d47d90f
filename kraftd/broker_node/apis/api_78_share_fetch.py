"""ShareFetch (78), v1-2: records for a member of a share group, which acknowledges others with it (KIP-932).

Authorization: READ on the group and on each topic. Sent by: share consumers. Answered once there are MinBytes
that the member may acquire, or an error, at most after MaxWaitMs. The share coordinator keeps what is
acknowledged before. A request that renews locks fetches nothing (KIP-1222). Errors, of the request:
UNSUPPORTED_VERSION (without share groups), INVALID_REQUEST, GROUP_AUTHORIZATION_FAILED,
SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_LIMIT_REACHED (after MaxWaitMs),
UNKNOWN_SERVER_ERROR (an unknown mode of acquisition, or a partition twice in a new session). Per partition:
those of `kraftd.partition.reading.judge_fetch`, UNKNOWN_SERVER_ERROR (a negative MaxBytes),
TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, COORDINATOR_NOT_AVAILABLE. Beside
them those of ShareAcknowledge. Differs from Apache Kafka: the texts of errors are those of their codes, and
an error that is not about the leader names none, instead of 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers.unread_denials import unread as unread
from kraftd.broker_node.share_groups.acknowledging import RENEWING_VERSION, Renewal, Results
from kraftd.broker_node.share_groups.fetches import Demand, Rows, ShareFetch
from kraftd.broker_node.share_groups.requests import acknowledge, check_member
from kraftd.fetch.session_cache import FINAL_EPOCH, next_epoch
from kraftd.fetch.share_sessions import Member, ShareSession, TopicIdPartition
from kraftd.ground.pace import Pace, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.share_fetch_response import (
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from kraftd.requests.permission import Permission
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.requests.call import Call

BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1  # modes of acquisition (KIP-1206)
PARTITION_US = 5


def handle(node: BrokerNode, call: Call) -> Slices[None]:
    if not node.knows_metadata(call):
        return
    member = check_member(node, call)
    request = call.message
    is_renewal = request.is_renew_ack and call.version >= RENEWING_VERSION
    if is_renewal and any((request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms)):
        raise Refusal(ErrorCode.INVALID_REQUEST)
    fetching = Fetching(node, call, member)
    if not fetching.begin_session():
        return
    call.settled = True
    if fetching.acknowledges:
        renewal = Renewal(call.version >= RENEWING_VERSION, request.is_renew_ack)
        yield from acknowledge(node, call, member, renewal, fetching.acknowledged)
    else:
        fetching.acknowledged({})
    if is_renewal:
        fetching.fetched({})
    else:
        yield from fetching.fetch()


class Fetching:
    """One request: it is answered with what was fetched and what became of its acknowledgements."""

    def __init__(self, node: BrokerNode, call: Call, member: Member) -> None:
        self.node = node
        self.call = call
        self.request = call.message
        self.member = member
        self.shares = node.coordinators.shares
        self.is_final = self.request.share_session_epoch == FINAL_EPOCH
        self.acknowledges = any(
            row.acknowledgement_batches for topic in self.request.topics for row in topic.partitions
        )
        self.session: ShareSession
        self.is_first = False
        self._rows: Rows | None = None
        self._results: Results | None = None

    def __repr__(self) -> str:
        return f"<Fetching of {self.member}>"

    def begin_session(self) -> bool:
        """Begin a session, or go on; return whether that succeeded. Raises Refusal."""
        request = self.request
        asked = [
            (topic.topic_id, row.partition_index) for topic in request.topics for row in topic.partitions
        ]
        forgotten = [
            (topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions
        ]
        epoch = request.share_session_epoch
        self.is_first = epoch == 0
        try:
            self.session = self.shares.sessions.fetch(
                self.member,
                epoch,
                self.call.connection_id,
                asked,
                forgotten,
                acknowledges=self.acknowledges,
            )
        except Refusal as refusal:
            if refusal.code is not ErrorCode.SHARE_SESSION_LIMIT_REACHED:
                raise
            self.call.settled = True
            response = ShareFetchResponse(error_code=refusal.code)
            node, call = self.node, self.call
            self.shares.answer_later(
                call,
                request.max_wait_ms,
                lambda: node.boundary.answer(call, response),
            )
            return False
        for topic_id, _ in asked:
            name = self.node.topic_name(topic_id)
            if name is not None:
                self.session.names[topic_id] = name
        return True

    # -- fetching

    def fetch(self) -> Slices[None]:
        node, image = self.node, self.node.view.image
        reading = Permission(node.boundary, self.call, AclOperation.READ, AclResourceType.TOPIC)
        topics: list[tuple[TopicIdPartition, str]] = []
        refused: Rows = {}
        pace = Pace()
        for place in [] if self.is_final else list(self.session.partitions):
            name = self.session.names.get(place[0]) or node.topic_name(place[0])
            if name is None:
                refused[place] = _refused(place, ErrorCode.UNKNOWN_TOPIC_ID)
            elif not reading.allows(name):
                refused[place] = _refused(place, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif image.partition(*place) is None:
                refused[place] = _refused(place, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                topics.append((place, name))
            if pace.spent(PARTITION_US + reading.cost_us):
                yield
        reading.end()
        if not topics:
            self.fetched(refused)
            return
        if self.request.share_acquire_mode not in (BATCH_OPTIMIZED, RECORD_LIMIT):
            # As at Apache Kafka, the session has gone on, and what was acknowledged counts.
            node.boundary.answer(self.call, ShareFetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        epoch = self.request.share_session_epoch
        turn = epoch % len(topics) if epoch >= 1 else 0
        demand, now_ms = self._demand(), node.now_ms
        fetch = ShareFetch(
            self.call,
            self.member,
            demand,
            now_ms,
            now_ms + max(0, demand.max_wait_ms),
            lambda rows: self.fetched(rows | refused),
        )
        yield from self.shares.fetches.begin(fetch, topics[turn:] + topics[:turn])

    def _demand(self) -> Demand:
        request, node = self.request, self.node
        max_bytes = min(request.max_bytes, node.settings.fetch_max_bytes)
        most_bytes = node.quotas.most_fetched_bytes(self.call)
        if most_bytes is not None:
            max_bytes = min(max_bytes, most_bytes)
        return Demand(
            request.max_wait_ms,
            min(request.min_bytes, max_bytes),
            max_bytes,
            request.max_records,
            request.batch_size,
            request.share_acquire_mode == RECORD_LIMIT,
            self.shares.partitions.settings(self.member.group_id).isolation,
        )

    # -- answering

    def fetched(self, rows: Rows) -> None:
        self._rows = rows
        self._answer_if_done()

    def acknowledged(self, results: Results) -> None:
        self._results = results
        self._answer_if_done()

    def _answer_if_done(self) -> None:
        if self._rows is not None and self._results is not None:
            response = self._response(self._rows, self._results)
            if self.is_final:
                self.shares.end_session(self.member)
            self.node.go_on(self._answer(response))

    def _response(self, rows: Rows, results: Results) -> ShareFetchResponse:
        settings = self.shares.partitions.settings(self.member.group_id)
        response = ShareFetchResponse(acquisition_lock_timeout_ms=settings.limits.record_lock_duration_ms)
        is_next = self.session.epoch == next_epoch(self.request.share_session_epoch)
        goes_on = not self.is_first and not self.is_final
        if goes_on and not is_next:
            response.error_code, rows = ErrorCode.INVALID_SHARE_SESSION_EPOCH, {}
        shown = {place: row for place, row in rows.items() if not goes_on or self._must_answer(place, row)}
        response.responses = _by_topic(shown)
        records = [row.records for row in shown.values() if row.records]
        if self.node.exceeds_quota(self.call, response, records):
            shown = {}  # but not what became of the acknowledgements
        elif goes_on:
            for place, row in shown.items():
                self.session.answered(place, has_records=bool(row.records), has_error=bool(row.error_code))
        for place, result in results.items():
            row = shown.setdefault(place, PartitionData(place[1], records=b""))
            row.acknowledge_error_code, row.acknowledge_error_message = result.error, result.message
        response.responses = _by_topic(shown)
        return response

    def _must_answer(self, place: TopicIdPartition, row: PartitionData) -> bool:
        has_records, has_error = bool(row.records), bool(row.error_code)
        return self.session.must_answer(place, has_records=has_records, has_error=has_error)

    def _answer(self, response: ShareFetchResponse) -> Slices[None]:
        node, call = self.node, self.call
        for topic in response.responses:
            name = node.topic_name(topic.topic_id)
            if name is not None:
                size_bytes = sum(len(row.records or b"") for row in topic.partitions)
                node.replicas.traffic.of(name).bytes_out += size_bytes
        yield from node.current_leaders(call).add_to_share_fetch(response, Pace())
        yield from node.boundary.answer_in_slices(call, response)


def _by_topic(rows: Rows) -> list[ShareFetchableTopicResponse]:
    topics: dict[bytes, ShareFetchableTopicResponse] = {}
    for (topic_id, _), row in rows.items():
        topics.setdefault(topic_id, ShareFetchableTopicResponse(topic_id, [])).partitions.append(row)
    return list(topics.values())


def _refused(place: TopicIdPartition, error: ErrorCode) -> PartitionData:
    return PartitionData(place[1], error, records=b"")
