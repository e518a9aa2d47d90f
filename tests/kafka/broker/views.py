"""Answers of a broker in a form in which those of two nodes can be compared."""

from __future__ import annotations

import base64
import time
from typing import Any

from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey, response_version
from kraftd.wire.compression import decompress
from kraftd.wire.message import Message
from kraftd.wire.table import table_of
from testkit.random_batches import HEADER
from tests.wire.java_json import struct_json

RECENT_MS = 1_750_000_000_000  # the tests' own timestamps are older, or far in the future
NOT_SERVED = frozenset({88, 89})  # streams groups
_TEXTS = frozenset({"errorMessage", "acknowledgeErrorMessage", "batchIndexErrorMessage"})
_NAMES = ("name", "topicName", "resourceName")
_DISKS = frozenset({"totalBytes", "usableBytes"})


def view(answer: Message, version: int, key: int) -> Any:
    """An answer as JSON, without the fields that may differ."""
    table = table_of(type(answer))
    shown: Any = _masked("", struct_json(table, table.root, answer, response_version(key, version)))
    if key == ApiKey.FETCH:
        if shown.get("sessionId"):
            shown["sessionId"] = "a session"
        shown["responses"] = _by_topic(shown["responses"])
    if key in (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE):
        for row in (one for topic in shown["responses"] for one in topic["partitions"]):
            if row["errorCode"] and row["currentLeader"] == {"leaderId": 0, "leaderEpoch": 0}:
                row["currentLeader"] = {"leaderId": -1, "leaderEpoch": -1}  # as kraftd says it
    if key == ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS:
        shown.pop("errorMessage")  # kraftd's refusal has a text
    if key == ApiKey.CREATE_TOPICS:
        for topic in shown["topics"]:  # also those that are only validated have ids
            topic.pop("topicId", None)
    if key == ApiKey.DESCRIBE_CONFIGS:
        for row in shown["results"]:
            row["configs"] = [one for one in row["configs"] if not one["name"].startswith("kraftd.")]
    if key == ApiKey.API_VERSIONS:
        shown["apiKeys"] = [row for row in shown["apiKeys"] if row["apiKey"] not in NOT_SERVED]
        shown.pop("finalizedFeaturesEpoch", None)
    if key == ApiKey.DESCRIBE_LOG_DIRS:
        for topic in (one for directory in shown["results"] for one in directory["topics"]):
            if topic["name"].startswith(("codec", "__")):
                for partition in topic["partitions"]:
                    partition.pop("partitionSize")
    return shown


def _by_topic(rows: list[Any]) -> list[Any]:
    """The partitions of each topic together, wherever they are in the answer."""
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row.get("topicId") or row.get("topic"), []).extend(row["partitions"])
    return sorted((name, sorted(partitions, key=repr)) for name, partitions in found.items())


def _is_now(value: int) -> bool:
    return RECENT_MS < value < time.time() * 1000 + 60_000


def _masked(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _masked(key, item) for key, item in value.items()}
    if isinstance(value, list):
        items = [_masked(name, item) for item in value]
        if items and isinstance(items[0], dict):
            items = [one for one in items if METADATA_TOPIC not in map(one.get, _NAMES)]
            return sorted(items, key=repr)
        return sorted(items, key=repr)
    if name == "records":
        return batch_views(base64.b64decode(value)) if value is not None else None
    if name in _TEXTS:
        return value and "a text"
    if name in _DISKS and value > 0:
        return "a size"
    if isinstance(value, int) and not isinstance(value, bool) and _is_now(value):
        return "now"
    return value


def batch_views(data: bytes) -> list[Any]:
    """The batches of a fetched partition: their headers, and their records as bytes, uncompressed."""
    shown: list[Any] = []
    position = 0
    while position + HEADER.size <= len(data):
        (
            base_offset, length, epoch, magic, _, attributes, last_delta, base_ms, max_ms, *producer, count
        ) = HEADER.unpack_from(data, position)  # fmt: skip
        end = position + 12 + length
        if end > len(data):
            break
        body = bytes(data[position + HEADER.size : end])
        if attributes & 7:
            body = bytes(decompress(attributes & 7, body, 1 << 26))
        offsets = (base_offset, last_delta, count, epoch, magic, attributes)
        shown.append([*offsets, _time(base_ms), _time(max_ms), *producer, body.hex()])
        position = end
    return shown  # Kafka also sends a part of the next batch where the size ends


def _time(value: int) -> Any:
    return "now" if _is_now(value) else value
