"""Fetches a missing checkpoint from the leader before this node serves (KIP-630).

A log that begins behind offset 0 is useless without the checkpoint before it. If a damaged one was moved
aside, the leader's newest serves as well, if the log reaches back to its end. Meanwhile this node neither
votes nor counts as fetching. Its log and its vote stay: it still holds all records that it has acknowledged.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kraftd.client.connection import Connection, Setup
from kraftd.client.failures import Refused, Unreachable
from kraftd.client.secured import Secured
from kraftd.config import DaemonConfig
from kraftd.host.storage import lock_directory
from kraftd.log.disk import Disk
from kraftd.log.errors import CheckpointMissing, CorruptStorage, DirectoryProblem
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.messages.fetch_response import FetchResponse
from kraftd.messages.fetch_snapshot_request import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from kraftd.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftd.messages.fetch_snapshot_response import PartitionSnapshot as Piece
from kraftd.metadata_dir.files.checkpoint import PartFile, checkpoint_name, verify_checkpoint
from kraftd.runtime.security.assembly import Security
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, METADATA_TOPIC_ID, OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode, error_name

LEADER_WAIT_S = 20.0  # for a leader's answer: longer than two rounds of elections
ANSWER_S = 2.0
PAUSE_S = 0.2
# A node names the leader; if the epoch has changed meanwhile, that node names another one.
MAX_REDIRECTS = 4

Address = tuple[str, int]


class NotToBeHad(Exception):
    """Neither this controller nor the leader that it names sends a snapshot now; the text has the reason."""


def fetch_missing(
    missing: CheckpointMissing,
    disk: Disk,
    config: DaemonConfig,
    now_ms: int,
    new_directory_id: Callable[[], bytes],
    own_ports: Iterable[int],
    log: Any,
    security: Security,
) -> None:
    """Put the leader's checkpoint where one is missing. Blocks.

    The node connects as it does to its quorum later: with the TLS and the login of the controller listener.
    Raises StorageError; also CheckpointMissing, if there is no other controller, and DirectoryProblem if none
    sends the checkpoint.
    """
    servers = other_controllers(config, frozenset(own_ports))
    if not servers:
        raise missing
    log.warning("a snapshot is to be fetched from the leader", why=missing.found)
    directory = lock_directory(disk, config, now_ms, new_directory_id)
    try:
        setup = setup_of(security)
        fetched = asyncio.run(restore(disk, missing, directory.cluster_id, servers, setup))
    finally:
        directory.close()
    log.warning("a snapshot was fetched from the leader", snapshot=checkpoint_name(fetched))


def setup_of(security: Security) -> Setup:
    """The node's TLS and login for other controllers."""
    tls = security.client_tls
    return Secured(tls.contexts.client if tls else None, security.login)


def other_controllers(config: DaemonConfig, own_ports: frozenset[int]) -> list[Address]:
    """The nodes that may know the leader, without this node, which listens but does not answer yet."""
    voters = config.quorum_voters
    named = [voters[one] for one in sorted(voters) if one != config.node_id]
    return [each for each in named or config.quorum_bootstrap_servers if not _is_own(each, own_ports)]


def _is_own(address: Address, own_ports: frozenset[int]) -> bool:
    if address[1] not in own_ports:
        return False
    try:
        with socket.create_connection(address, ANSWER_S) as connection:
            return bool(connection.getpeername()[0] == connection.getsockname()[0])
    except OSError:
        return False


async def restore(
    disk: Disk,
    missing: CheckpointMissing,
    cluster_id: str,
    servers: Sequence[Address],
    setup: Setup,
    leader_wait_s: float = LEADER_WAIT_S,
) -> OffsetAndEpoch:
    """Store the leader's newest snapshot, checked and durable, in the directory; returns its id.

    Asks the servers one after another. Raises DirectoryProblem if none sent it in time, StorageError.
    """
    clock_s = asyncio.get_running_loop().time
    deadline_s = clock_s() + leader_wait_s
    while True:
        failures = []
        for server in servers:
            try:
                return await _from(server, disk, missing, cluster_id, setup)
            except (NotToBeHad, Refused, Unreachable) as error:
                failures.append(str(error))
        if clock_s() > deadline_s:
            raise DirectoryProblem(
                f"{missing}. It could not be fetched: {'; '.join(dict.fromkeys(failures))}"
            )
        await asyncio.sleep(PAUSE_S)


