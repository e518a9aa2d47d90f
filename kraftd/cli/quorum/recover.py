"""``kraftd quorum recover``: a majority of the voters is lost for good; one survivor goes on alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from kraftd.cli.failures import DIRECTORY, FAILED, CommandFailure
from kraftd.cli.start import host_port
from kraftd.cli.values import NODE_ID
from kraftd.named_tuple import NamedTuple

if TYPE_CHECKING:
    from kraftd.cli.doctor.peer_probe import Address
    from kraftd.config import DaemonConfig
    from kraftd.log.disk import RealDisk
    from kraftd.metadata.image import Image
    from kraftd.metadata_dir.files.last_start import LastStart
    from kraftd.metadata_dir.rescue.sole_voter import Survey
    from kraftd.types import Uuid


class Confirmed(NamedTuple):
    """What the operator stated: addresses of former voters, lost ones, and the cluster id (None: ask)."""

    voters: Mapping[int, Address]
    lost: tuple[int, ...]
    cluster_id: str | None


class VoterAddress(click.ParamType["tuple[int, Address]"]):
    """ID@HOST:PORT."""

    name = "ID@HOST:PORT"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, Address]:
        from kraftd.configdef.addresses import parse_host_port

        node_id, at, address = str(value).partition("@")
        try:
            if not at:
                raise ValueError("ID@HOST:PORT is expected")
            return int(node_id), parse_host_port(address)
        except ValueError as error:
            self.fail(f"{value}: {error}", param, ctx)


@click.command()
@click.option(
    "-c", "--config", "file", required=True, metavar="FILE", help="The survivor's .properties file."
)
@click.option(
    "--other",
    "others",
    multiple=True,
    metavar="DIR",
    help="Another copy to compare: a data directory of a lost voter or of a broker. May be repeated.",
)
@click.option(
    "--voter",
    "voters",
    type=VoterAddress(),
    multiple=True,
    metavar="ID@HOST:PORT",
    help="Where a former voter may still run, if no file or record has its address. May be repeated.",
)
@click.option(
    "--lost",
    type=NODE_ID,
    multiple=True,
    metavar="ID",
    help="Confirm that a voter is lost that cannot be asked, or whose address answers as something else.",
)
@click.option(
    "--cluster-id-confirm", "typed", metavar="ID", help="The cluster id, as confirmation without a prompt."
)
def recover(
    file: str,
    others: tuple[str, ...],
    voters: tuple[tuple[int, Address], ...],
    lost: tuple[int, ...],
    typed: str | None,
) -> None:
    """Make the only surviving controller the only voter.

    Use this if a majority of the voters is lost for good. Run it on the survivor with the longest log,
    kraftd's or Apache Kafka's, while that is stopped. The command reports what is lost, and asks before it
    changes anything.

    It asks every former voter that the log, the registrations, quorum-state or the file names. It refuses if
    a leader answers, or if those that answer and this controller are a majority. A voter without a known
    address must be named by --voter or --lost.

    In a static quorum, first set controller.quorum.voters to this node alone. Never start a lost voter on its
    old directory again: format it anew.
    """
    from kraftd.config import load
    from kraftd.log.disk import RealDisk
    from kraftd.metadata_dir.directory import LOCK_FILE

    config = load(file)
    disk = RealDisk()
    cluster_id, directory_id = identity(disk, config)
    lock = disk.lock(f"{config.metadata_log_dir}/{LOCK_FILE}")
    try:
        _recover(disk, config, cluster_id, directory_id, others, Confirmed(dict(voters), lost, typed))
    finally:
        lock.release()


def _recover(
    disk: RealDisk,
    config: DaemonConfig,
    cluster_id: str,
    directory_id: Uuid | None,
    others: tuple[str, ...],
    confirmed: Confirmed,
) -> None:
    from time import time

    from kraftd.metadata_dir.formatting.voters import InitialVoter
    from kraftd.metadata_dir.rescue.sole_voter import kept_copies, make_sole_voter, recovered_epoch, survey
    from kraftd.types import ZERO_UUID

    directory = config.metadata_log_dir
    mine = survey(disk, directory)
    is_static = mine.kraft_version == 0
    copies = {other: survey(disk, data_directory(other)) for other in others}
    check_same_cluster(disk, cluster_id, others)
    epoch = recovered_epoch([mine, *copies.values()])
    print_survey(config, cluster_id, mine, copies)
    check_majority_is_lost(config, cluster_id, [mine, *copies.values()], confirmed)
    if is_static and list(config.quorum_voters) != [config.node_id]:
        raise CommandFailure(other_voters(config), DIRECTORY)
    typed = confirmed.cluster_id
    if typed is None:
        typed = click.prompt("Type the cluster id to go on", type=str)
    if typed.strip() != cluster_id:
        raise CommandFailure(f"{typed} is not the cluster id. Nothing was changed.", FAILED)
    endpoint = config.quorum_endpoint
    voter = InitialVoter(
        config.node_id, endpoint.host or "localhost", endpoint.port, directory_id or ZERO_UUID
    )
    kept = kept_copies(disk, directory, epoch)
    end = make_sole_voter(disk, directory, voter, endpoint.listener, epoch=epoch, now_ms=int(time() * 1000))
    click.echo(
        f"Controller {config.node_id} is the only voter, at {host_port(endpoint)}, "
        f"from epoch {epoch} on; the log ends at offset {end.offset}. Kept as they were:"
    )
    for _, copy in kept:
        click.echo(f"  {copy}")
    click.echo(what_next(config, is_static=is_static))


def data_directory(path: str) -> str:
    """The data directory of a path, which may name the partition's directory in it."""
    from kraftd.metadata_dir.directory import PARTITION_DIRECTORY

    path = path.rstrip("/") or "/"
    return path.removesuffix(f"/{PARTITION_DIRECTORY}")


