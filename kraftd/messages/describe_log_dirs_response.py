"""DescribeLogDirsResponse: a response of key 35, versions 1-5, flexible 2+.

Generated from schemas/DescribeLogDirsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DescribeLogDirsPartition(Message):
    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeLogDirsTopic(Message):
    name: str = ""
    partitions: list[DescribeLogDirsPartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeLogDirsResult(Message):
    error_code: int = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeLogDirsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    results: list[DescribeLogDirsResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeLogDirsResponse", 35, "response",
    (1, 5), (2, 32767),
    (
        ("DescribeLogDirsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 5), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (3, 5), None, None, None, None, 1, 0),
            ("results", "Results", "DescribeLogDirsResult", 1, (1, 5), None, None, None, None, 0, ""),
        )),
        ("DescribeLogDirsResult", (
            ("error_code", "ErrorCode", "int16", 0, (1, 5), None, None, None, None, 0, 0),
            ("log_dir", "LogDir", "string", 0, (1, 5), None, None, None, None, 0, ""),
            ("topics", "Topics", "DescribeLogDirsTopic", 1, (1, 5), None, None, None, None, 0, ""),
            ("total_bytes", "TotalBytes", "int64", 0, (4, 5), None, None, None, None, 1, -1),
            ("usable_bytes", "UsableBytes", "int64", 0, (4, 5), None, None, None, None, 1, -1),
            ("is_cordoned", "IsCordoned", "bool", 0, (5, 5), None, None, None, None, 1, 0),
        )),
        ("DescribeLogDirsTopic", (
            ("name", "Name", "string", 0, (1, 5), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "DescribeLogDirsPartition", 1, (1, 5), None, None, None, None, 0, ""),
        )),
        ("DescribeLogDirsPartition", (
            ("partition_index", "PartitionIndex", "int32", 0, (1, 5), None, None, None, None, 0, 0),
            ("partition_size", "PartitionSize", "int64", 0, (1, 5), None, None, None, None, 0, 0),
            ("offset_lag", "OffsetLag", "int64", 0, (1, 5), None, None, None, None, 0, 0),
            ("is_future_key", "IsFutureKey", "bool", 0, (1, 5), None, None, None, None, 0, 0),
        )),
    ),
)
