"""``kraftd consume``: the records of a topic as lines, alone or as a member of a group."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from kraftd.cli.brokers.options import of_brokers
from kraftd.cli.cluster_options import json_option
from kraftd.cli.failures import OK
from kraftd.cli.values import SECONDS

if TYPE_CHECKING:
    from kraftd.client.cluster import Cluster
    from kraftd.client.consumer import Consumer, Fetched, TopicPartition
    from kraftd.client.group_member import GroupMember
    from kraftd.client.group_offsets import Committed

POLL_S = 0.5
COMMIT_S = 5.0


@click.command()
@click.argument("topic")
@of_brokers
@click.option("--group", metavar="G", help="Read as a member of this group, from its committed offsets on.")
@click.option(
    "--from-beginning",
    is_flag=True,
    help="Begin with the oldest record, not with the next one; in a group, where it has no offset.",
)
@click.option("--partition", type=click.IntRange(min=0), help="Read this partition alone.")
@click.option("--offset", type=click.IntRange(min=0), help="Begin at this offset of the partition.")
@click.option("--max-messages", type=click.IntRange(min=1), metavar="N", help="End after this many records.")
@click.option(
    "--idle", "idle_s", type=SECONDS, help="End after this many seconds without a record. Default: never."
)
@click.option(
    "--read-committed", is_flag=True, help="Leave out records of transactions that are open or were aborted."
)
@click.option(
    "--keys", "with_keys", is_flag=True, help="Print the key before the value, with a tab between them."
)
@click.option("--headers", "with_headers", is_flag=True, help="Print the headers before the value as well.")
@json_option
async def consume(
    cluster: Cluster,
    topic: str,
    group: str | None,
    from_beginning: bool,
    partition: int | None,
    offset: int | None,
    max_messages: int | None,
    idle_s: float | None,
    read_committed: bool,
    with_keys: bool,
    with_headers: bool,
    as_json: bool,
) -> int:
    """Print the records of a topic as they come.

    Each is a line of text. The command runs until it is interrupted.

    With --json, each line is an object with topic, partition, offset, timestamp_ms, key, value and headers.
    """
    import asyncio

    from kraftd.cli.brokers.records_as_text import text_of, to_json
    from kraftd.wire.keyed_records import StoredRecord

    if group is not None and (partition is not None or offset is not None):
        raise click.UsageError(
            "A group assigns partitions and offsets itself: leave out --group, or --partition and --offset."
        )
    if offset is not None and partition is None:
        raise click.UsageError("--offset needs --partition.")

    def line(of: TopicPartition, record: StoredRecord) -> str:
        if as_json:
            return to_json(*of, record)
        parts = [text_of(record.key)] if with_keys else []
        if with_headers:
            parts.append(",".join(f"{name}={text_of(value)}" for name, value in record.headers))
        return "\t".join([*parts, text_of(record.value)])

    reading = Reading(cluster, topic, group, from_beginning, partition, offset, read_committed)
    left = max_messages
    last_s = time.monotonic()
    _end_by_sigterm()
    try:
        await reading.begin()
        while left is None or left > 0:
            fetched = await reading.poll()
            lines = []
            for of, record in reading.records(fetched, left):
                lines.append(line(of, record))
            if lines:
                click.echo("\n".join(lines))
                last_s = time.monotonic()
                left = None if left is None else left - len(lines)
            elif idle_s is not None and time.monotonic() - last_s > idle_s:
                break
    except asyncio.CancelledError:
        pass
    finally:
        await reading.end()
    return OK


def _end_by_sigterm() -> None:
    """End on SIGTERM as on an interrupt: a member leaves its group, and the others need not wait for it.

    Another SIGTERM does not stop it from leaving: `timeout` sends two.
    """
    import asyncio
    import signal

    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def end() -> None:
        loop.add_signal_handler(signal.SIGTERM, lambda: None)
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, end)


class Reading:
    """One run of the command: a consumer, and in a group its member."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        group: str | None,
        from_beginning: bool,
        partition: int | None,
        offset: int | None,
        read_committed: bool,
    ) -> None:
        from kraftd.client.consumer import Consumer
        from kraftd.client.group_member import GroupMember

        self.topic, self.partition, self.offset = topic, partition, offset
        self._from_beginning = from_beginning
        self._cluster = cluster
        self._consumer: Consumer = Consumer(cluster, read_committed=read_committed)
        self._member: GroupMember | None = None if group is None else GroupMember(cluster, group, [topic])
        self._shown: dict[TopicPartition, Committed] = {}  # behind the last record of each that was printed
        self._heartbeat_s = self._commit_s = time.monotonic()

    def __repr__(self) -> str:
        return f"<Reading of {self.topic} by {self._member or self._consumer!r}>"

    async def begin(self) -> None:
        """Find the partitions and their positions; in a group, join it."""
        if self._member is not None:
            await self._join()
            return
        await self._cluster.refresh([self.topic])
        known = self._cluster.cache.topics[self.topic].partitions
        indexes = sorted(known) if self.partition is None else [self.partition]
        await self._assign([(self.topic, index) for index in indexes])

    async def poll(self) -> Fetched:
        """The next batches; heartbeats, commits and rebalances of the group in between."""
        from kraftd.client.group_member import HEARTBEAT_S, Rebalance

        member = self._member
        if member is not None:
            now_s = time.monotonic()
            try:
                if now_s - self._commit_s >= COMMIT_S:
                    self._commit_s = now_s
                    await member.commit(self._shown)
                if now_s - self._heartbeat_s >= HEARTBEAT_S:
                    self._heartbeat_s = now_s
                    await member.heartbeat()
            except Rebalance:
                await self._join()
        return await self._consumer.poll(POLL_S)

    def records(self, fetched: Fetched, most: int | None):  # type: ignore[no-untyped-def]
        """The records of batches, at most so many, from each partition's position on."""
        from kraftd.client.group_offsets import Committed
        from kraftd.wire.keyed_records import read_keyed_records

        count = 0
        for partition, batch in fetched:
            begin = self._shown.get(partition)
            for record in read_keyed_records(batch):
                if begin is not None and record.offset < begin.offset:
                    continue
                if most is not None and count >= most:
                    return
                count += 1
                self._shown[partition] = Committed(record.offset + 1, batch.header.leader_epoch)
                yield partition, record

    async def end(self) -> None:
        """Commit, leave the group, end the fetches."""
        from kraftd.client.failures import ClientFailure

        await self._consumer.close()
        if self._member is None:
            return
        try:
            await self._member.commit(self._shown)
            await self._member.leave()
        except ClientFailure as error:
            click.echo(f"The group was not left cleanly: {error}", err=True)

    async def _join(self) -> None:
        member = self._member
        assert member is not None
        assigned = await member.join()
        partitions = [(topic, index) for topic, indexes in assigned.items() for index in indexes]
        self._heartbeat_s = self._commit_s = time.monotonic()
        await self._assign(partitions)

    async def _assign(self, partitions: list[TopicPartition]) -> None:
        from kraftd.client.group_offsets import Committed
        from kraftd.client.partition_reader import EARLIEST, LATEST

        positions: dict[TopicPartition, Committed] = {}
        for partition in partitions:
            committed = await self._member.committed(*partition) if self._member is not None else None
            if committed is None and self.offset is not None:
                committed = Committed(self.offset, -1)
            if committed is None:
                when = EARLIEST if self._from_beginning else LATEST
                committed = Committed(await self._consumer.offset_of(partition, when), -1)
            positions[partition] = committed
        self._shown = dict(positions)
        self._consumer.assign(positions)
