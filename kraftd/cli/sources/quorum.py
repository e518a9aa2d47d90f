"""Records out of a running quorum, kraftd's or Apache Kafka's: from its controllers, or from its topic."""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import click

from kraftd.cli.failures import DIRECTORY, FAILED, UNREACHABLE, CommandFailure
from kraftd.cli.quorum.leader import explained, leaderless_for, parse_addresses
from kraftd.cli.sources.source import Beginning, Extent, Limit, not_covered
from kraftd.cli.wait_notice import waiting
from kraftd.client.cluster import Cluster
from kraftd.client.connection import Connection
from kraftd.client.failures import ClientFailure, NoAnswer, OutOfRange, Refused, Unreachable
from kraftd.client.metadata_cache import Address
from kraftd.client.partition_reader import EARLIEST, LATEST, PartitionReader
from kraftd.client.quorum_log import LogBounds, NotCovered, QuorumLog
from kraftd.log.disk import RealDisk
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kraftd.messages.describe_quorum_response import DescribeQuorumResponse
from kraftd.metadata_dir.files.checkpoint import CheckpointReader, checkpoint_name
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, OffsetAndEpoch, address_text, time_text
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import Batch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

DESCRIBE = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(METADATA_PARTITION)])])

NOTHING_COMMITTED = (
    "its controllers do not answer, and it serves no metadata log. A node that restarted since there was a "
    "leader does not know what is committed: read its directory with --directory"
)
ONLY_CONTROLLERS = (
    "what was before is in a snapshot that only controllers give. Name the listener of a controller with "
    "--bootstrap."
)


async def find_quorum(bootstrap: str, timeout_s: float) -> QuorumSource | TopicSource:
    """The source behind bootstrap addresses of controllers, of brokers, or of client listeners.

    Raises CommandFailure, Unreachable.
    """
    addresses = parse_addresses(bootstrap)
    failures: list[str] = []
    for address in addresses:
        try:
            async with await Connection.open(*address, timeout_s, client_id="kraftd-cli") as connection:
                if connection.serves(ApiKey.FETCH_SNAPSHOT):
                    return QuorumSource(bootstrap, addresses, timeout_s)
                controllers = await _controllers_known_to(connection, timeout_s / 4)
        except Unreachable as error:
            failures.append(str(error))
            continue
        if controllers is None:
            topic = TopicSource(bootstrap, [address], timeout_s)
            is_served = await topic.is_served()
            await topic.close()
            if is_served:
                return QuorumSource(bootstrap, [address], timeout_s, replica=address)
            failures.append(f"{address_text(address)}: {NOTHING_COMMITTED}")
            continue
        reached = await _reachable(controllers, timeout_s)
        if reached is not None:
            source = QuorumSource(bootstrap, controllers, timeout_s)
            if await source.is_allowed():
                return source
            await source.close()
        topic = TopicSource(bootstrap, addresses, timeout_s)
        if await topic.is_served():
            return topic
        await topic.close()
        where = ", ".join(f"{host}:{port}" for host, port in controllers) or "it names none"
        failures.append(f"{connection.address}: it is a broker, and no controller can be reached ({where})")
    raise CommandFailure("\n".join(dict.fromkeys(failures)), UNREACHABLE)


async def _controllers_known_to(connection: Connection, timeout_s: float) -> list[Address] | None:
    """The addresses of the quorum's controllers, from a broker; None if it has no answer of their leader."""
    try:
        answer = await connection.ask(DESCRIBE, DescribeQuorumResponse, timeout_s=timeout_s)
    except NoAnswer:
        return None
    if answer.error_code == ErrorCode.REQUEST_TIMED_OUT:
        return None
    return [(one.host, one.port) for node in answer.nodes for one in node.listeners]


async def _reachable(controllers: list[Address], timeout_s: float) -> Address | None:
    for address in controllers:
        try:
            async with await Connection.open(*address, timeout_s / 4) as connection:
                if connection.serves(ApiKey.FETCH_SNAPSHOT):
                    return address
        except Unreachable:
            continue
    return None


