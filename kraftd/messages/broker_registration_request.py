"""BrokerRegistrationRequest: a request of key 62, versions 0-4, flexible 0+.

Generated from schemas/BrokerRegistrationRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class Listener(Message):
    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Feature(Message):
    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class BrokerRegistrationRequest(Message):
    broker_id: int = 0
    cluster_id: str = ""
    incarnation_id: bytes = bytes(16)
    listeners: list[Listener] = []
    features: list[Feature] = []
    rack: str | None = ""
    is_migrating_zk_broker: bool = False
    log_dirs: tuple[bytes, ...] = ()
    previous_broker_epoch: int = -1
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "BrokerRegistrationRequest", 62, "request",
    (0, 4), (0, 32767),
    (
        ("BrokerRegistrationRequest", (
            ("broker_id", "BrokerId", "int32", 0, (0, 4), None, None, None, None, 0, 0),
            ("cluster_id", "ClusterId", "string", 0, (0, 4), None, None, None, None, 0, ""),
            ("incarnation_id", "IncarnationId", "uuid", 0, (0, 4), None, None, None, None, 0, ""),
            ("listeners", "Listeners", "Listener", 1, (0, 4), None, None, None, None, 0, ""),
            ("features", "Features", "Feature", 1, (0, 4), None, None, None, None, 0, ""),
            ("rack", "Rack", "string", 0, (0, 4), (0, 32767), None, None, None, 0, ""),
            ("is_migrating_zk_broker", "IsMigratingZkBroker", "bool", 0, (1, 4), None, None, None, None, 0, 0),
            ("log_dirs", "LogDirs", "uuid", 1, (2, 4), None, None, None, None, 1, ""),
            ("previous_broker_epoch", "PreviousBrokerEpoch", "int64", 0, (3, 4), None, None, None, None, 1, -1),
        )),
        ("Listener", (
            ("name", "Name", "string", 0, (0, 4), None, None, None, None, 0, ""),
            ("host", "Host", "string", 0, (0, 4), None, None, None, None, 0, ""),
            ("port", "Port", "uint16", 0, (0, 4), None, None, None, None, 0, 0),
            ("security_protocol", "SecurityProtocol", "int16", 0, (0, 4), None, None, None, None, 0, 0),
        )),
        ("Feature", (
            ("name", "Name", "string", 0, (0, 4), None, None, None, None, 0, ""),
            ("min_supported_version", "MinSupportedVersion", "int16", 0, (0, 4), None, None, None, None, 0, 0),
            ("max_supported_version", "MaxSupportedVersion", "int16", 0, (0, 4), None, None, None, None, 0, 0),
        )),
    ),
)
