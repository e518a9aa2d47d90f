"""DescribeLogDirs (35), v1-5: this broker's log directories, their disks, and the logs in them (KIP-113).

Authorization: DESCRIBE on the cluster. Sent by: admin clients. Answered once a thread has seen the disks.
Errors: CLUSTER_AUTHORIZATION_FAILED (whole request); per directory KAFKA_STORAGE_ERROR for one that is
offline. A partition that has no log here is left out. Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

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
    from kraftd.broker_node.events import DirectoryState
    from kraftd.broker_node.node import BrokerNode
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
    for hosted in list(node.replicas):
        if pace.spent(LOG_US):
            yield
        log, partition = hosted.log, hosted.partition
        if log is None or partition is None or log.parent not in topics:
            continue
        if wanted is not None and (hosted.topic, hosted.index) not in wanted:
            continue
        in_directory = topics[log.parent]
        topic = in_directory.get(hosted.topic)
        if topic is None:
            topic = in_directory[hosted.topic] = DescribeLogDirsTopic(hosted.topic)
        lag = max(partition.high_watermark - log.log_end, 0)
        topic.partitions.append(DescribeLogDirsPartition(hosted.index, log.size_bytes, lag))
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
