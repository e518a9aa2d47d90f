"""``kraftd restore``: a new standalone controller's directory out of a backup or a copied data directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import TYPE_CHECKING

import click

from kraftd.cli.cluster_options import run
from kraftd.cli.failures import DIRECTORY, FAILED, USAGE, CommandFailure
from kraftd.cli.metadata.as_of import AsOf
from kraftd.cli.sources.source import Limit

if TYPE_CHECKING:
    from kraftd.cli.metadata.replaying import State
    from kraftd.config import DaemonConfig
    from kraftd.metadata.image import Image
    from kraftd.metadata_dir.rescue.restore import RestorePlan
    from kraftd.wire.message import Message
    from kraftd.wire.record_frame import VersionedRecord

RECORDS_PER_WRITE = 5_000
MAX_NAMED = 20
NO_NODE = -1


@click.command()
@click.option(
    "--from",
    "source",
    required=True,
    metavar="DIR",
    help="A backup, or a data directory of kraftd or Apache Kafka.",
)
@click.option(
    "-c", "--config", "file", required=True, metavar="FILE", help="The new controller's .properties file."
)
@click.option(
    "--as-of",
    type=AsOf(),
    default=Limit(),
    metavar="OFFSET|TIME",
    help="The offset of the last record to restore, or a time. Default: everything.",
)
@click.option("-t", "--cluster-id", metavar="ID", help="A new cluster id. Default: the id of the backup.")
def restore(source: str, file: str, as_of: Limit, cluster_id: str | None) -> None:
    """Make a new controller's directories from a backup.

    The controller is the only voter of a new quorum; others can join it. The directories that FILE names must
    be empty. The command does not change DIR. It leaves out the registrations of other controllers.

    Under the old cluster id, the command first asks the registered controllers, and refuses while they are a
    quorum.

    A redacted backup has no secrets. The command leaves out what lacks them, and names it.
    """
    from time import time

    from kraftd.cli.identity import new_uuid
    from kraftd.config import load as load_config
    from kraftd.log.disk import RealDisk
    from kraftd.metadata_dir.rescue.restore import check_empty, restore_directories
    from kraftd.types import time_text

    config = load_config(file)
    check_alone(config)
    disk = RealDisk()
    source = source.rstrip("/") or "/"
    check_empty(disk, config.data_dirs)
    old_cluster_id, is_redacted = origin_of(source)
    state, last_epoch = run(state_of(source, as_of))
    plan = plan_of(config, cluster_id or old_cluster_id, state, last_epoch)
    if plan.cluster_id == old_cluster_id:
        check_quorum_is_lost(config, old_cluster_id, state)
    blanked: list[Message] = []
    runs = runs_of(state.image, config.node_id, blanked if is_redacted else None)
    restore_directories(disk, plan, runs, new_uuid=new_uuid, now_ms=int(time() * 1000))
    click.echo(
        f"Restored cluster {old_cluster_id} as of offset {state.provenance.offset} "
        f"({time_text(state.provenance.timestamp_ms)}) into {config.metadata_log_dir}, "
        f"as cluster {plan.cluster_id} with node {config.node_id} as the only voter."
    )
    if is_redacted:
        click.echo(not_restored(blanked))


def check_quorum_is_lost(config: DaemonConfig, cluster_id: str, state: State) -> None:
    """Raise CommandFailure if the source's controllers run: a second quorum would have their cluster id."""
    from kraftd.cli.doctor.examine import log_in_as
    from kraftd.cli.quorum.former_voters import ask_former, majority_there, registered_voters
    from kraftd.cli.quorum.voter_probe import Presence
    from kraftd.types import OffsetAndEpoch

    former = registered_voters(state.image, config.quorum_bootstrap_servers)
    log_in_as(config, [])
    answers = run(ask_former(former, cluster_id))
    if majority_there(former, answers, NO_NODE, ()) is None and all(one.quorum is None for one in answers):
        return
    end = OffsetAndEpoch(state.next_offset, state.provenance.epoch)
    there = " ".join(one.text(end) for one in answers if one.presence)
    is_sure = any(one.quorum is not None or one.presence is Presence.THERE for one in answers)
    raise CommandFailure(
        f"The quorum of cluster {cluster_id} {'is not' if is_sure else 'may not be'} lost. {there} A second "
        "quorum of that cluster would take its own decisions. Give a new --cluster-id, or stop these "
        "controllers for good first. Nothing was written.",
        FAILED,
    )


def check_alone(config: DaemonConfig) -> None:
    """Raise CommandFailure where the file names other voters."""
    others = [node_id for node_id in config.quorum_voters if node_id != config.node_id]
    if others:
        raise CommandFailure(
            f"controller.quorum.voters names {', '.join(map(str, others))} beside this node: a restored "
            "quorum begins with one voter. Name this node alone; or leave the key out, have "
            "controller.quorum.bootstrap.servers, and let the others join.",
            USAGE,
        )


def origin_of(source: str) -> tuple[str, bool]:
    """(the cluster id of a backup, whose files are checked, or of a data directory; whether it is redacted).

    Raises CommandFailure.
    """
    from kraftd.log.disk import RealDisk
    from kraftd.metadata_dir.files.meta_properties import FILE_NAME, read_meta_properties
    from kraftd.metadata_dir.rescue.backup import MANIFEST, read_manifest, verify_backup

    disk = RealDisk()
    manifest = read_manifest(disk, source)
    if manifest is not None:
        verify_backup(disk, source, manifest)
        warn_of_modes(source)
        return manifest.cluster_id, manifest.redacted
    properties = read_meta_properties(disk, source)
    if properties is None or properties.cluster_id is None:
        raise CommandFailure(
            f"{source} is neither a backup (it has no {MANIFEST}; one that was interrupted has none) nor a "
            f"data directory (it has no {FILE_NAME}).",
            DIRECTORY,
        )
    return properties.cluster_id, False


