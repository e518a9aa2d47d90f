"""``kraftd snapshot``: have the daemon of a directory make a snapshot now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from kraftd.cli.cluster_options import run
from kraftd.cli.failures import FAILED, OK, UNREACHABLE, CommandFailure

if TYPE_CHECKING:
    from kraftd.config import DaemonConfig

POLL_S = 0.1
ANSWER_S = 4.0  # for controllers that are asked why there is no leader


@click.command()
@click.argument("file", type=click.Path())
@click.option(
    "--timeout",
    "timeout_s",
    type=click.IntRange(1, 86_400),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="Seconds to wait for the snapshot.",
)
def snapshot(file: str, timeout_s: int) -> int:
    """Make a snapshot of the metadata log now.

    FILE is the .properties file of a controller that runs on this machine. Each controller makes its own
    snapshots.

    The command asks the controller through a file beside its metadata log, so it needs write access there. It
    prints the path of the new checkpoint. If nothing was committed since the last one, it prints that one's.
    """
    import os
    import time

    from kraftd.config import load
    from kraftd.host.upkeep.snapshot_request import request_snapshot, take_answer
    from kraftd.log.disk import RealDisk
    from kraftd.metadata_dir.directory import PARTITION_DIRECTORY

    config = load(file)
    disk = RealDisk()
    check_running(disk, config.metadata_log_dir, file)
    directory = f"{config.metadata_log_dir}/{PARTITION_DIRECTORY}"
    name = f"{os.getpid()}-{time.time_ns()}"
    request_snapshot(disk, directory, name)
    deadline_s = time.monotonic() + timeout_s
    while (answer := take_answer(disk, directory, name)) is None:
        if time.monotonic() > deadline_s:
            raise CommandFailure(f"no answer in {timeout_s} s: see the controller's log.", UNREACHABLE)
        time.sleep(POLL_S)
    if answer.error:
        raise CommandFailure("\n".join([answer.error, *why_not(config)]), FAILED)
    click.echo(f"{answer.path} ({answer.size_bytes} bytes)")
    return OK


def why_not(config: DaemonConfig) -> Iterator[str]:
    """Why the node has no leader, if it has none: without one nothing more is committed."""
    from kraftd.cli.doctor.examine import configured_servers, log_in_as
    from kraftd.cli.quorum.leader import why_no_leader

    own = [(one.host or "localhost", one.port) for one in config.advertised_listeners[:1] if one.port]
    log_in_as(config, [])
    found = run(why_no_leader([*own, *configured_servers(config)], ANSWER_S))
    if found is not None:
        yield str(found)


def check_running(disk: object, directory: str, file: str) -> None:
    """Raise CommandFailure where no daemon holds the directory's lock."""
    from kraftd.log.disk import RealDisk
    from kraftd.log.errors import DirectoryLocked
    from kraftd.metadata_dir.directory import LOCK_FILE

    assert isinstance(disk, RealDisk)
    path = f"{directory}/{LOCK_FILE}"
    if disk.exists(path):
        try:
            disk.lock(path).release()
        except DirectoryLocked:
            return
    raise CommandFailure(
        f"no controller runs on {directory}. Start it first: kraftd start {file}", UNREACHABLE
    )