class QuorumSource:
    """The metadata log at the controllers of a quorum, snapshots included; only what is committed."""

    def __init__(
        self, name: str, controllers: list[Address], timeout_s: float, *, replica: Address | None = None
    ) -> None:
        self.name = name
        self._controllers = controllers
        self._log = QuorumLog(controllers, timeout_s, without_leader=True, replica=replica)
        self._at_client_listener = replica is not None
        self._end = 0  # of what was committed when the source was opened
        self._last: tuple[int, int] | None = None  # offset and time of the last record that was read
        self._timeout_s = timeout_s
        self._epoch = 0  # of the record before the one that is read next
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __repr__(self) -> str:
        return f"<QuorumSource {self.name}, {self._log!r}>"

    async def is_allowed(self) -> bool:
        """Return whether the controllers let this user read: they ask for CLUSTER_ACTION."""
        try:
            await self._log.bounds()
        except Refused as error:
            return error.code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        except ClientFailure:
            pass  # the read that follows reports it
        return True

    async def begin(self, limit: Limit, *, by_checkpoint: bool = False) -> Beginning:
        bounds = await self._bounds()
        if bounds.latest is None or (bounds.log_start == 0 and not by_checkpoint):
            return Beginning(0, 0, -1, iter(()), 0)
        if limit.offset is None or bounds.latest.offset - 1 <= limit.offset:
            beginning = await self._download(bounds.latest)
            if limit.takes_checkpoint(bounds.latest, beginning.timestamp_ms):
                return beginning
        beginning = await self._earliest(bounds)
        if not limit.takes_checkpoint(OffsetAndEpoch(beginning.next_offset, 0), beginning.timestamp_ms):
            raise CommandFailure(not_covered(limit, beginning.next_offset), FAILED)
        return beginning

    async def begin_earliest(self) -> Beginning:
        bounds = await self._bounds()
        return Beginning(0, 0, -1, iter(()), 0) if bounds.latest is None else await self._earliest(bounds)

    async def extent(self) -> Extent:
        bounds = await self._bounds()
        return Extent(max(bounds.log_start - 1, 0), bounds.high_watermark)

    async def _bounds(self) -> LogBounds:
        async with (
            explained(self._controllers, self._timeout_s),
            waiting(f"for a leader, {self._timeout_s:g} s at most"),
        ):
            try:
                bounds = await self._log.bounds()
            except Refused as error:
                if error.code == ErrorCode.OFFSET_OUT_OF_RANGE and self._log.replica is not None:
                    raise CommandFailure(f"{error}: {ONLY_CONTROLLERS}", DIRECTORY) from None
                raise
        self._end = bounds.high_watermark
        return bounds

    async def note(self) -> str | None:
        at = self._log.replica
        if at is None:
            return None
        why = "no leader"
        if not self._at_client_listener:
            why = await leaderless_for(at, self._timeout_s / 4) or why
        text = f"{address_text(at)}: {why}. This is what it knows is committed, up to offset {self._end - 1}"
        if self._last is None or self._last[0] < self._end - 1:
            return f"{text}."
        offset, timestamp_ms = self._last
        age_s = max(0, round(time.time() - timestamp_ms / 1000))
        return f"{text.rpartition(' ')[0]} {offset} of {time_text(timestamp_ms)}, {age_s} s ago."

    async def _earliest(self, bounds: LogBounds) -> Beginning:
        assert bounds.latest is not None
        if bounds.log_start == 0:
            return Beginning(0, 0, -1, iter(()), 0)
        try:
            return await self._download(await self._log.earliest_snapshot(bounds))
        except Refused as error:
            # After a restart, Apache Kafka's controller no longer knows its log's start, nor this snapshot.
            # It fails to encode the refusal, so that an unknown error arrives here.
            if error.code not in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.UNKNOWN_SERVER_ERROR):
                raise
            return await self._download(bounds.latest)

    async def _download(self, snapshot_id: OffsetAndEpoch) -> Beginning:
        """Bring a snapshot into a temporary file, checked as it is read."""
        self._folder = self._folder or tempfile.TemporaryDirectory(prefix="kraftd-")
        path = Path(self._folder.name, checkpoint_name(snapshot_id))
        if not path.exists():
            with path.open("wb") as file:
                async for piece, _ in self._log.snapshot(snapshot_id):
                    file.write(piece)
        reader = CheckpointReader(RealDisk(), str(path))

        def runs() -> Iterator[list[Message]]:
            try:
                yield from reader.runs()
            finally:
                reader.close()

        end, self._epoch = snapshot_id
        self._last = end - 1, reader.header.last_contained_log_timestamp_ms
        return Beginning(
            end, self._epoch, reader.header.last_contained_log_timestamp_ms, runs(), reader.size_bytes
        )

    async def batches(self, start: int, *, follow: bool = False) -> AsyncIterator[Batch]:
        epoch = self._epoch if start else 0
        batches = self._log.batches(start, epoch, follow=follow)
        was_led = self._log.replica is None
        try:
            while True:
                async with explained(self._controllers, self._timeout_s):
                    batch = await anext(batches, None)
                if follow and was_led is not (self._log.replica is None):
                    was_led = not was_led
                    has = "has a leader again" if was_led else "has no leader now"
                    click.echo(f"The quorum {has}.", err=True)
                if batch is None:
                    return
                self._epoch = batch.header.leader_epoch
                self._last = batch.header.next_offset - 1, batch.header.max_timestamp_ms
                yield batch
        except NotCovered as error:
            raise CommandFailure(
                f"{self.name}: the leader made a new snapshot and deleted the log before {error.log_start} "
                "meanwhile. Run the command again.",
                FAILED,
            ) from None

    async def close(self) -> None:
        await self._log.close()
        if self._folder is not None:
            self._folder.cleanup()