async def _from(
    server: Address, disk: Disk, missing: CheckpointMissing, cluster_id: str, setup: Setup
) -> OffsetAndEpoch:
    """Ask one controller, then the leader that it names."""
    address, epoch = server, 0
    for _ in range(MAX_REDIRECTS):
        async with await Connection.open(*address, ANSWER_S, setup) as client:
            answer = await client.ask(_fetch(cluster_id, epoch), FetchResponse)
            if answer.error_code or not answer.responses or not answer.responses[0].partitions:
                raise NotToBeHad(f"{client.address}: {error_name(answer.error_code)}")
            partition = answer.responses[0].partitions[0]
            if not partition.error_code:
                found = OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
                _check_reach(client, found, missing)
                await _download(client, disk, missing.directory, cluster_id, epoch, found)
                return found
            leader = partition.current_leader
            at = [(one.host, one.port) for one in answer.node_endpoints if one.node_id == leader.leader_id]
            reported = (at[0] if at else address, leader.leader_epoch)
            if reported == (address, epoch):
                break
            address, epoch = reported
    raise NotToBeHad(f"{address[0]}:{address[1]}: {error_name(partition.error_code)}")


def _check_reach(client: Connection, found: OffsetAndEpoch, missing: CheckpointMissing) -> None:
    if found.epoch < 0:
        raise NotToBeHad(
            f"{client.address}: the leader's log begins with offset 0 and it names no snapshot. Move the "
            "directory aside, format it anew and let this node catch up from the leader"
        )
    if found.offset < missing.log_start_offset:
        raise NotToBeHad(
            f"{client.address}: the leader's newest snapshot ends at {found.offset}. Let it make another "
            "(kraftd snapshot)"
        )


def _fetch(cluster_id: str, epoch: int) -> FetchRequest:
    """A fetch from offset 0 without a replica id: if the log begins later, the answer names a snapshot."""
    partition = FetchPartition(METADATA_PARTITION, epoch, 0, 0)
    return FetchRequest(
        cluster_id=cluster_id,
        replica_state=ReplicaState(-1),
        max_wait_ms=0,
        topics=[FetchTopic(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])],
    )


async def _download(
    client: Connection, disk: Disk, directory: str, cluster_id: str, epoch: int, snapshot_id: OffsetAndEpoch
) -> None:
    part = PartFile(disk, directory, snapshot_id)
    try:
        while True:
            partition = PartitionSnapshot(
                METADATA_PARTITION, epoch, SnapshotId(*snapshot_id), part.size_bytes
            )
            request = FetchSnapshotRequest(cluster_id, topics=[TopicSnapshot(METADATA_TOPIC, [partition])])
            piece = _piece(client, await client.ask(request, FetchSnapshotResponse))
            if piece.position != part.size_bytes or not piece.unaligned_records:
                raise NotToBeHad(f"{client.address}: no piece of the snapshot from byte {part.size_bytes} on")
            part.append(piece.unaligned_records)
            if part.size_bytes >= piece.size:
                break
        part.freeze(verify_checkpoint)
    except CorruptStorage as error:
        part.abandon()
        raise NotToBeHad(f"{client.address}: {error.found}") from None
    except BaseException:
        part.abandon()
        raise


def _piece(client: Connection, answer: FetchSnapshotResponse) -> Piece:
    if answer.error_code or not answer.topics or not answer.topics[0].partitions:
        raise NotToBeHad(f"{client.address}: {error_name(answer.error_code)}")
    piece = answer.topics[0].partitions[0]
    if piece.error_code != ErrorCode.NONE:
        raise NotToBeHad(f"{client.address}: {error_name(piece.error_code)}")
    return piece
