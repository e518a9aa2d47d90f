"""``kraftd format``: prepare the data directories of a new node, as Kafka's storage tool does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftd.cli.failures import FAILED, USAGE, CommandFailure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kraftd.config import DaemonConfig
    from kraftd.metadata_dir.formatting.voters import InitialVoter
    from kraftd.wire.record_frame import VersionedRecord

SCRAM_SINCE = 11  # metadata.version 3.5-IV2
VOTERS_KEY = "controller.quorum.voters"


@click.command("format")
@click.option("-c", "--config", "file", required=True, metavar="FILE", help="The node's .properties file.")
@click.option(
    "-t",
    "--cluster-id",
    required=True,
    metavar="ID",
    help="The cluster id; kraftd random-uuid prints a new one.",
)
@click.option(
    "-s", "--standalone", is_flag=True, help="Make a new quorum with this controller as its only voter."
)
@click.option(
    "-I",
    "--initial-controllers",
    metavar="VOTERS",
    help="Make a new quorum of id@host:port:directory-id,...; the same list on all of them.",
)
@click.option(
    "-N",
    "--no-initial-controllers",
    is_flag=True,
    help="Join an existing quorum, or one that is formatted elsewhere.",
)
@click.option(
    "-r",
    "--release-version",
    metavar="VERSION",
    help="The release whose feature levels the cluster starts with.",
)
@click.option(
    "-f",
    "--feature",
    "features",
    multiple=True,
    metavar="NAME=LEVEL",
    help="The level of a feature at the start; may be repeated.",
)
@click.option(
    "-S",
    "--add-scram",
    "scram",
    multiple=True,
    metavar="CREDENTIAL",
    help="A first SCRAM credential, such as 'SCRAM-SHA-256=[name=alice,password=secret]'; may be repeated.",
)
@click.option("-g", "--ignore-formatted", is_flag=True, help="Leave formatted directories as they are.")
def format_command(
    file: str,
    cluster_id: str,
    standalone: bool,
    initial_controllers: str | None,
    no_initial_controllers: bool,
    release_version: str | None,
    features: tuple[str, ...],
    scram: tuple[str, ...],
    ignore_formatted: bool,
) -> None:
    """Prepare the data directories of a new node.

    For a controller whose file does not set controller.quorum.voters, give one of --standalone,
    --initial-controllers and --no-initial-controllers. The command overwrites nothing.

    With --standalone it asks the bootstrap servers, and refuses if they have a leader of the same cluster id.
    """
    from kraftd.config import load

    if [standalone, initial_controllers is not None, no_initial_controllers].count(True) > 1:
        raise click.UsageError(
            "--standalone, --initial-controllers and --no-initial-controllers exclude one another."
        )
    if not cluster_id.strip():
        raise click.BadParameter("it is empty; kraftd random-uuid makes a new one", param_hint="--cluster-id")
    config = load(file)
    voters = initial_voters(config, standalone, initial_controllers, no_initial_controllers)
    if standalone:
        check_no_quorum(config, cluster_id)
    format_node(
        config,
        cluster_id,
        voters,
        release_version=release_version,
        features=features,
        scram=scram,
        ignore_formatted=ignore_formatted,
    )


def check_no_quorum(config: DaemonConfig, cluster_id: str) -> None:
    """Raise CommandFailure if a bootstrap server is of a quorum with this cluster id: there would be two."""
    from kraftd.cli.cluster_options import run
    from kraftd.cli.doctor.examine import log_in_as
    from kraftd.cli.quorum.former_voters import FormerVoters, ask_former

    own = {(one.host, one.port) for one in (*config.listeners, *config.advertised_listeners)}
    servers = tuple(one for one in config.quorum_bootstrap_servers if one not in own)
    if not servers:
        return
    log_in_as(config, [])
    for one in run(ask_former(FormerVoters({}, {}, servers), cluster_id)):
        raise CommandFailure(
            f"{one.name} answers: a quorum of cluster {cluster_id} has a leader, and --standalone would make "
            "a second one. Join it (--no-initial-controllers), or give a new --cluster-id. Nothing was "
            "written.",
            FAILED,
        )


def format_node(
    config: DaemonConfig,
    cluster_id: str,
    voters: tuple[InitialVoter, ...] | None,
    *,
    release_version: str | None = None,
    features: Sequence[str] = (),
    scram: Sequence[str] = (),
    ignore_formatted: bool = False,
) -> None:
    """Format the directories of a configuration, and print what was formatted.

    Raises CommandFailure for invalid levels and credentials, StorageError for the directories.
    """
    from time import time

    from kraftd.cli.identity import new_uuid
    from kraftd.log.disk import RealDisk
    from kraftd.metadata.features import bootstrap_records, format_levels
    from kraftd.metadata.metadata_version import METADATA_VERSION, parse_version, version_name
    from kraftd.metadata_dir.formatting.format import FormatPlan, format_directories

    unstable = config.unstable_feature_versions_enable
    try:
        release = None if release_version is None else parse_version(release_version, unstable=unstable)
        levels = format_levels(
            dict(map(name_and_level, features)),
            release,
            dynamic_quorum=not config.is_static_quorum,
            unstable=unstable,
        )
        records = bootstrap_records(levels, scram_records(scram, levels[METADATA_VERSION]))
    except ValueError as error:
        raise CommandFailure(str(error), USAGE) from None
    plan = FormatPlan(
        node_id=config.node_id,
        cluster_id=cluster_id,
        directories=config.data_dirs,
        metadata_directory=config.metadata_log_dir,
        controller_listener=config.controller_listener_names[0],
        records=tuple(records),
        kraft_version=levels["kraft.version"],
        initial_voters=voters,
        ignore_formatted=ignore_formatted,
    )
    done = format_directories(RealDisk(), plan, new_uuid=new_uuid, now_ms=int(time() * 1000))
    for directory, problem in done.unreadable.items():
        click.echo(f"Left out: {directory} cannot be read. {problem}", err=True)
    if not done.formatted:
        click.echo("All of the directories are formatted already.")
    for formatted in done.formatted:
        name = version_name(levels[METADATA_VERSION])
        click.echo(f"Formatted {formatted.kind.value} {formatted.path} with metadata.version {name}.")


def initial_voters(
    config: DaemonConfig, standalone: bool, initial_controllers: str | None, no_initial_controllers: bool
) -> tuple[InitialVoter, ...] | None:
    """The first voters of a dynamic quorum; None if they are static, or named on another node."""
    from kraftd.cli.identity import new_uuid
    from kraftd.metadata_dir.formatting.voters import InitialVoter, parse_voters

    if config.is_static_quorum:
        if standalone or initial_controllers is not None:
            raise CommandFailure(
                f"{VOTERS_KEY} means a static quorum, --standalone and -I a dynamic one: "
                f"leave the option out, or have controller.quorum.bootstrap.servers instead of {VOTERS_KEY}.",
                USAGE,
            )
        return None
    if initial_controllers is not None:
        try:
            return tuple(parse_voters(initial_controllers))
        except ValueError as error:
            raise CommandFailure(f"--initial-controllers: {error}", USAGE) from None
    if not config.is_controller:
        if standalone:
            raise CommandFailure(
                "--standalone makes a first controller, and this file is of a broker alone: leave it out.",
                USAGE,
            )
        return None
    if standalone:
        endpoint = config.quorum_endpoint
        return (InitialVoter(config.node_id, endpoint.host or "localhost", endpoint.port, new_uuid()),)
    if not no_initial_controllers:
        raise CommandFailure(
            f"The first voters are unknown: {VOTERS_KEY} is not set, so give one of "
            "--standalone (only this controller), --initial-controllers (a new quorum), "
            "--no-initial-controllers (an existing quorum).",
            USAGE,
        )
    return None


def name_and_level(text: str) -> tuple[str, int]:
    """A feature and its level. Raises ValueError."""
    name, equals, level = text.partition("=")
    try:
        number = int(level)
    except ValueError:
        equals = ""
    if not equals or not -32768 <= number <= 32767:
        raise ValueError(f"--feature {text}: must be name=level, like kraft.version=1")
    return name.strip(), number


def scram_records(arguments: Sequence[str], metadata_version: int) -> list[VersionedRecord]:
    """The records of SCRAM credentials. Raises ValueError."""
    from secrets import token_bytes

    from kraftd.metadata_dir.formatting.scram import parse_scram
    from kraftd.wire.record_frame import VersionedRecord

    if arguments and metadata_version < SCRAM_SINCE:
        raise ValueError("--add-scram needs metadata.version 3.5-IV2 or later.")
    return [VersionedRecord(parse_scram(argument, lambda: token_bytes(26)), 0) for argument in arguments]