def warn_of_modes(backup: str) -> None:
    """Say on standard error if other users may read a backup, which may hold secrets."""
    from kraftd.runtime.file_modes import wider_files, wider_modes

    for found in wider_modes([backup]):
        click.echo(f"{backup}: other users have rights to it (mode {found.mode:o}). {found.remedy}", err=True)
    inside = wider_files(backup)
    if inside is not None:
        click.echo(f"{backup}: {inside}. {inside.remedy}", err=True)


async def state_of(source: str, as_of: Limit) -> tuple[State, int]:
    """The state to restore, and the last epoch in the whole source."""
    from kraftd.cli.metadata.replaying import load
    from kraftd.cli.sources.files import FileSource

    files = FileSource(source)
    state = await load(files, as_of)
    last_epoch = state.provenance.epoch
    async for batch in files.batches(state.next_offset):
        last_epoch = max(last_epoch, batch.header.leader_epoch)
    return state, last_epoch


def plan_of(config: DaemonConfig, cluster_id: str, state: State, last_epoch: int) -> RestorePlan:
    """The plan of a restore. Raises CommandFailure if there is nothing to restore at that offset."""
    from kraftd.metadata_dir.rescue.new_epoch import epoch_beyond
    from kraftd.metadata_dir.rescue.restore import RestorePlan
    from kraftd.types import OffsetAndEpoch

    features = feature_records(state.image)
    if not features:
        raise CommandFailure(
            f"As of offset {state.provenance.offset} the cluster had no metadata.version yet: there is "
            "nothing to restore. Ask for a later offset.",
            FAILED,
        )
    endpoint = config.quorum_endpoint
    return RestorePlan(
        node_id=config.node_id,
        cluster_id=cluster_id,
        directories=config.data_dirs,
        metadata_directory=config.metadata_log_dir,
        host=endpoint.host or "localhost",
        port=endpoint.port,
        controller_listener=endpoint.listener,
        is_static=config.is_static_quorum,
        snapshot_id=OffsetAndEpoch(state.next_offset, state.provenance.epoch),
        timestamp_ms=state.provenance.timestamp_ms,
        epoch=epoch_beyond(last_epoch),
        feature_records=features,
    )


def feature_records(image: Image) -> tuple[VersionedRecord, ...]:
    """The records of the features' levels, as bootstrap.checkpoint has them."""
    from kraftd.messages.feature_level_record import FeatureLevelRecord

    return tuple(one for one in image.records() if isinstance(one.message, FeatureLevelRecord))


def runs_of(image: Image, node_id: int, blanked: list[Message] | None = None) -> Iterator[list[bytes]]:
    """The framed records of a snapshot, some at a time, without the registrations of other controllers.

    Of a redacted source the records that lack their secrets go to `blanked` instead.
    """
    from itertools import islice

    from kraftd.messages.register_controller_record import RegisterControllerRecord
    from kraftd.redaction.records import is_blanked
    from kraftd.wire.record_frame import encode_records

    def is_kept(message: Message) -> bool:
        if isinstance(message, RegisterControllerRecord):
            return message.controller_id == node_id
        if blanked is None or not is_blanked(message):
            return True
        blanked.append(message)
        return False

    kept = (one for one in image.records() if is_kept(one.message))
    while some := list(islice(kept, RECORDS_PER_WRITE)):
        yield encode_records(some)


def not_restored(blanked: Sequence[Message]) -> str:
    """What a redacted backup lacks, in sentences."""
    from kraftd.history.names import SCRAM_MECHANISMS, resource_type
    from kraftd.messages.config_record import ConfigRecord
    from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord

    credentials = sorted(
        (one.name, str(SCRAM_MECHANISMS.get(one.mechanism, one.mechanism)))
        for one in blanked
        if isinstance(one, UserScramCredentialRecord)
    )
    configs = sorted(
        f"{one.name} of {resource_type(one.resource_type).lower()} {one.resource_name or 'default'}"
        for one in blanked
        if isinstance(one, ConfigRecord)
    )
    return (
        "The backup is redacted: secrets were not restored.\n"
        f"SCRAM credentials: {_named([f'{name} ({mechanism})' for name, mechanism in credentials])}.\n"
        f"Sensitive configs: {_named(configs)}.\n"
        "Records of types that the backup's kraftd did not know are missing as well. Set credentials and "
        "configs anew; until then these users cannot log in."
        + (_setting_anew(*credentials[0]) if credentials else "")
    )


def _setting_anew(user: str, mechanism: str) -> str:
    """The command that gives a user a new password, as a line to copy."""
    entity = f"--entity-type users --entity-name {quote(user)}"
    change = quote(f"{mechanism}=[password=NEW-PASSWORD]")
    return (
        " So for the first one:\n"
        f"  kafka-configs.sh --bootstrap-controller HOST:PORT --alter {entity} --add-config {change}"
    )


def _named(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMED
    return (", ".join(names[:MAX_NAMED]) or "none") + (f" and {more:,} more" if more > 0 else "")
