"""ApiVersionsRequest: a request of key 18, versions 0-4, flexible 3+.

Generated from schemas/ApiVersionsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ApiVersionsRequest(Message):
    client_software_name: str = ""
    client_software_version: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ApiVersionsRequest", 18, "request",
    (0, 4), (3, 32767),
    (
        ("ApiVersionsRequest", (
            ("client_software_name", "ClientSoftwareName", "string", 0, (3, 4), None, None, None, None, 1, ""),
            ("client_software_version", "ClientSoftwareVersion", "string", 0, (3, 4), None, None, None, None, 1, ""),
        )),
    ),
)
