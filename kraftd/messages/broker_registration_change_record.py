"""BrokerRegistrationChangeRecord: a metadata record of key 17, versions 0-3, flexible 0+.

Generated from schemas/BrokerRegistrationChangeRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class BrokerRegistrationChangeRecord(Message):
    broker_id: int = 0
    broker_epoch: int = 0
    fenced: int = 0
    in_controlled_shutdown: int = 0
    log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "BrokerRegistrationChangeRecord", 17, "metadata",
    (0, 3), (0, 32767),
    (
        ("BrokerRegistrationChangeRecord", (
            ("broker_id", "BrokerId", "int32", 0, (0, 3), None, None, None, None, 0, 0),
            ("broker_epoch", "BrokerEpoch", "int64", 0, (0, 3), None, None, None, None, 0, 0),
            ("fenced", "Fenced", "int8", 0, (0, 3), None, (0, 32767), 0, None, 0, 0),
            ("in_controlled_shutdown", "InControlledShutdown", "int8", 0, (1, 3), None, (1, 32767), 1, None, 0, 0),
            ("log_dirs", "LogDirs", "uuid", 1, (2, 3), None, (2, 32767), 2, None, 0, ""),
            ("cordoned_log_dirs", "CordonedLogDirs", "uuid", 1, (3, 3), (3, 32767), (3, 32767), 3, None, 0, None),
        )),
    ),
)
