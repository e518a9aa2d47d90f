"""``kraftd quorum discard``: drop committed records that the quorum has lost, so that this node can join."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftd.cli.failures import FAILED, CommandFailure

if TYPE_CHECKING:
    from kraftd.metadata_dir.rescue.discard import Plan

MAX_NAMES = 10


@click.command()
@click.option(
    "-c", "--config", "file", required=True, metavar="FILE", help="The stopped node's .properties file."
)
@click.option(
    "--cluster-id-confirm", "typed", metavar="ID", help="The cluster id, as confirmation without a prompt."
)
def discard(file: str, typed: str | None) -> None:
    """Drop committed records that the quorum has lost.

    Use this after a controller has ended with exit code 3, because its quorum was recovered or restored
    without records that it knows as committed. Run it on that controller while it is stopped, and only if the
    quorum is right. The command says what it would drop, and asks before it changes anything. It keeps a copy
    in __cluster_metadata-0/discarded.
    """
    from kraftd.cli.quorum.recover import identity
    from kraftd.config import load
    from kraftd.log.disk import RealDisk
    from kraftd.metadata_dir.directory import LOCK_FILE
    from kraftd.metadata_dir.rescue.discard import discard, plan

    config = load(file)
    disk, directory = RealDisk(), config.metadata_log_dir
    cluster_id, _ = identity(disk, config)
    lock = disk.lock(f"{directory}/{LOCK_FILE}")
    try:
        planned = plan(disk, directory)
        click.echo(f"Cluster {cluster_id}, controller {config.node_id}, {directory}:")
        for line in lines(planned):
            click.echo(f"  {line}")
        if typed is None:
            typed = click.prompt("Type the cluster id to go on", type=str)
        if typed.strip() != cluster_id:
            raise CommandFailure(f"{typed} is not the cluster id. Nothing was changed.", FAILED)
        copies = discard(disk, directory, planned)
    finally:
        lock.release()
    click.echo(f"The log ends at offset {planned.start} now. Kept, for kraftd dump:")
    for copy in copies:
        click.echo(f"  {copy}")
    click.echo("Start the controller: it fetches the records of its quorum from there on.")


def lines(planned: Plan) -> list[str]:
    """What is discarded, in sentences."""
    refused, first, last = planned.refused, *planned.epochs
    at = "with a snapshot" if refused.snapshot_offset >= 0 else f"from offset {refused.offset}"
    epochs = f"epoch {first}" if first == last else f"epochs {first} to {last}"
    counts = ", ".join(f"{count} {name}" for name, count in planned.types.most_common())
    found = [
        f"Leader {refused.leader_id} of epoch {refused.leader_epoch} goes on {at}, without the rest of this "
        "log.",
        f"This controller knows its records below offset {planned.committed} as committed.",
        f"To be discarded: offsets {planned.start} to {planned.end - 1}, of {epochs}: {counts or 'none'}.",
    ]
    if planned.created:
        names = ", ".join(planned.created[:MAX_NAMES])
        more = len(planned.created) - MAX_NAMES
        found.append(
            f"They create {len(planned.created)} topics: {names}{f' and {more} more' if more > 0 else ''}."
        )
    if planned.deleted_count:
        found.append(f"They delete {planned.deleted_count} topics of before.")
    if planned.snapshots:
        found.append(
            f"So are the checkpoints {', '.join(map(str, planned.snapshots))}, which hold some of them."
        )
    return found
