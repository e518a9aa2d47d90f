"""UnregisterBrokerRequest: a request of key 64, versions 0, flexible 0+.

Generated from schemas/UnregisterBrokerRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class UnregisterBrokerRequest(Message):
    broker_id: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "UnregisterBrokerRequest", 64, "request",
    (0, 0), (0, 32767),
    (
        ("UnregisterBrokerRequest", (
            ("broker_id", "BrokerId", "int32", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