def identity(disk: RealDisk, config: DaemonConfig) -> tuple[str, Uuid | None]:
    """The cluster id of the survivor, and its directory id, which static quorums may lack.

    Raises CommandFailure, DirectoryProblem.
    """
    from kraftd.metadata_dir.files.meta_properties import check_meta_properties, read_meta_properties

    directory = config.metadata_log_dir
    found = read_meta_properties(disk, directory)
    if found is None or found.cluster_id is None or (found.directory_id is None and not config.quorum_voters):
        raise CommandFailure(
            f"{directory} has no meta.properties with a cluster id and a directory id: it is not the "
            "directory of a voter.",
            DIRECTORY,
        )
    check_meta_properties({directory: found}, node_id=config.node_id)
    started = last_start(directory)
    if started is not None and started.cluster_id != found.cluster_id:
        raise CommandFailure(
            f"{directory}/meta.properties: cluster.id is {found.cluster_id}, but the log beside it was last "
            f"started with cluster.id {started.cluster_id}. Put the right id back. Nothing was changed.",
            DIRECTORY,
        )
    return found.cluster_id, found.directory_id


def check_same_cluster(disk: RealDisk, cluster_id: str, others: tuple[str, ...]) -> None:
    """Raise DirectoryProblem for a copy of another cluster; one without meta.properties is not checked."""
    from kraftd.metadata_dir.files.meta_properties import check_meta_properties, read_meta_properties

    for other in others:
        found = read_meta_properties(disk, data_directory(other))
        if found is not None:
            check_meta_properties({other: found}, cluster_id=cluster_id)


def check_majority_is_lost(
    config: DaemonConfig, cluster_id: str, surveys: list[Survey], confirmed: Confirmed
) -> None:
    """Ask the former voters. Raise CommandFailure if enough of them answer to continue without a recovery, or
    if one that cannot be asked is not confirmed as lost.
    """
    from kraftd.cli.cluster_options import run
    from kraftd.cli.doctor.examine import log_in_as
    from kraftd.cli.quorum.former_voters import ask_former, check_lost, check_not_asked, former_voters

    former = former_voters(
        config, surveys, registered(config), confirmed.voters, last_start(config.metadata_log_dir)
    )
    log_in_as(config, [])
    answers = run(ask_former(former, cluster_id))
    check_lost(former, answers, surveys[0].end, config.node_id, confirmed.lost)
    check_not_asked(former, config.node_id, confirmed.lost, may_prompt=confirmed.cluster_id is None)


