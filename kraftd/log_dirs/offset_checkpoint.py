"""The checkpoints of a log directory: an offset for each of its partitions, one a line."""

from __future__ import annotations

from collections.abc import Iterable

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED_TO = "cleaner-offset-checkpoint"

TopicPartition = tuple[str, int]


def encode_offsets(offsets: Iterable[tuple[TopicPartition, int]]) -> bytes:
    """Content of the file: a version, a count, and topic, partition and offset a line."""
    lines = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()


def decode_offsets(data: bytes) -> dict[TopicPartition, int]:
    """The offsets in a file; none in an empty one. Raises ValueError saying which line is malformed."""
    lines = data.decode().splitlines()
    if len(lines) < 2:
        return {}
    if lines[0].strip() != "0":
        raise ValueError(f"version {lines[0]!r}, not 0")
    found: dict[TopicPartition, int] = {}
    topics: dict[str, str] = {}  # one text for all partitions of a topic
    for number, line in enumerate(lines[2:], 3):
        try:
            topic, partition, offset = line.split()
            found[topics.setdefault(topic, topic), int(partition)] = int(offset)
        except ValueError:
            raise ValueError(f"line {number} is malformed: {line!r}") from None
    if not lines[1].strip().isdecimal() or int(lines[1]) != len(lines) - 2:
        raise ValueError(f"{lines[1]} entries are announced, {len(lines) - 2} are there")
    return found
