"""``kraftd features``: which levels are finalized and supported, and finalizing others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from kraftd.cli.cluster_options import ClusterGroup, command_config_option, run
from kraftd.cli.failures import FAILED, UNREACHABLE, CommandFailure
from kraftd.cli.quorum.leader import Quorum, ask_leader, check, connect
from kraftd.cli.quorum.voters import quorum_option, timeout_option
from kraftd.named_tuple import NamedTuple

if TYPE_CHECKING:
    from kraftd.messages.api_versions_response import ApiVersionsResponse

UPGRADE, SAFE_DOWNGRADE = 1, 2  # UpdateFeatures' types (KIP-778)
KRAFT_VERSION, METADATA_VERSION = "kraft.version", "metadata.version"

feature_option = click.option(
    "-f",
    "--feature",
    "levels",
    multiple=True,
    required=True,
    metavar="NAME=LEVEL",
    help="A feature and its level; for metadata.version also a release (4.2) or a name (4.2-IV1).",
)
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Ask the leader whether it would accept the change, and change nothing."
)


class FeatureLevels(NamedTuple):
    """A feature: what this leader supports, and the level in force, 0 where none is."""

    low: int
    high: int
    finalized: int


@click.group(cls=ClusterGroup)
def features() -> None:
    """Show or change levels of features (metadata.version)."""


@features.command("describe")
@command_config_option
@quorum_option
@timeout_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def describe(bootstrap: str, timeout_s: float, as_json: bool) -> None:
    """Show the supported and the finalized levels of features."""
    from kraftd.cli.tables import print_table

    found = run(levels_in_force(bootstrap, timeout_s))
    if as_json:
        import json

        click.echo(json.dumps({name: one._asdict() for name, one in found.items()}))
        return
    rows = [
        [name, *(shown(name, level) for level in (one.low, one.high, one.finalized))]
        for name, one in found.items()
    ]
    print_table(("FEATURE", "LOWEST", "HIGHEST", "FINALIZED"), rows)


@features.command("upgrade")
@command_config_option
@quorum_option
@feature_option
@dry_run_option
@timeout_option
def upgrade(bootstrap: str, levels: Sequence[str], dry_run: bool, timeout_s: float) -> None:
    """Raise features to the named levels: all of them, or none.

    If a node does not support a level, the leader refuses the change and names the node.
    """
    change(bootstrap, timeout_s, levels, UPGRADE, dry_run)


@features.command("downgrade")
@command_config_option
@quorum_option
@feature_option
@dry_run_option
@timeout_option
def downgrade(bootstrap: str, levels: Sequence[str], dry_run: bool, timeout_s: float) -> None:
    """Lower features to the named levels: all of them, or none.

    A kraftd leader lowers metadata.version if no metadata in force needs the higher level. Otherwise it names
    the records that do. Apache Kafka's leader refuses if the form of a record differs between the levels.
    """
    change(bootstrap, timeout_s, levels, SAFE_DOWNGRADE, dry_run)


def change(bootstrap: str, timeout_s: float, levels: Sequence[str], kind: int, dry_run: bool) -> None:
    """Ask the leader for a change, and print the levels in force afterwards. Raises CommandFailure with its
    reason.
    """
    try:
        wanted = dict(map(parse_level, levels))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--feature") from None
    run(_change(bootstrap, timeout_s, wanted, kind, dry_run))
    verb = "could become" if dry_run else "is now"
    for name, level in wanted.items():
        click.echo(f"{name} {verb} {shown(name, level)}.")


async def _change(bootstrap: str, timeout_s: float, wanted: Mapping[str, int], kind: int, dry: bool) -> None:
    await update(await ask_leader(bootstrap, timeout_s), timeout_s, wanted, kind, dry_run=dry)


def parse_level(text: str) -> tuple[str, int]:
    """A feature and its level. Raises ValueError."""
    from kraftd.cli.storage.format import name_and_level
    from kraftd.metadata.metadata_version import parse_version

    name, _, level = text.partition("=")
    if name.strip() == METADATA_VERSION and "." in level:
        return METADATA_VERSION, parse_version(level.strip(), unstable=True)
    return name_and_level(text)


def shown(name: str, level: int) -> str:
    """A level for people: of metadata.version with the release."""
    from kraftd.metadata.metadata_version import is_known, version_name

    return f"{level} ({version_name(level)})" if name == METADATA_VERSION and is_known(level) else str(level)


async def levels_in_force(bootstrap: str, timeout_s: float) -> dict[str, FeatureLevels]:
    """What the leader supports and what is finalized, by feature. Raises CommandFailure, Unreachable."""
    quorum = await ask_leader(bootstrap, timeout_s)
    return feature_levels(await api_versions(quorum.address, timeout_s))


async def api_versions(address: tuple[str, int], timeout_s: float) -> ApiVersionsResponse:
    """A node's answer about the APIs and features that it supports."""
    from kraftd.messages.api_versions_request import ApiVersionsRequest
    from kraftd.messages.api_versions_response import ApiVersionsResponse

    async with await connect(address, timeout_s) as connection:
        return await connection.ask(ApiVersionsRequest("kraftd", "1"), ApiVersionsResponse)


def feature_levels(answer: ApiVersionsResponse) -> dict[str, FeatureLevels]:
    """The features of an answer to ApiVersions, by name."""
    finalized = {one.name: one.max_version_level for one in answer.finalized_features}
    return {
        one.name: FeatureLevels(one.min_version, one.max_version, finalized.get(one.name, 0))
        for one in sorted(answer.supported_features, key=lambda one: one.name)
    }


async def update(
    quorum: Quorum, timeout_s: float, wanted: Mapping[str, int], kind: int, *, dry_run: bool
) -> None:
    """Ask the leader to finalize these levels. Raises CommandFailure with its reason."""
    from kraftd.client.failures import NoAnswer
    from kraftd.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
    from kraftd.messages.update_features_response import UpdateFeaturesResponse

    updates = [FeatureUpdateKey(name, level, False, kind) for name, level in wanted.items()]
    request = UpdateFeaturesRequest(int(timeout_s * 1000), updates, validate_only=dry_run)
    try:
        async with await connect(quorum.address, timeout_s) as connection:
            answer = await connection.ask(request, UpdateFeaturesResponse)
    except NoAnswer as failure:
        text = f"{failure}. Whether the levels changed is not known: see kraftd features describe."
        raise CommandFailure(text, UNREACHABLE) from None
    check(answer.error_code, answer.error_message)
    for one in answer.results or ():
        if one.error_code:
            raise CommandFailure(f"{one.feature}: {one.error_message}", FAILED)
