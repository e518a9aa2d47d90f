"""Records as lines: text for people, or JSON, of which `produce` reads what `consume` prints.

In JSON, bytes that are no UTF-8 text are `{"base64": "..."}`; null is a null key, value or header.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from kraftd.types import shown_bytes
from kraftd.wire.keyed_records import KeyedRecord, StoredRecord

FIELDS = ("key", "value", "headers", "partition", "timestamp_ms")
READ_ONLY = ("topic", "offset")  # of a printed record: its place, which a new one does not take over


class BadLine(ValueError):
    """A line that is no record; the text says why."""


def to_json(topic: str, partition: int, record: StoredRecord) -> str:
    """The record as one line of JSON."""
    return json.dumps(
        {
            "topic": topic,
            "partition": partition,
            "offset": record.offset,
            "timestamp_ms": record.timestamp_ms,
            "key": shown_bytes(record.key),
            "value": shown_bytes(record.value),
            "headers": [[name, shown_bytes(value)] for name, value in record.headers],
        },
        ensure_ascii=False,
    )


def from_json(line: str) -> tuple[KeyedRecord, int | None]:
    """The record of a line of JSON, and the partition that it names. Raises BadLine."""
    try:
        found = json.loads(line)
    except ValueError as error:
        raise BadLine(f"no JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadLine('no JSON object, such as {"key": "k", "value": "v"}')
    unknown = found.keys() - {*FIELDS, *READ_ONLY}
    if unknown:
        raise BadLine(f"{', '.join(sorted(unknown))}: unknown; a record has {', '.join(FIELDS)}")
    partition, time_ms = (_number(found, name) for name in ("partition", "timestamp_ms"))
    headers = found.get("headers") or []
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    if not isinstance(pairs, list) or not all(
        isinstance(one, list | tuple) and len(one) == 2 for one in pairs
    ):
        raise BadLine('headers: an object, or pairs such as [["name", "value"]]')
    record = KeyedRecord(
        _taken(found.get("key"), "key"),
        _taken(found.get("value"), "value"),
        tuple((str(name), _taken(value, f"header {name}")) for name, value in pairs),
        -1 if time_ms is None else time_ms,
    )
    return record, partition


def from_line(line: str, key_separator: str | None, key: str | None) -> KeyedRecord:
    """The record of a line of text: its value, behind a key if a separator is set. Raises BadLine."""
    if key_separator is None:
        return KeyedRecord(None if key is None else key.encode(), line.encode())
    found, separator, value = line.partition(key_separator)
    if not separator:
        raise BadLine(f"no {key_separator!r}, which --key-separator expects between key and value")
    return KeyedRecord(found.encode(), value.encode())


def header_of(text: str) -> tuple[str, bytes]:
    """The header of NAME=VALUE. Raises BadLine."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadLine(f"{text}: a header is NAME=VALUE")
    return name, value.encode()


def text_of(data: bytes | None) -> str:
    """Bytes for people: text, or what of it is text."""
    return "null" if data is None else data.decode("utf-8", "backslashreplace")


def _taken(value: Any, what: str) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, dict) and value.keys() == {"base64"} and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (binascii.Error, ValueError):
            raise BadLine(f"{what}: no base64") from None
    # Numbers, lists and objects are written as the JSON that they are.
    return value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False).encode()


def _number(found: dict[str, Any], name: str) -> int | None:
    value = found.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadLine(f"{name}: {value!r} is no number from 0 on")
    return value
