"""RegisterControllerRecord: a metadata record of key 27, versions 0, flexible 0+.

Generated from schemas/RegisterControllerRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ControllerEndpoint(Message):
    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ControllerFeature(Message):
    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class RegisterControllerRecord(Message):
    controller_id: int = 0
    incarnation_id: bytes = bytes(16)
    zk_migration_ready: bool = False
    end_points: list[ControllerEndpoint] = []
    features: list[ControllerFeature] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "RegisterControllerRecord", 27, "metadata",
    (0, 0), (0, 32767),
    (
        ("RegisterControllerRecord", (
            ("controller_id", "ControllerId", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("incarnation_id", "IncarnationId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("zk_migration_ready", "ZkMigrationReady", "bool", 0, (0, 0), None, None, None, None, 0, 0),
            ("end_points", "EndPoints", "ControllerEndpoint", 1, (0, 0), None, None, None, None, 0, ""),
            ("features", "Features", "ControllerFeature", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("ControllerEndpoint", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("host", "Host", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("port", "Port", "uint16", 0, (0, 0), None, None, None, None, 0, 0),
            ("security_protocol", "SecurityProtocol", "int16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
        ("ControllerFeature", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("min_supported_version", "MinSupportedVersion", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("max_supported_version", "MaxSupportedVersion", "int16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
