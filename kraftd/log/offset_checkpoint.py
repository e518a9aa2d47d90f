"""The checkpoints of a log directory: an offset for each of its partitions, one a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import StringIO

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED_TO = "cleaner-offset-checkpoint"

TopicPartition = tuple[str, int]
END = "\n"


def encode_offsets(offsets: Iterable[tuple[TopicPartition, int]]) -> bytes:
    """Content of the file: a version, a count, and topic, partition and offset a line."""
    return encode_rows([offset_row(key, offset) for key, offset in offsets])


def encode_rows(rows: Iterable[str]) -> bytes:
    """The same of texts that have a row, or several, of `offset_row` each."""
    text = "".join(rows)
    return f"0\n{text.count(END)}\n{text}".encode()


def offset_row(key: TopicPartition, offset: int) -> str:
    """The row of a partition."""
    return f"{key[0]} {key[1]} {offset}{END}"


def decode_offsets(data: bytes) -> dict[TopicPartition, int]:
    """The offsets in a file; none in an empty one. Raises ValueError saying which line is malformed."""
    return dict(_rows(data))


def offsets_but_zeros(data: bytes) -> dict[TopicPartition, int]:
    """Those but 0, which a log without a row has, too: most of very many logs are empty."""
    return {key: offset for key, offset in _rows(data) if offset}


def _rows(data: bytes) -> Iterator[tuple[TopicPartition, int]]:
    lines = StringIO(data.decode())  # not all lines at once
    version, count = lines.readline(), lines.readline()
    if not count:
        return
    if version.strip() != "0":
        raise ValueError(f"version {version.rstrip()!r}, not 0")
    topics: dict[str, str] = {}  # one text for all partitions of a topic
    number = 2
    for number, line in enumerate(lines, 3):
        try:
            topic, partition, offset = line.split()
            yield (topics.setdefault(topic, topic), int(partition)), int(offset)
        except ValueError:
            raise ValueError(f"line {number} is malformed: {line.rstrip()!r}") from None
    if not count.strip().isdecimal() or int(count) != number - 2:
        raise ValueError(f"{count.rstrip()} entries are announced, {number - 2} are there")
