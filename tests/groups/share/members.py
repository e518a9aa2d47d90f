"""Members of share groups in short, and a desk whose share coordinators answer at once, or when told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kraftd.acl import AclOperation, AclResourceType
from kraftd.groups.call import Call
from kraftd.groups.config import GroupConfig
from kraftd.groups.share.effects import (
    FindLatestOffsets,
    LatestOffsetsFound,
    Place,
    ShareCoordinatorsAnswered,
)
from kraftd.groups.share_state.coordinator import APIS
from kraftd.messages.share_group_describe_request import ShareGroupDescribeRequest
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from tests.groups.desk import Desk

Partitions = dict[str, list[int]]
Denied = tuple[AclOperation, AclResourceType, str]


class ShareDesk(Desk):
    """`is_silent` keeps the share coordinators' answers back; `refusal` is their error, but where `refusals`
    has another. `ends` has what the leaders of partitions answer.
    """

    is_silent = False
    refusal = ErrorCode.NONE

    def __init__(self, config: GroupConfig | None = None, partition_count: int = 1, **topics: int) -> None:
        self.refusals: dict[int, ErrorCode] = {}  # by partition
        self.ends: dict[Place, int | ErrorCode] = {}
        super().__init__(config, partition_count, **topics)

    def flush(self) -> None:
        super().flush()
        if not self.is_silent:
            self.answer_asked()

    def answer_asked(self) -> None:
        while self.asked:
            effect = self.asked.pop(0)
            if isinstance(effect, FindLatestOffsets):
                found = {place: self.ends[place] for place in effect.places if place in self.ends}
                self.step(LatestOffsetsFound(effect.number, found))
                continue
            request: Any = effect.request
            api = APIS[type(request)]
            topics = [
                api.topic(topic.topic_id, [self.result(api, row) for row in topic.partitions])
                for topic in request.topics
            ]
            self.step(ShareCoordinatorsAnswered(effect.number, api.response(topics)))
            super().flush()

    def result(self, api: Any, row: Any) -> Any:
        error = self.refusals.get(row.partition, self.refusal)
        return api.result(row.partition, error, error.message if error else None)

    def ask_denied(self, request: Message, version: int, *denied: Denied) -> Any:
        """Ask as a caller that may do all but this."""
        self.calls += 1
        call = Call(self.calls, version, "client", "/127.0.0.1", lambda *asked: asked not in denied)
        self.perform(self.coordinator.handle(call, request, self.now_ms))
        self.flush()
        return self.answers[self.calls]

    def heartbeat(
        self, member: str, epoch: int, topics: Sequence[str] | None = None, group: str = "g"
    ) -> Any:
        names = None if topics is None else tuple(topics)
        return self.ask(ShareGroupHeartbeatRequest(group, member, epoch, None, names), 1)

    def describe(self, group: str = "g") -> Any:
        return self.ask(ShareGroupDescribeRequest((group,)), 1).groups[0]


class Sharer:
    """A member that follows answers."""

    def __init__(self, desk: ShareDesk, member_id: str, *topics: str) -> None:
        self.desk = desk
        self.member_id = member_id
        self.topics = topics or ("orders",)
        self.epoch = 0
        self.has: Partitions = {}

    def __repr__(self) -> str:
        return f"<Sharer {self.member_id} epoch {self.epoch} has {self.has}>"

    def join(self) -> Any:
        return self.take(self.desk.heartbeat(self.member_id, 0, self.topics))

    def beat(self) -> Any:
        return self.take(self.desk.heartbeat(self.member_id, self.epoch))

    def take(self, answer: Any) -> Any:
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                name_of = self.desk.topics.topic_name
                self.has = {
                    str(name_of(row.topic_id)): sorted(row.partitions)
                    for row in answer.assignment.topic_partitions
                }
        return answer


def settle(*members: Sharer) -> None:
    """Let members send heartbeats until nothing changes any more."""
    for _ in range(10):
        before = [(one.epoch, one.has) for one in members]
        for one in members:
            assert one.beat().error_code == 0
        if before == [(one.epoch, one.has) for one in members]:
            return
    raise AssertionError(f"no end of changes: {members}")


def desk_of(**topics: int) -> ShareDesk:
    """Targets are computed at once."""
    return ShareDesk(GroupConfig(group_share_assignment_interval_ms=0), **topics)
