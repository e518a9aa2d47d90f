"""``kraftd backup``: the committed metadata of a running quorum in a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftd.cli.cluster_options import bootstrap_option, command_config_option, run
from kraftd.cli.values import SECONDS

if TYPE_CHECKING:
    from kraftd.client.quorum_log import LogBounds, QuorumLog
    from kraftd.metadata_dir.rescue.backup import BackupWriter, Manifest

_WITH_SECRETS = "It holds the secrets of the metadata. For other readers, take one with --redacted."
_WITHOUT_SECRETS = (
    "It holds no secrets. To restore the cluster, take one without --redacted as well: SCRAM credentials and "
    "sensitive configs are not in this one."
)


@click.command()
@command_config_option
@bootstrap_option("Controllers of the cluster, kraftd's or Apache Kafka's.")
@click.option("-o", "--output", "directory", required=True, metavar="DIR", help="A new or empty directory.")
@click.option(
    "--timeout",
    "timeout_s",
    type=SECONDS,
    default=15.0,
    show_default=True,
    help="Seconds to wait for a leader.",
)
@click.option(
    "--redacted",
    is_flag=True,
    help="Leave out passwords, salted keys and values of unknown configs: a backup for other readers.",
)
def backup(bootstrap: str, directory: str, timeout_s: float, redacted: bool) -> None:
    """Back up the metadata of a running quorum.

    The command copies the leader's newest snapshot and all committed records after it. The controllers keep
    serving. The backup is complete once DIR/backup.json exists. kraftd restore makes a new controller's
    directories from it.

    A backup holds every secret of the metadata, because it must restore: salted keys of SCRAM users, and
    passwords in configs. Its files have mode 0600. With --redacted it holds none of them, and kraftd restore
    says what it cannot restore.
    """
    from kraftd.types import time_text

    if not directory.strip():
        raise click.BadParameter("must name a directory", param_hint="--output")
    taken = run(take(bootstrap, directory.rstrip("/") or "/", timeout_s, redacted))
    size_bytes = sum(one.size_bytes for one in taken.files)
    click.echo(
        f"Backed up cluster {taken.cluster_id} to {directory}: everything before offset {taken.end_offset} "
        f"(epoch {taken.epoch}, {time_text(taken.time_ms)}), {size_bytes:,} bytes."
    )
    click.echo(_WITHOUT_SECRETS if redacted else _WITH_SECRETS)


async def take(bootstrap: str, directory: str, timeout_s: float, redacted: bool = False) -> Manifest:
    """Write the backup into a directory. Raises CommandFailure, ClientFailure, StorageError."""
    import os
    import time

    from kraftd.cli.quorum.leader import ask_leader, explained, parse_addresses
    from kraftd.client.quorum_log import QuorumLog
    from kraftd.log.disk import RealDisk
    from kraftd.metadata_dir.rescue.backup import BackupWriter

    directory = os.path.abspath(directory)
    quorum = await ask_leader(bootstrap, timeout_s)
    addresses = [quorum.leaders_address]
    if not quorum.by_broker:  # those are controllers, too
        addresses += parse_addresses(bootstrap)
    log = QuorumLog(addresses, timeout_s)
    try:
        async with explained(addresses, timeout_s):
            bounds = await log.bounds()
            writer = BackupWriter(RealDisk(), directory, redacted=redacted)
            await copy(log, bounds, writer)
    finally:
        await log.close()
    return writer.finish(quorum.cluster_id, int(time.time() * 1000))


async def copy(log: QuorumLog, bounds: LogBounds, writer: BackupWriter) -> None:
    """Copy the log to the writer. Raises CommandFailure if the leader deletes it faster than it is read."""
    from kraftd.cli.failures import FAILED, CommandFailure
    from kraftd.client.quorum_log import NotCovered

    start, epoch = 0, 0
    if bounds.latest is not None:
        start, epoch = bounds.latest
        writer.begin_snapshot(bounds.latest)
        async for piece, _ in log.snapshot(bounds.latest):
            writer.append_snapshot(piece)
        writer.end_snapshot()
    try:
        async for batch in log.batches(start, epoch):
            writer.append(batch)
    except NotCovered as error:
        raise CommandFailure(
            f"The leader made a new snapshot and deleted its log before offset {error.log_start} meanwhile. "
            f"Delete {writer.directory} and run the command again.",
            FAILED,
        ) from None
