"""What a broker does for the state of share groups, API by API."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.ground.refusal import Refusal
from kraftd.groups.call import Call, Topics
from kraftd.groups.errors import answer_to_failed_append
from kraftd.groups.events import TopicsDeleted
from kraftd.groups.gathered import Gathered
from kraftd.groups.outcome import Outcome
from kraftd.groups.shards import Shards
from kraftd.groups.share_state import operations
from kraftd.groups.share_state.config import ShareStateConfig
from kraftd.groups.share_state.key import SharePartitionKey
from kraftd.groups.share_state.shard import ShareStateShard
from kraftd.messages import (
    delete_share_group_state_response,
    initialize_share_group_state_response,
    read_share_group_state_response,
    read_share_group_state_summary_response,
    write_share_group_state_response,
)
from kraftd.messages.delete_share_group_state_request import DeleteShareGroupStateRequest
from kraftd.messages.initialize_share_group_state_request import InitializeShareGroupStateRequest
from kraftd.messages.read_share_group_state_request import ReadShareGroupStateRequest
from kraftd.messages.read_share_group_state_summary_request import ReadShareGroupStateSummaryRequest
from kraftd.messages.write_share_group_state_request import WriteShareGroupStateRequest
from kraftd.named_tuple import NamedTuple
from kraftd.recent import Recent
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

Part = Callable[[int], None]  # takes the time
Operation = Callable[[ShareStateShard, Topics, SharePartitionKey, Any], Outcome]


class Api(NamedTuple):
    """How one API is served: `what` is for texts of errors, the others build the answer."""

    what: str
    operation: Operation
    result: Callable[..., Any]  # of a partition: number, error code, text
    topic: Callable[[bytes, list[Any]], Any]
    response: Callable[[list[Any]], Message]


class ShareCoordinator(Shards[ShareStateShard]):
    """The state of share partitions, each in the partition of ``__share_group_state`` that its key says.

    is_enabled: whether the cluster has share groups; without them records are not pruned. write_count: of
    writes for share partitions since the start, and of reads that noted a new leader's epoch; write_times:
    how long each write took, in milliseconds.
    """

    def __init__(self, config: ShareStateConfig, topics: Topics) -> None:
        super().__init__(config.share_coordinator_state_topic_num_partitions)
        self.config = config
        self.topics = topics
        self.is_enabled = False
        self.write_count = 0
        self.write_times = Recent()

    def new_shard(self, partition: int, leader_epoch: int) -> ShareStateShard:
        return ShareStateShard(partition, leader_epoch, self.config, lambda: self.is_enabled, self.effects)

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Take an event."""
        if isinstance(event, TopicsDeleted):
            topic_ids = frozenset(event.topics.values())
            for shard in self.active(now_ms):
                shard.write(partial(shard.remove_topics, topic_ids))
        return super().step(event, now_ms)

    def handle(self, call: Call, request: Message, now_ms: int) -> list[Effect]:
        """Take a request; its answer comes at once or later, as Respond with the call's token."""
        for _, part in self.parts(call, request):
            part(now_ms)
        return self.take_effects()

    def parts(self, call: Call, request: Any) -> list[tuple[int, Part]]:
        """What a request asks, a part for each partition, with how many batches that has.

        The request is answered once all parts are performed and done.

        A request without a group, or with a topic without partitions, has an empty answer, as in Kafka.
        """
        api = APIS[type(request)]
        topics = [topic for topic in request.topics if topic.partitions]
        is_whole = len(topics) == len(request.topics) or api is INITIALIZE
        if not request.group_id or not topics or not is_whole:
            self.respond(call, api.response([]))
            return []
        rows = [(topic.topic_id, row) for topic in topics for row in topic.partitions]

        def finish(results: list[tuple[bytes, Any]]) -> None:
            by_topic: dict[bytes, list[Any]] = {}
            for topic_id, result in results:
                by_topic.setdefault(topic_id, []).append(result)
            self.respond(call, api.response([api.topic(*one) for one in by_topic.items()]))

        gathered: Gathered[tuple[bytes, Any]] = Gathered(len(rows), finish)

        def part(number: int, topic_id: bytes, row: Any, now_ms: int) -> None:
            key = SharePartitionKey(request.group_id, topic_id, row.partition)
            self.perform(api, key, row, lambda result: gathered.put(number, (topic_id, result)), now_ms)

        return [
            (len(getattr(one[1], "state_batches", ())), partial(part, number, *one))
            for number, one in enumerate(rows)
        ]

    def perform(
        self, api: Api, key: SharePartitionKey, row: Any, put: Callable[[Any], None], now_ms: int
    ) -> None:
        """Perform an operation for one partition."""

        def refuse(error: ErrorCode) -> Any:
            text = f"Unable to {api.what}: {error.message}"
            return api.result(key.partition, answer_to_failed_append(error), text)

        try:
            shard = self.shard_of(key.text, now_ms)
        except Refusal as error:
            put(refuse(error.code))
            return
        if api is WRITE:
            put = partial(self._written, shard, put, now_ms)

        def operation() -> Outcome:
            outcome = api.operation(shard, self.topics, key, row)
            self.write_count += api is WRITE or (api is READ and bool(outcome.records))
            return outcome

        shard.write(operation, put, refuse)

    def _written(
        self, shard: ShareStateShard, put: Callable[[Any], None], since_ms: int, result: Any
    ) -> None:
        now_ms = shard.state.now_ms
        self.write_times.record(max(0, now_ms - since_ms), now_ms)
        put(result)


INITIALIZE = Api(
    "initialize share group state",
    operations.initialize,
    operations.Initialized,
    initialize_share_group_state_response.InitializeStateResult,
    initialize_share_group_state_response.InitializeShareGroupStateResponse,
)
WRITE = Api(
    "write share group state",
    operations.write,
    operations.Written,
    write_share_group_state_response.WriteStateResult,
    write_share_group_state_response.WriteShareGroupStateResponse,
)
READ = Api(
    "read share group state",
    operations.read,
    operations.Read,
    read_share_group_state_response.ReadStateResult,
    read_share_group_state_response.ReadShareGroupStateResponse,
)
APIS: dict[type[Message], Api] = {
    InitializeShareGroupStateRequest: INITIALIZE,
    ReadShareGroupStateRequest: READ,
    WriteShareGroupStateRequest: WRITE,
    DeleteShareGroupStateRequest: Api(
        "delete share group state",
        operations.delete,
        operations.Deleted,
        delete_share_group_state_response.DeleteStateResult,
        delete_share_group_state_response.DeleteShareGroupStateResponse,
    ),
    ReadShareGroupStateSummaryRequest: Api(
        "read share group state summary",
        operations.summarize,
        operations.Summary,
        read_share_group_state_summary_response.ReadStateSummaryResult,
        read_share_group_state_summary_response.ReadShareGroupStateSummaryResponse,
    ),
}
