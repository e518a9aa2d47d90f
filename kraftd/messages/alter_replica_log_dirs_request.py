"""AlterReplicaLogDirsRequest: a request of key 34, versions 1-2, flexible 2+.

Generated from schemas/AlterReplicaLogDirsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AlterReplicaLogDirTopic(Message):
    name: str = ""
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterReplicaLogDir(Message):
    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterReplicaLogDirsRequest(Message):
    dirs: list[AlterReplicaLogDir] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AlterReplicaLogDirsRequest", 34, "request",
    (1, 2), (2, 32767),
    (
        ("AlterReplicaLogDirsRequest", (
            ("dirs", "Dirs", "AlterReplicaLogDir", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("AlterReplicaLogDir", (
            ("path", "Path", "string", 0, (1, 2), None, None, None, None, 0, ""),
            ("topics", "Topics", "AlterReplicaLogDirTopic", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("AlterReplicaLogDirTopic", (
            ("name", "Name", "string", 0, (1, 2), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (1, 2), None, None, None, None, 0, ""),
        )),
    ),
)
