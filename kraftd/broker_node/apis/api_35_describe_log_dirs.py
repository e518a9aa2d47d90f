"""DescribeLogDirs (35), v1-5: this broker's log directories, their disks, and the logs in them (KIP-113).

Authorization: DESCRIBE on the cluster. Sent by: admin clients. Answered once a thread has seen the disks.
Errors: CLUSTER_AUTHORIZATION_FAILED (whole request); per directory KAFKA_STORAGE_ERROR for one that is
offline. A partition that has no log here is left out. Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kraftd.ground.pace import Pace, Slices
from kraftd.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kraftd.metadata.metadata_version import allows_cordoned_directories

if TYPE_CHECKING:
    from kraftd.broker_node.events import DirectoryState, LogView
    from kraftd.broker_node.node import BrokerNode
    from kraftd.broker_node.partitions.replicas import Hosted
    from kraftd.requests.call import Call

LOG_US = 2  # a log that is described


def handle(node: BrokerNode, call: Call) -> None:
    if node.knows_metadata(call):
        node.log_questions.describe_directories(
            call, lambda found: node.answer_in_slices(call, _describe(node, call, found))
        )


def _describe(
    node: BrokerNode, call: Call, directories: tuple[DirectoryState, ...]
) -> Slices[DescribeLogDirsResponse]:
    pace = Pace()
    wanted = yield from _wanted(call, pace)
    topics: dict[str, dict[str, DescribeLogDirsTopic]] = {one.path: {} for one in directories}
    for hosted, log, is_future in _logs(node):
        if pace.spent(LOG_US):
            yield
        if log.parent not in topics or hosted.partition is None or hosted.log is None:
            continue
        if wanted is not None and (hosted.topic, hosted.index) not in wanted:
            continue
        in_directory = topics[log.parent]
        topic = in_directory.get(hosted.topic)
        if topic is None:
            topic = in_directory[hosted.topic] = DescribeLogDirsTopic(hosted.topic)
        whole = hosted.log.log_end if is_future else hosted.partition.high_watermark
        lag = max(whole - log.log_end, 0)
        topic.partitions.append(DescribeLogDirsPartition(hosted.index, log.size_bytes, lag, is_future))
    knows_cordoned = allows_cordoned_directories(node.view.image.metadata_version)
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(
                one.error or 0,
                one.path,
                [] if one.error else list(topics[one.path].values()),
                one.total_bytes,
                one.usable_bytes,
                knows_cordoned and one.is_cordoned,
            )
            for one in directories
        ]
    )


def _logs(node: BrokerNode) -> Iterator[tuple[Hosted, LogView, bool]]:
    """The logs of the partitions, then the future ones."""
    for hosted in list(node.replicas):
        if hosted.log is not None:
            yield hosted, hosted.log, False
    for hosted, moving in node.log_moves:
        yield hosted, moving.future, True


def _wanted(call: Call, pace: Pace) -> Slices[set[tuple[str, int]] | None]:
    """The partitions that are asked for; None for all of them."""
    if call.message.topics is None:
        return None
    wanted = set()
    for topic in call.message.topics:
        for index in topic.partitions:
            if pace.spent(1):
                yield
            wanted.add((topic.topic, index))
    return wanted
