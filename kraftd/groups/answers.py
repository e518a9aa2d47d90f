"""Answers that refuse a whole request, and the form of answers in older versions."""

from __future__ import annotations

from kraftd.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from kraftd.messages.describe_groups_response import DescribedGroup
from kraftd.messages.heartbeat_response import HeartbeatResponse
from kraftd.messages.join_group_response import JoinGroupResponse
from kraftd.messages.leave_group_request import LeaveGroupRequest
from kraftd.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from kraftd.messages.offset_commit_request import OffsetCommitRequest
from kraftd.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kraftd.messages.offset_fetch_request import OffsetFetchRequestGroup
from kraftd.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kraftd.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from kraftd.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

NULL_PROTOCOL_VERSION = 7  # of JoinGroup
MEMBERS_VERSION = 3  # of LeaveGroup
GROUPS_VERSION = 8  # of OffsetFetch
FETCH_ERROR_VERSION = 2  # of OffsetFetch: an error of the whole group


def refused_commit(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """The error for every partition of an OffsetCommit."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [OffsetCommitResponsePartition(row.partition_index, error) for row in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def refused_transactional_commit(
    request: TxnOffsetCommitRequest, error: ErrorCode
) -> TxnOffsetCommitResponse:
    """The error for every partition of a TxnOffsetCommit."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [TxnOffsetCommitResponsePartition(row.partition_index, error) for row in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def refused_fetch(
    request: OffsetFetchRequestGroup, error: ErrorCode, version: int
) -> OffsetFetchResponseGroup:
    """The error of a group in OffsetFetch; version 1 has it in every partition."""
    if version >= FETCH_ERROR_VERSION:
        return OffsetFetchResponseGroup(request.group_id, error_code=error)
    return OffsetFetchResponseGroup(
        request.group_id,
        [
            OffsetFetchResponseTopics(
                topic.name,
                topic.topic_id,
                [
                    OffsetFetchResponsePartitions(index, -1, error_code=error)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ],
    )


def fetch_response(groups: list[OffsetFetchResponseGroup], version: int) -> OffsetFetchResponse:
    """The groups of an OffsetFetch; before version 8 there is one, in fields of its own."""
    if version >= GROUPS_VERSION:
        return OffsetFetchResponse(groups=groups)
    group = groups[0]
    topics = [
        OffsetFetchResponseTopic(
            topic.name,
            [
                OffsetFetchResponsePartition(
                    row.partition_index,
                    row.committed_offset,
                    row.committed_leader_epoch,
                    row.metadata,
                    row.error_code,
                )
                for row in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)


def refused_leave(request: LeaveGroupRequest, error: ErrorCode) -> LeaveGroupResponse:
    """A missing group's members are unknown one by one; another error is one of all."""
    if error is not ErrorCode.UNKNOWN_MEMBER_ID:
        return LeaveGroupResponse(error_code=error)
    rows = [MemberResponse(row.member_id, row.group_instance_id, error) for row in request.members]
    return LeaveGroupResponse(members=rows)


def refused_heartbeat(error: ErrorCode) -> HeartbeatResponse:
    """While its group is loaded, a member is let live."""
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return HeartbeatResponse()
    return HeartbeatResponse(error_code=error)


def refused_description(group_id: str, error: ErrorCode) -> DescribedGroup:
    return DescribedGroup(error_code=error, group_id=group_id)


def refused_deletion(group_ids: list[str], error: ErrorCode) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[DeletableGroupResult(group_id, error) for group_id in group_ids])


def in_version(response: Message, version: int) -> Message:
    """An answer in the form of its version, where fields alone do not make the difference."""
    if isinstance(response, JoinGroupResponse):
        if version < NULL_PROTOCOL_VERSION:
            response.protocol_name = response.protocol_name or ""
        else:
            response.protocol_name = response.protocol_name or None
    elif isinstance(response, LeaveGroupResponse) and version < MEMBERS_VERSION:
        error = response.error_code or next((row.error_code for row in response.members), ErrorCode.NONE)
        return LeaveGroupResponse(error_code=error)
    return response
