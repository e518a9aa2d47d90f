"""AlterReplicaLogDirs (34), v1-2: move logs of this broker to other log directories (KIP-113).

Authorization: ALTER on the cluster. Sent by: admin clients. Answered once the future logs are made; they are
filled afterwards (`kraftd.broker_node.directories.log_moves`). A move to another directory ends one that is
under way, and one to the present directory only ends it. Errors: CLUSTER_AUTHORIZATION_FAILED (whole
request); per partition LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR (a log directory is offline),
INVALID_REPLICA_ASSIGNMENT (the directory is cordoned, KIP-1066), UNKNOWN_TOPIC_OR_PARTITION or
REPLICA_NOT_AVAILABLE (no replica of it here: a later one will be made in that directory),
INVALID_TOPIC_EXCEPTION (the name of the future log would be too long). Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.broker_node.effects import LogMove
from kraftd.broker_node.events import MoveBegun
from kraftd.ground.pace import Pace, Slices
from kraftd.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.requests.call import Call

MOVE_US = 20
MAX_NAME_BYTES = 255
MAX_PREFERRED = 10_000  # replicas that are to come
FUTURE_SUFFIX_BYTES = len(".") + 32 + len("-future")

Key = tuple[str, int]


def handle(node: BrokerNode, call: Call) -> Slices[None]:
    if not node.knows_metadata(call):
        return
    pace = Pace()
    wanted: dict[Key, str] = {}
    for directory in call.message.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                wanted[topic.name, index] = directory.path
                if pace.spent(1):
                    yield
    errors: dict[Key, ErrorCode] = {}
    moves: list[LogMove] = []
    for key, path in wanted.items():
        errors[key] = _judge(node, key, path, moves)
        if pace.spent(MOVE_US):
            yield

    def begun(found: tuple[MoveBegun, ...]) -> None:
        errors.update({(one.topic, one.partition): one.error for one in found})
        node.boundary.answer(call, _answer(errors))

    if moves:
        node.log_questions.move_logs(call, tuple(moves), begun)
    else:
        node.boundary.answer(call, _answer(errors))


def _judge(node: BrokerNode, key: Key, path: str, moves: list[LogMove]) -> ErrorCode:
    """The error of a move; adds to `moves` what is to be begun."""
    topic, index = key
    if len(f"{topic}-{index}") + FUTURE_SUFFIX_BYTES > MAX_NAME_BYTES:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path not in node.cordoning.ids:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if path in node.directory_errors:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if path in node.cordoning.paths:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if key in node.replicas.offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    hosted = node.replicas.get(topic, index)
    if hosted is None or hosted.log is None:
        return _prefer(node, key, path)
    if node.log_moves.target(key) != path:
        node.log_moves.cancel(key, stays=hosted.log.parent == path)
    if hosted.log.parent != path:
        if node.directory_errors and node.log_moves.target(key) is None:
            return ErrorCode.KAFKA_STORAGE_ERROR  # a future log may be in one that is offline
        node.log_moves.asked(key, path)
        moves.append(LogMove(topic, index, path))
    return ErrorCode.NONE


def _prefer(node: BrokerNode, key: Key, path: str) -> ErrorCode:
    """Note the directory for a replica that may come, as in Kafka also for one of a topic that is to come."""
    if len(node.replicas.preferred) < MAX_PREFERRED:
        node.replicas.preferred[key] = node.cordoning.ids[path]
    image, (topic, index) = node.view.image, key
    topic_id = image.topic_names().get(topic)
    if topic_id is None or image.partition(topic_id, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.REPLICA_NOT_AVAILABLE


def _answer(errors: dict[Key, ErrorCode]) -> AlterReplicaLogDirsResponse:
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for (topic, index), error in errors.items():
        result = results.setdefault(topic, AlterReplicaLogDirTopicResult(topic, []))
        result.partitions.append(AlterReplicaLogDirPartitionResult(index, int(error)))
    return AlterReplicaLogDirsResponse(results=list(results.values()))
