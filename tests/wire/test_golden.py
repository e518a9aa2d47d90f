"""Frames recorded between real Apache Kafka 4.3.1 controllers, brokers and admin clients.

``golden/<api>.json`` holds each frame without its length, and its message in the JSON of Kafka's converter,
in which ``records`` are always empty.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kraftd.wire.api import request_class
from kraftd.wire.codec import decode
from kraftd.wire.frames import encode_request, encode_response, parse_request_header, parse_response
from kraftd.wire.table import table_of
from tests.wire.java_json import to_json, without_records

pytestmark = pytest.mark.usefixtures("engine")

GOLDEN = Path(__file__).with_name("golden")
FRAMES: list[Any] = [
    pytest.param(frame, id=f"{path.stem} {frame['direction']} {number}")
    for path in sorted(GOLDEN.glob("*.json"))
    for number, frame in enumerate(json.loads(path.read_text()))
]


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_of_a_real_cluster_is_read_as_by_kafka_and_written_unchanged(frame: Any) -> None:
    data, key, version = bytes.fromhex(frame["frame"]), frame["key"], frame["version"]
    if frame["direction"] == "request":
        header, *found, end = parse_request_header(memoryview(data))
        assert found == [key, version]
        message = decode(request_class(key), version, memoryview(data), end)
        parts = encode_request(key, version, header.correlation_id, header.client_id, message)
        correlation_id = header.correlation_id
    else:
        response, message = parse_response(key, version, memoryview(data))
        parts = encode_response(key, version, response.correlation_id, message)
        correlation_id = response.correlation_id
    assert correlation_id == frame["correlationId"]
    assert b"".join(parts) == len(data).to_bytes(4, "big") + data
    table = table_of(type(message))
    assert without_records(table, table.root, to_json(message, version)) == frame["value"]
