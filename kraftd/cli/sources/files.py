"""Records out of a directory, whether its process runs or not, or out of a copied file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from kraftd.cli.failures import DIRECTORY, FAILED, CommandFailure
from kraftd.cli.sources.source import Beginning, Extent, Limit, not_covered
from kraftd.log.disk import RealDisk
from kraftd.log.errors import CorruptStorage
from kraftd.metadata_dir.showing.directory_history import Checkpoint, DirectoryHistory
from kraftd.wire.batch import Batch
from kraftd.wire.errors import ProtocolError
from kraftd.wire.message import Message

POLL_S = 0.1


class FileSource:
    """A data directory, its __cluster_metadata-0, a segment or a checkpoint. Takes no lock."""

    def __init__(self, path: str) -> None:
        self.name = path
        try:
            self._history = DirectoryHistory(RealDisk(), path)
        except FileNotFoundError:
            raise CommandFailure(f"{path}: there is no such file or directory.", FAILED) from None

    def __repr__(self) -> str:
        return f"<FileSource {self.name}>"

    async def begin(self, limit: Limit, *, by_checkpoint: bool = False) -> Beginning:
        history = self._history
        start = history.log_start
        if start == 0 and not by_checkpoint:
            return Beginning(0, 0, -1, iter(()), history.size_bytes)
        within = [one for one in history.checkpoints() if limit.takes_checkpoint(one.id, one.timestamp_ms)]
        usable = [one for one in within if start is None or one.id.offset >= start]
        if usable:
            return self._from_checkpoint(usable[-1])
        if start == 0:
            return Beginning(0, 0, -1, iter(()), history.size_bytes)
        if start is None and not history.checkpoints():
            raise CommandFailure(f"{self.name} holds no metadata yet: its node has never run.", FAILED)
        ends = [one.id.offset for one in history.checkpoints() if one.id.offset >= (start or 0)]
        if ends:
            raise CommandFailure(not_covered(limit, min(ends)), FAILED)
        raise CommandFailure(
            f"{self.name} begins with offset {start}, and no checkpoint holds what was before. Give the "
            "directory that it belongs to.",
            DIRECTORY,
        )

    async def begin_earliest(self) -> Beginning:
        history = self._history
        if history.log_start == 0:
            return Beginning(0, 0, -1, iter(()), history.size_bytes)
        usable = [one for one in history.checkpoints() if one.id.offset >= (history.log_start or 0)]
        return self._from_checkpoint(usable[0]) if usable else await self.begin(Limit())

    async def extent(self) -> Extent:
        history = self._history
        ends = [one.id.offset for one in history.checkpoints() if one.id.offset >= (history.log_start or 0)]
        first = 0 if history.log_start == 0 or not ends else min(ends) - 1
        return Extent(first, max([history.log_end, *ends]))

    async def note(self) -> None:
        return None

    def _from_checkpoint(self, checkpoint: Checkpoint) -> Beginning:
        reader = self._history.open_checkpoint(checkpoint)

        def runs() -> Iterator[list[Message]]:
            try:
                yield from reader.runs()
            except ProtocolError as error:
                raise CorruptStorage(
                    checkpoint.path, reader.position, None, str(error), "See kraftd dump"
                ) from None
            finally:
                reader.close()

        end, epoch = checkpoint.id
        return Beginning(end, epoch, checkpoint.timestamp_ms, runs(), reader.size_bytes)

    async def batches(self, start: int, *, follow: bool = False) -> AsyncIterator[Batch]:
        if self._history.log_start is None:
            return
        reader = self._history.reader(start)
        try:
            while True:
                for batch in reader.batches():
                    yield batch
                if not follow:
                    return
                await asyncio.sleep(POLL_S)
        finally:
            reader.close()

    async def close(self) -> None:
        pass