class TopicSource:
    """The metadata log as the read-only topic that a client listener serves; it has no snapshots."""

    def __init__(self, name: str, bootstrap: list[Address], timeout_s: float) -> None:
        self.name = name
        self._cluster = Cluster(bootstrap, timeout_s)
        self._epoch = -1

    def __repr__(self) -> str:
        return f"<TopicSource {self.name}>"

    async def is_served(self) -> bool:
        """Return whether the listener has the topic. Raises CommandFailure if it is not for this user."""
        try:
            await self._cluster.refresh([METADATA_TOPIC])
        except ClientFailure as error:
            if isinstance(error, Refused) and error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                await self.close()
                raise CommandFailure(
                    f"{self.name}: {error}: this user needs READ on the topic {METADATA_TOPIC}", FAILED
                ) from None
            return False
        return self._cluster.cache.leader(METADATA_TOPIC, METADATA_PARTITION) is not None

    async def begin(self, limit: Limit, *, by_checkpoint: bool = False) -> Beginning:
        return await self.begin_earliest()

    async def begin_earliest(self) -> Beginning:
        found = await self._reader(0, -1).list_offset(EARLIEST)
        if found.offset > 0:
            raise CommandFailure(
                f"{self.name}: the log begins at offset {found.offset}: {ONLY_CONTROLLERS}",
                DIRECTORY,
            )
        return Beginning(0, -1, -1, iter(()), 0)

    async def extent(self) -> Extent:
        first = await self._reader(0, -1).list_offset(EARLIEST)
        end = await self._reader(0, -1).list_offset(LATEST)
        return Extent(first.offset, end.offset)

    async def note(self) -> None:
        return None

    async def batches(self, start: int, *, follow: bool = False) -> AsyncIterator[Batch]:
        try:
            async for batch in self._reader(start, self._epoch).batches(follow=follow):
                self._epoch = batch.header.leader_epoch
                yield batch
        except OutOfRange as error:
            raise CommandFailure(f"{self.name}: {error}", FAILED) from None

    def _reader(self, offset: int, epoch: int) -> PartitionReader:
        return PartitionReader(self._cluster, METADATA_TOPIC, METADATA_PARTITION, offset, epoch)

    async def close(self) -> None:
        await self._cluster.close()
