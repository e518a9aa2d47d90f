"""Produce requests under way: appended, then answered once their records are written, or replicated.

With acks=1 an answer waits until its records are written; with acks=all until every member of the ISR has
them, at most for the request's timeout. A partition's part of an answer is settled alone; the answer goes out
with the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from kraftd.answers.current_leaders import CurrentLeaders
from kraftd.broker_node.partitions.log_waits import LogWaits
from kraftd.fetch.purgatory import Purgatory
from kraftd.ground.pace import Pace, Slices, at_once
from kraftd.ground.ticks import earliest_ms
from kraftd.messages.produce_response import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from kraftd.partition.partition import ACKS_ALL, NO_TIMESTAMP, Produced
from kraftd.requests.boundary import Boundary
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.partitions.produce_answers import ProduceAnswers
    from kraftd.broker_node.partitions.replicas import Hosted, Replicas
    from kraftd.requests.call import Call

NO_OFFSET = -1


class UnderWay(Struct, eq=False):
    """Appends of one request, and how many of its partitions are not settled yet.

    The answer of a Produce is `response`; without a call, `then` is called instead.
    """

    acks: int
    timeout_ms: int
    call: Call | None = None
    response: ProduceResponse | None = None
    then: Callable[[], None] | None = None
    left: int = 0
    has_errors: bool = False  # in its response
    until_ms: int | None = None  # for replicas; None until the handler has seen all partitions

    def __repr__(self) -> str:
        return f"<UnderWay {self.call!r}, {self.left} parts left>"


class Part(Struct, eq=False):
    """One partition of a Produce: its part of the answer, and what it waits for."""

    under_way: UnderWay
    hosted: Hosted
    answer: PartitionProduceResponse
    required_offset: int

    def __repr__(self) -> str:
        return f"<Part {self.hosted!r} up to {self.required_offset} of {self.under_way!r}>"


class PlainPart(Struct, eq=False):
    """A Produce of one partition whose answer is known, once the records are written without trouble.

    In trouble it becomes a `Part`, whose answer is made.
    """

    call: Call
    hosted: Hosted
    produced: Produced
    answers: ProduceAnswers
    until_ms: int

    def general(self) -> Part:
        """The same part of a request as any other."""
        call, produced = self.call, self.produced
        request = call.message
        topic = request.topic_data[0]
        answer = PartitionProduceResponse(
            self.hosted.index, 0, produced.base_offset, produced.append_time_ms, produced.log_start_offset
        )
        row = TopicProduceResponse(topic.name, topic.topic_id, [answer])
        under_way = UnderWay(
            request.acks, request.timeout_ms, call, ProduceResponse([row]), left=1, until_ms=self.until_ms
        )
        return Part(under_way, self.hosted, answer, produced.required_offset)

    def __repr__(self) -> str:
        return f"<PlainPart {self.hosted!r}, {self.produced!r} of {self.call!r}>"


class Produces:
    """The Produce requests that are not answered yet.

    `missing` gives the error for a partition that is not here, `leaders_for` knows the leaders for a call,
    and `charge` charges it to its client's quota.
    """

    def __init__(
        self,
        boundary: Boundary,
        replicas: Replicas,
        missing: Callable[[str, int], ErrorCode],
        leaders_for: Callable[[Call], CurrentLeaders],
        charge: Callable[[Call], None],
    ) -> None:
        self.log_waits = LogWaits(replicas, boundary)
        self._boundary = boundary
        self._replicas = replicas
        self._missing = missing
        self._leaders_for = leaders_for
        self._charge = charge
        self._unwritten: dict[tuple[str, int, int], Part | PlainPart] = {}  # by partition and base offset
        self._unreplicated: Purgatory[Part] = Purgatory()
        self._by_deadline: Purgatory[UnderWay] = Purgatory()
        self._parts_of: dict[UnderWay, list[Part]] = {}  # that are parked
        # Of Produce requests that were handled, and of deadlines that were set for some of them.
        self.handled_count = self.deadline_count = 0

    def __len__(self) -> int:
        return len(self._unwritten) + len(self._unreplicated)

    @property
    def waiting_count(self) -> int:
        """The requests that wait for replicas."""
        return len(self._by_deadline)

    def __repr__(self) -> str:
        return f"<Produces, {len(self._unwritten)} parts unwritten, {len(self._unreplicated)} unreplicated>"

    def add(
        self, under_way: UnderWay, hosted: Hosted, answer: PartitionProduceResponse, produced: Produced
    ) -> None:
        """Wait for an accepted part."""
        under_way.left += 1
        part = Part(under_way, hosted, answer, produced.required_offset)
        if produced.append is not None:
            self._unwritten[hosted.topic, hosted.index, produced.append.base_offset] = part
        else:  # a duplicate, which was written before
            self._written(part)

    def add_plain(
        self, call: Call, hosted: Hosted, produced: Produced, answers: ProduceAnswers, now_ms: int
    ) -> None:
        """Wait for the only part of a request, whose records are to be written."""
        call.settled = True
        until_ms = now_ms + max(0, call.message.timeout_ms)
        part = PlainPart(call, hosted, produced, answers, until_ms)
        self.handled_count += 1
        self._unwritten[hosted.topic, hosted.index, produced.base_offset] = part

    def handled(self, under_way: UnderWay, now_ms: int) -> None:
        """All partitions of a Produce were judged: from now on it waits for its timeout at most."""
        under_way.until_ms = now_ms + max(0, under_way.timeout_ms)
        if under_way.call is not None:
            self.handled_count += 1
        if under_way.left == 0:
            self._end(under_way)
        elif self._parts_of and under_way in self._parts_of:
            self._set_deadline(under_way, under_way.until_ms)

    def _set_deadline(self, under_way: UnderWay, until_ms: int) -> None:
        self.deadline_count += 1
        self._by_deadline.park(under_way, under_way, (), until_ms)

    def written(self, topic: str, index: int, base_offset: int, error: ErrorCode | None) -> None:
        """An append ended."""
        part = self._unwritten.pop((topic, index, base_offset), None)
        if part is None:
            return
        if isinstance(part, PlainPart):
            if error is None and self._answer_plain(part):
                return
            part = part.general()
        if error is not None:
            self._fail(part, error)
        else:
            self._written(part)

    def replicated(self, hosted: Hosted) -> None:
        """The high watermark of a partition moved, or it is not led any more."""
        partition = hosted.partition
        key = hosted.topic, hosted.index
        if partition is None or not partition.is_leader:
            parts = self._unreplicated.complete_all(key)
        else:
            parts = self._unreplicated.reach(key, partition.high_watermark)
        for part in parts:
            self._replicated(part)

    def deadline_ms(self) -> int | None:
        """When `run_due` has work next; None for never."""
        return earliest_ms(self.log_waits.deadline_ms(), self._by_deadline.deadline_ms())

    def run_due(self, now_ms: int) -> None:
        """Answer what has waited for its timeout."""
        self.log_waits.release(now_ms)
        for under_way in self._by_deadline.expire(now_ms):
            for part in self._parts_of.pop(under_way, ()):
                if self._unreplicated.abandon(part) is not None:
                    part.answer.error_code = ErrorCode.REQUEST_TIMED_OUT
                    under_way.has_errors = True
                    self.settle(under_way)

    def _answer_plain(self, part: PlainPart) -> bool:
        """Answer a request whose records are written; return whether there is nothing else to do."""
        call, hosted, produced = part.call, part.hosted, part.produced
        if call.message.acks == ACKS_ALL:
            partition = hosted.partition
            if partition is None or partition.acknowledged(produced.required_offset) is not ErrorCode.NONE:
                return False
            if self._replicas.get(hosted.topic, hosted.index) is not hosted:
                return False
        self._charge(call)
        if call.mute_ms or call.throttle_ms:
            response = part.general().under_way.response
            assert response is not None
            self._boundary.send(call, call.frame(response))
            return True
        parts = part.answers.encoded(
            call.correlation_id, produced.base_offset, produced.append_time_ms, produced.log_start_offset
        )
        self._boundary.send(call, parts)
        return True

    def _written(self, part: Part) -> None:
        hosted, partition = part.hosted, part.hosted.partition
        if part.under_way.acks != ACKS_ALL:
            self.settle(part.under_way)
        elif partition is None:
            self._replicated(part)
        elif (error := partition.acknowledged(part.required_offset)) is not None:
            if error is ErrorCode.NONE and self._replicas.get(hosted.topic, hosted.index) is hosted:
                self.settle(part.under_way)  # as nearly always
            else:
                self._replicated(part)
        else:
            key = part.hosted.topic, part.hosted.index
            self._unreplicated.park(part, part, [(key, part.required_offset)])
            under_way = part.under_way
            if under_way not in self._parts_of:
                self._parts_of[under_way] = []
                if under_way.until_ms is not None:
                    self._set_deadline(under_way, under_way.until_ms)
            self._parts_of[under_way].append(part)

    def _replicated(self, part: Part) -> None:
        hosted, partition = part.hosted, part.hosted.partition
        if partition is None or self._replicas.get(hosted.topic, hosted.index) is not hosted:
            error: ErrorCode | None = self._missing(hosted.topic, hosted.index)
        else:
            error = partition.acknowledged(part.required_offset)
        if error:
            part.answer.error_code = error  # what was appended, and where, stays in the answer
            part.under_way.has_errors = True
        self.settle(part.under_way)

    def _fail(self, part: Part, error: ErrorCode) -> None:
        """Nothing of a part was written."""
        answer = part.answer
        answer.error_code = error
        answer.base_offset = answer.log_start_offset = NO_OFFSET
        answer.log_append_time_ms = NO_TIMESTAMP
        part.under_way.has_errors = True
        self.settle(part.under_way)

    def settle(self, under_way: UnderWay) -> None:
        """One part of a request has its answer."""
        under_way.left -= 1
        if under_way.left == 0 and under_way.until_ms is not None:
            self._end(under_way)

    def _end(self, under_way: UnderWay) -> None:
        """Answer a request whose partitions are all settled."""
        if self._parts_of and self._parts_of.pop(under_way, None) is not None:
            self._by_deadline.abandon(under_way)
        call, response = under_way.call, under_way.response
        if under_way.then is not None:
            under_way.then()
            return
        assert call is not None and response is not None
        self._charge(call)
        if under_way.acks == 0:
            self._send_nothing(call, response)
            return
        if call.is_large:
            self._boundary.large.begin(call, self._answer(call, response))
        elif under_way.has_errors:
            at_once(self._answer(call, response))
        else:  # all records were taken: no error to count, no leader to name
            try:
                self._boundary.send(call, call.frame(response))
            except Exception:
                call.settled = False  # so that the guard answers
                raise

    def _answer(self, call: Call, response: ProduceResponse) -> Slices[None]:
        try:
            yield from self._leaders_for(call).add_to_produce(response, Pace())
            if call.is_large:
                yield from self._boundary.answer_in_slices(call, response)
            else:
                self._boundary.answer(call, response)
        except Exception:
            call.settled = False  # so that the guard answers
            raise

    def _send_nothing(self, call: Call, response: ProduceResponse) -> None:
        """An error of a Produce without an answer closes its connection, so that the producer looks again."""
        codes = {one.error_code for topic in response.responses for one in topic.partition_responses} - {0}
        if codes:
            self._boundary.refuse(call, next(one for one in ErrorCode if one in codes))
        else:
            self._boundary.send(call, [])
