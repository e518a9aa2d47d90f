"""Replays a source's records into an image, as of an offset or a time, with a progress bar."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from kraftd.cli.failures import DIRECTORY, CommandFailure
from kraftd.cli.sources.source import Beginning, Limit, Source
from kraftd.cli.visible import raw
from kraftd.history.tree import Provenance
from kraftd.log.errors import CorruptStorage
from kraftd.metadata.errors import ReplayError
from kraftd.metadata.image import Image
from kraftd.named_tuple import NamedTuple
from kraftd.wire.batch import Batch, CorruptBatch
from kraftd.wire.errors import ProtocolError
from kraftd.wire.message import Message
from kraftd.wire.record_frame import decode_runs

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SILENT_S = 0.5  # before the bar is shown


class State(NamedTuple):
    """An image with the record as of which it is; the log continues at next_offset."""

    image: Image
    provenance: Provenance
    next_offset: int


class Bar:
    """A progress bar on standard error, shown on a terminal once a load takes long."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes, self._done_bytes = size_bytes, 0
        self._began_s = time.monotonic()
        self._shown: Progress | None = None
        self._task: TaskID | None = None

    def advance(self, more_bytes: int) -> None:
        self._done_bytes += more_bytes
        if self._shown is None:
            if not sys.stderr.isatty() or time.monotonic() - self._began_s < SILENT_S:
                return
            self._show()
        assert self._shown is not None and self._task is not None
        self._shown.update(self._task, completed=self._done_bytes)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        progress = Progress(console=Console(file=raw(sys.stderr)), transient=True)
        self._task = progress.add_task("Reading the log", total=self._size_bytes or None)
        progress.start()
        self._shown = progress

    def close(self) -> None:
        if self._shown is not None:
            self._shown.stop()


@contextmanager
def bar_of(size_bytes: int) -> Iterator[Bar]:
    bar = Bar(size_bytes)
    try:
        yield bar
    finally:
        bar.close()


@contextmanager
def without_collection() -> Iterator[None]:
    """Turn off garbage collection while millions of small objects are made, all of which stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


async def replayed(source: Source, limit: Limit) -> State:
    """The state as of a limit; later records can be applied to it.

    A metadata transaction that is open there stays open: a later record ends it. Raises CommandFailure, also
    for an offset beyond the end.
    """
    await check_within(source, limit)
    with without_collection():
        beginning = await source.begin(limit)
        try:
            return await _replayed_from(source, beginning, limit)
        except (CommandFailure, CorruptStorage) as error:
            newest = await source.begin(limit, by_checkpoint=True)
            if newest.next_offset <= beginning.next_offset:
                raise
            state = await _replayed_from(source, newest, limit)
            what = f"what is before offset {newest.next_offset} is from a checkpoint"
            click.echo(f"{error}\nSo {what}.", err=True)
            return state


async def _replayed_from(source: Source, beginning: Beginning, limit: Limit) -> State:
    with bar_of(beginning.size_bytes) as bar:
        return await advance(source, begun(source, beginning, bar), limit, bar)


async def check_within(source: Source, limit: Limit) -> None:
    """Raise CommandFailure, which says what the log has, for an offset that no record has yet."""
    if limit.offset is not None:
        (await source.extent()).check(source.name, limit)


async def load(source: Source, limit: Limit) -> State:
    """The state as of a limit, for display: without an open metadata transaction, as brokers see it.

    Raises CommandFailure.
    """
    state = await replayed(source, limit)
    if state.image.in_transaction:
        click.echo(
            f"A metadata transaction that began at offset {state.image.transaction_offset} is open at offset "
            f"{state.provenance.offset}; its records are left out.",
            err=True,
        )
        state.image.abort_transaction()
    return state


def begun(source: Source, beginning: Beginning, bar: Bar | None = None) -> State:
    """The state of the checkpoint that a source begins with."""
    image = Image()
    offset = beginning.next_offset - 1
    for run in beginning.runs:
        with damage(source.name, offset):
            image.apply_all(run, offset, beginning.epoch, of_snapshot=True)
    if bar is not None and beginning.next_offset:
        bar.advance(beginning.size_bytes)
    provenance = Provenance(offset, beginning.epoch, beginning.timestamp_ms)
    return State(image, provenance, beginning.next_offset)


async def advance(source: Source, state: State, limit: Limit, bar: Bar | None = None) -> State:
    """The state after the records that there are now, up to the limit."""
    image, provenance, next_offset = state
    async for batch in source.batches(next_offset):
        header = batch.header
        count = limit.count_of(header)
        if count == 0:
            break
        with damage(source.name, header.base_offset):
            if not header.is_control:
                apply_batch(image, batch, count)
        provenance = Provenance(header.base_offset + count - 1, header.leader_epoch, header.max_timestamp_ms)
        next_offset = provenance.offset + 1
        if bar is not None:
            bar.advance(header.size_bytes)
        if count < header.record_count:
            break
    return State(image, provenance, next_offset)


def apply_batch(image: Image, batch: Batch, count: int) -> None:
    """Apply the first count records of a batch."""
    offset, epoch = batch.header.base_offset, batch.header.leader_epoch
    for run in decode_runs(batch):
        wanted = run if len(run) <= count else run[:count]
        image.apply_all(wanted, offset, epoch)
        offset += len(wanted)
        count -= len(wanted)
        if count == 0:
            return


def messages_of(batch: Batch) -> list[Message]:
    """All metadata records of a batch. Raises CorruptBatch, ProtocolError."""
    return [message for run in decode_runs(batch) for message in run]


@contextmanager
def damage(name: str, offset: int) -> Iterator[None]:
    """Raise CommandFailure for records that cannot be decoded, or contradict earlier ones."""
    try:
        yield
    except CorruptBatch as error:
        raise CommandFailure(f"{name}: offset {offset}: {error.reason}", DIRECTORY) from None
    except (ReplayError, ProtocolError) as error:
        raise CommandFailure(f"{name}: offset {offset}: {error}", DIRECTORY) from None


async def batches_within(source: Source, start: int, limit: Limit) -> AsyncIterator[tuple[Batch, int]]:
    """Batches with how many of their records are within a limit."""
    async for batch in source.batches(start):
        count = limit.count_of(batch.header)
        if count == 0:
            return
        yield batch, count
        if count < batch.header.record_count:
            return
