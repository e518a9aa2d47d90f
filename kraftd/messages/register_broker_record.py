"""RegisterBrokerRecord: a metadata record of key 0, versions 0-4, flexible 0+.

Generated from schemas/RegisterBrokerRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class BrokerEndpoint(Message):
    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class BrokerFeature(Message):
    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class RegisterBrokerRecord(Message):
    broker_id: int = 0
    is_migrating_zk_broker: bool = False
    incarnation_id: bytes = bytes(16)
    broker_epoch: int = 0
    end_points: list[BrokerEndpoint] = []
    features: list[BrokerFeature] = []
    rack: str | None = ""
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "RegisterBrokerRecord", 0, "metadata",
    (0, 4), (0, 32767),
    (
        ("RegisterBrokerRecord", (
            ("broker_id", "BrokerId", "int32", 0, (0, 4), None, None, None, None, 0, 0),
            ("is_migrating_zk_broker", "IsMigratingZkBroker", "bool", 0, (2, 4), None, None, None, None, 0, 0),
            ("incarnation_id", "IncarnationId", "uuid", 0, (0, 4), None, None, None, None, 0, ""),
            ("broker_epoch", "BrokerEpoch", "int64", 0, (0, 4), None, None, None, None, 0, 0),
            ("end_points", "EndPoints", "BrokerEndpoint", 1, (0, 4), None, None, None, None, 0, ""),
            ("features", "Features", "BrokerFeature", 1, (0, 4), None, None, None, None, 0, ""),
            ("rack", "Rack", "string", 0, (0, 4), (0, 32767), None, None, None, 0, ""),
            ("fenced", "Fenced", "bool", 0, (0, 4), None, None, None, None, 0, 1),
            ("in_controlled_shutdown", "InControlledShutdown", "bool", 0, (1, 4), None, None, None, None, 0, 0),
            ("log_dirs", "LogDirs", "uuid", 1, (3, 4), None, (3, 32767), 0, None, 0, ""),
            ("cordoned_log_dirs", "CordonedLogDirs", "uuid", 1, (4, 4), (4, 32767), (4, 32767), 1, None, 0, None),
        )),
        ("BrokerEndpoint", (
            ("name", "Name", "string", 0, (0, 4), None, None, None, None, 0, ""),
            ("host", "Host", "string", 0, (0, 4), None, None, None, None, 0, ""),
            ("port", "Port", "uint16", 0, (0, 4), None, None, None, None, 0, 0),
            ("security_protocol", "SecurityProtocol", "int16", 0, (0, 4), None, None, None, None, 0, 0),
        )),
        ("BrokerFeature", (
            ("name", "Name", "string", 0, (0, 4), None, None, None, None, 0, ""),
            ("min_supported_version", "MinSupportedVersion", "int16", 0, (0, 4), None, None, None, None, 0, 0),
            ("max_supported_version", "MaxSupportedVersion", "int16", 0, (0, 4), None, None, None, None, 0, 0),
        )),
    ),
)
