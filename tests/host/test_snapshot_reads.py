"""Pieces of a snapshot for many replicas at the same time: each gets some, and memory stays bounded."""

from __future__ import annotations

import asyncio
from typing import Any

from kraftd.controller_node.effects import AnswerSnapshot
from kraftd.host.snapshots.snapshot_reads import MAX_BYTES, MAX_TOTAL_BYTES, MIN_BYTES, SnapshotReads
from kraftd.log.errors import StorageFailure
from kraftd.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftd.runtime.threads import LoopThreads
from kraftd.types import OffsetAndEpoch

NEWEST, GONE, DAMAGED = OffsetAndEpoch(10, 1), OffsetAndEpoch(5, 1), OffsetAndEpoch(7, 1)


class Files:
    """A file of any length, one that was deleted, and one that the disk has lost."""

    def __init__(self) -> None:
        self.snapshot_reads: dict[OffsetAndEpoch, int] = {}

    def read_snapshot(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        if snapshot_id == GONE:
            raise FileNotFoundError("it was deleted")
        if snapshot_id == DAMAGED:
            raise StorageFailure("the disk cannot read it")
        return bytes(max_bytes)


def serve(*requests: tuple[OffsetAndEpoch, int]) -> tuple[Files, list[int], list[Exception]]:
    """Request all of these in one callback of a loop; return the received sizes and the errors."""
    files, sizes, errors = Files(), list[int](), list[Exception]()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        over = loop.create_future()

        def ended(*_: Any) -> None:
            if len(sizes) + len(errors) == len(requests):
                over.set_result(None)

        def done(_: AnswerSnapshot, data: bytes) -> None:
            sizes.append(len(data))
            ended()

        def failed(_: AnswerSnapshot, error: Exception) -> None:
            errors.append(error)
            ended()

        reads = SnapshotReads(files, LoopThreads(loop), lambda: 77, done, failed)  # type: ignore[arg-type]
        for snapshot_id, max_bytes in requests:
            reads.begin(AnswerSnapshot(None, FetchSnapshotResponse(), snapshot_id, 0, max_bytes))  # type: ignore[arg-type]
        await over
        assert reads.reading_bytes == 0

    asyncio.run(run())
    return files, sizes, errors


def test_one_replica_gets_the_requested_bytes_up_to_the_maximum() -> None:
    files, sizes, _ = serve((NEWEST, 1000))
    assert sizes == [1000] and files.snapshot_reads == {NEWEST: 77}
    assert serve((NEWEST, 0))[1] == [0]
    assert serve((NEWEST, 1 << 30))[1] == [MAX_BYTES]


def test_many_replicas_at_once_share_the_bytes() -> None:
    sizes = sorted(serve(*[(NEWEST, 1 << 30)] * 50)[1])
    assert sizes[0] == MIN_BYTES and sum(sizes) <= MAX_TOTAL_BYTES + 50 * MIN_BYTES


def test_a_failed_read_ends_only_its_own_request() -> None:
    _, sizes, errors = serve((GONE, 10), (NEWEST, 10), (DAMAGED, 10))
    assert sizes == [10] and sorted(map(str, errors)) == ["it was deleted", "the disk cannot read it"]
