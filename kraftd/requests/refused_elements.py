"""Refusals whose elements do not match the request's one to one, with the elements that Kafka names."""

from __future__ import annotations

from typing import Any

from kraftd.messages.alter_client_quotas_response import AlterClientQuotasResponse, EntityData, EntryData
from kraftd.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kraftd.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kraftd.messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kraftd.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraftd.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kraftd.wire.message import Message

_FIRST_FETCH_WITH_TOPIC_IDS = 13  # from this version on the top-level error is enough


def refused_fetch(request: Any, version: int, code: int) -> Message:
    """The requested session; in older versions the partitions, each with the error."""
    answer = FetchResponse(error_code=code, session_id=request.session_id)
    if version < _FIRST_FETCH_WITH_TOPIC_IDS:
        answer.responses = [
            FetchableTopicResponse(
                topic.topic,
                topic.topic_id,
                [PartitionData(one.partition, code, -1, records=b"") for one in topic.partitions],
            )
            for topic in request.topics
        ]
    return answer


def refused_listing(request: Any, code: int, message: str | None) -> Message:
    """The partitions requested by ListPartitionReassignments, without reassignments."""
    topics = [
        OngoingTopicReassignment(
            topic.name, [OngoingPartitionReassignment(index) for index in topic.partition_indexes]
        )
        for topic in request.topics or ()
    ]
    return ListPartitionReassignmentsResponse(error_code=code, error_message=message, topics=topics)


def refused_scram(request: Any, code: int, message: str | None) -> Message:
    """Each user once."""
    users = {change.name for change in [*request.deletions, *request.upsertions]}
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(user, code, message) for user in sorted(users)]
    )


def refused_quotas(request: Any, code: int, message: str | None) -> Message:
    """Each entity, which the answer identifies by repeating its parts as sent."""
    entries = [
        EntryData(
            code, message, [EntityData(part.entity_type, part.entity_name) for part in requested.entity]
        )
        for requested in request.entries
    ]
    return AlterClientQuotasResponse(entries=entries)


def refused_log_dirs(request: Any, code: int) -> Message:
    """The topics of each directory, with their partitions."""
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic.name, [AlterReplicaLogDirPartitionResult(index, code) for index in topic.partitions]
            )
            for one in request.dirs
            for topic in one.topics
        ]
    )


def refused_users(request: Any, code: int, message: str | None) -> Message:
    """The error, and once more for each requested user, without the name."""
    results = [DescribeUserScramCredentialsResult("", code, message) for _ in request.users or ()]
    return DescribeUserScramCredentialsResponse(error_code=code, error_message=message, results=results)