def last_start(directory: str) -> LastStart | None:
    """What this log was last started with by kraftd. Raises DirectoryProblem."""
    from kraftd.log.disk import RealDisk
    from kraftd.metadata_dir.directory import PARTITION_DIRECTORY
    from kraftd.metadata_dir.files.last_start import read_last_start

    return read_last_start(RealDisk(), f"{directory}/{PARTITION_DIRECTORY}")


def registered(config: DaemonConfig) -> Image:
    """The image of the log, with the registered controllers and brokers."""
    from kraftd.cli.cluster_options import run
    from kraftd.cli.metadata.replaying import replayed
    from kraftd.cli.sources.files import FileSource
    from kraftd.cli.sources.source import Limit
    from kraftd.metadata.image import Image

    try:
        return run(replayed(FileSource(config.metadata_log_dir), Limit())).image
    except CommandFailure as failure:
        click.echo(f"  The registrations in the log cannot be read: {failure}")
        return Image()


def own_voter(config: DaemonConfig) -> str:
    """This controller as controller.quorum.voters names it."""
    endpoint = config.quorum_endpoint
    return f"{config.node_id}@{host_port(endpoint)}"


def other_voters(config: DaemonConfig) -> str:
    """The first step for a quorum whose voters are in its files, not in its log."""
    return (
        f"{config.metadata_log_dir} is of a static quorum (kraft.version 0): its voters are those of "
        f"controller.quorum.voters. Set controller.quorum.voters={own_voter(config)} in this file and run "
        "the command again. Nothing was changed."
    )


def what_next(config: DaemonConfig, *, is_static: bool) -> str:
    """The remaining steps for the operator."""
    if not is_static:
        return "Start it, then format new controllers with --no-initial-controllers and add them."
    return (
        f"Start it. Set controller.quorum.voters={own_voter(config)} in the file of every broker, for its "
        "next start. Former controllers have the old line: never start one with it, or two of them may "
        "elect each other. The voters are static (kraft.version 0): for more of them run kraftd quorum "
        "make-dynamic, and add new controllers. One that is only named in the files has no log, and would "
        "not vote."
    )


def print_survey(config: DaemonConfig, cluster_id: str, mine: Survey, copies: dict[str, Survey]) -> None:
    """Print what this log and the copies hold, and what is lost."""
    from kraftd.metadata_dir.rescue.sole_voter import compare

    end = mine.end
    click.echo(f"Cluster {cluster_id}, controller {config.node_id}, {config.metadata_log_dir}:")
    for note in mine.notes:
        click.echo(f"  {note}.")
    voters = ", ".join(map(str, mine.voter_ids)) or "static, not in the log"
    click.echo(f"  The log ends at offset {end.offset}, in epoch {end.epoch}. Voters: {voters}.")
    known = (
        f"Offsets below {mine.committed} are known to be committed."
        if mine.committed
        else "Neither a checkpoint nor the high-watermark file says how much of it is committed."
    )
    beyond = f"all of it is after offset {end.offset - 1}" if end.offset else "that is everything"
    click.echo(
        f"  {known} All of the log counts as committed from now on. What a majority had committed without "
        f"this controller is lost: {beyond}."
    )
    if mine.voter_ids and config.node_id not in mine.voter_ids:
        click.echo(f"  Controller {config.node_id} was no voter: it may be further behind than a voter.")
    if not copies:
        click.echo("  No other copy was given (--other), so any records beyond that are unknown.")
    for path, other in copies.items():
        found = compare(mine, other)
        click.echo(
            f"  {path} ends at offset {other.end.offset}, in epoch {other.end.epoch}: the same before offset "
            f"{found.common}; {found.only_there} records are there only, {found.only_here} here only."
        )
        if (other.end.epoch, other.end.offset) > (end.epoch, end.offset):
            click.echo(f"  Its log is AHEAD of this one: {path} is the better one to recover from.")
