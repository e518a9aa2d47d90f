"""What a group coordinator does for share groups, API by API."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from kraftd.acl import AclOperation
from kraftd.ground.pace import Slices, at_once
from kraftd.ground.refusal import Refusal
from kraftd.groups import topics as known
from kraftd.groups.call import Call
from kraftd.groups.gathered import Gathered
from kraftd.groups.group_shards import GroupShards
from kraftd.groups.outcome import Outcome
from kraftd.groups.share.altering import Alteration, refused_alteration
from kraftd.groups.share.asking import Asking
from kraftd.groups.share.deleting import OffsetDeletion, refused_deletion
from kraftd.groups.share.describing import described_share_group
from kraftd.groups.share.group import ShareGroup
from kraftd.groups.share.heartbeat import ShareHeartbeat, check_heartbeat
from kraftd.groups.share.initializing import begin
from kraftd.groups.share.member import LEAVING_EPOCH
from kraftd.groups.share.progress import Progress, Put
from kraftd.groups.share.sessions import leave
from kraftd.groups.state import ShardState
from kraftd.messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest
from kraftd.messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from kraftd.messages.describe_share_group_offsets_request import DescribeShareGroupOffsetsRequest
from kraftd.messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
)
from kraftd.messages.share_group_describe_request import ShareGroupDescribeRequest
from kraftd.messages.share_group_describe_response import DescribedGroup, ShareGroupDescribeResponse
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftd.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from kraftd.wire.error_code import ErrorCode

MAX_MEMBER_ID_CHARACTERS = 36  # those of a UUID


class ShareGroupApis:
    """The APIs of share groups, in the shards of a coordinator. `version` is the finalized share.version: at
    level 0 there are no share groups.
    """

    def __init__(self, shards: GroupShards) -> None:
        self.shards = shards
        self.asking = Asking(shards.effects)
        self.version = 1

    def __repr__(self) -> str:
        return f"<ShareGroupApis at version {self.version}, {self.asking!r}>"

    def heartbeat(self, call: Call, request: ShareGroupHeartbeatRequest, now_ms: int) -> None:
        def refuse(error: ErrorCode, message: str | None = None) -> ShareGroupHeartbeatResponse:
            return ShareGroupHeartbeatResponse(error_code=error, error_message=message)

        shards = self.shards
        if self.version < 1:
            shards.respond(call, refuse(ErrorCode.UNSUPPORTED_VERSION))
            return
        if not shards.permit(call, AclOperation.READ, request.group_id, refuse):
            return
        if not 0 < len(request.member_id) <= MAX_MEMBER_ID_CHARACTERS:
            shards.respond(call, refuse(ErrorCode.INVALID_REQUEST))
            return
        if not all(
            known.may(call, AclOperation.DESCRIBE, name) for name in request.subscribed_topic_names or ()
        ):
            shards.respond(call, refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            return

        def operation(state: ShardState) -> Outcome:
            try:
                if request.member_epoch == LEAVING_EPOCH:
                    return leave(state, request)
                beat = ShareHeartbeat(state, call, request)
                outcome = beat.run()
            except Refusal as error:
                return Outcome(response=refuse(error.code, error.message))
            if beat.begun:
                outcome.after = lambda error: self._begin(beat, error)
            return outcome

        try:
            check_heartbeat(request)
        except Refusal as error:
            shards.respond(call, refuse(error.code, error.message))
        else:
            shards.write(call, request.group_id, now_ms, operation, refuse)

    def _begin(self, beat: ShareHeartbeat, error: ErrorCode | None) -> None:
        """The records of a heartbeat are committed, or not: then the next heartbeat asks again."""
        if error is None:
            partitions = {topic_id: one.indexes for topic_id, one in beat.begun.items()}
            group = beat.state.groups.get(beat.group.group_id)
            if isinstance(group, ShareGroup):
                begin(self.shards, self.asking, group, beat.epoch, partitions)

    def describe(self, call: Call, request: ShareGroupDescribeRequest, now_ms: int) -> None:
        self.shards.respond(call, at_once(self.describing(call, request, now_ms)))

    def describing(
        self, call: Call, request: ShareGroupDescribeRequest, now_ms: int
    ) -> Slices[ShareGroupDescribeResponse]:
        """The answer to ShareGroupDescribe, in slices: groups may have very many members."""
        refused: list[DescribedGroup] = []
        rows: list[DescribedGroup] = []
        for group_id in request.group_ids:
            if self.version < 1:
                rows.append(DescribedGroup(ErrorCode.UNSUPPORTED_VERSION, group_id=group_id))
            elif not self.shards.may(call, AclOperation.DESCRIBE, group_id):
                refused.append(DescribedGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=group_id))
            elif not group_id:
                rows.append(DescribedGroup(ErrorCode.INVALID_GROUP_ID, group_id=group_id))
            else:
                try:
                    state = self.shards.shard_of(group_id, now_ms).state
                    rows.append((yield from described_share_group(state, call, group_id)))
                except Refusal as error:
                    rows.append(DescribedGroup(error.code, error.code.message, group_id))
        return ShareGroupDescribeResponse(groups=refused + rows)

    # Offsets

    def describe_offsets(self, call: Call, request: DescribeShareGroupOffsetsRequest, now_ms: int) -> None:
        groups = request.groups

        def finish(rows: list[DescribeShareGroupOffsetsResponseGroup]) -> None:
            self.shards.respond(call, DescribeShareGroupOffsetsResponse(groups=rows))

        gathered: Gathered[DescribeShareGroupOffsetsResponseGroup] = Gathered(len(groups), finish)
        if not groups:
            finish([])
        for number, group in enumerate(groups):
            put = partial(gathered.put, number)
            refused = DescribeShareGroupOffsetsResponseGroup(group.group_id)
            if self.version < 1:
                put(replace(refused, error_code=ErrorCode.UNSUPPORTED_VERSION))
            elif not self.shards.may(call, AclOperation.DESCRIBE, group.group_id):
                put(replace(refused, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
            elif group.topics is None:
                try:
                    self.progress(call, group.group_id, put).of_all(now_ms)
                except Refusal as error:
                    put(replace(refused, error_code=error.code, error_message=error.code.message))
            else:
                self.progress(call, group.group_id, put).of(group)

    def progress(self, call: Call, group_id: str, put: Put) -> Progress:
        return Progress(self.shards, self.asking, call, group_id, put)

    def alter_offsets(self, call: Call, request: AlterShareGroupOffsetsRequest, now_ms: int) -> None:
        if self.version < 1:
            self.shards.respond(call, refused_alteration(ErrorCode.UNSUPPORTED_VERSION))
        elif self.shards.permit(call, AclOperation.READ, request.group_id, refused_alteration):
            Alteration(self.shards, self.asking, call, request).run(now_ms)

    def delete_offsets(self, call: Call, request: DeleteShareGroupOffsetsRequest, now_ms: int) -> None:
        if self.version < 1:
            self.shards.respond(call, refused_deletion(ErrorCode.UNSUPPORTED_VERSION))
        elif self.shards.permit(call, AclOperation.DELETE, request.group_id, refused_deletion):
            OffsetDeletion(self.shards, self.asking, call, request).run(now_ms)
