"""BrokerHeartbeatRequest: a request of key 63, versions 0-2, flexible 0+.

Generated from schemas/BrokerHeartbeatRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class BrokerHeartbeatRequest(Message):
    broker_id: int = 0
    broker_epoch: int = -1
    current_metadata_offset: int = 0
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "BrokerHeartbeatRequest", 63, "request",
    (0, 2), (0, 32767),
    (
        ("BrokerHeartbeatRequest", (
            ("broker_id", "BrokerId", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("broker_epoch", "BrokerEpoch", "int64", 0, (0, 2), None, None, None, None, 0, -1),
            ("current_metadata_offset", "CurrentMetadataOffset", "int64", 0, (0, 2), None, None, None, None, 0, 0),
            ("want_fence", "WantFence", "bool", 0, (0, 2), None, None, None, None, 0, 0),
            ("want_shut_down", "WantShutDown", "bool", 0, (0, 2), None, None, None, None, 0, 0),
            ("offline_log_dirs", "OfflineLogDirs", "uuid", 1, (1, 2), None, (1, 32767), 0, None, 0, ""),
            ("cordoned_log_dirs", "CordonedLogDirs", "uuid", 1, (2, 2), (2, 32767), (2, 32767), 1, None, 0, None),
        )),
    ),
)
