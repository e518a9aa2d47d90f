"""``kraftd groups``: the consumer groups of a cluster, their members, and how far behind they are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from kraftd.cli.brokers.group_text import show_group
from kraftd.cli.brokers.options import of_brokers, show_missing
from kraftd.cli.brokers.reset import reset
from kraftd.cli.cluster_options import ClusterGroup, json_option
from kraftd.cli.failures import FAILED, OK
from kraftd.cli.tables import print_lines, print_table
from kraftd.control_characters import visible_cell

if TYPE_CHECKING:
    from kraftd.client.cluster import Cluster
    from kraftd.client.group_description import GroupState

DESCRIBED_AT_ONCE = 20


@click.group(cls=ClusterGroup)
def groups() -> None:
    """List, describe, reset and delete the groups of a cluster."""


groups.add_command(reset)


@groups.command("list")
@of_brokers
@json_option
async def list_command(cluster: Cluster, as_json: bool) -> int:
    """List the groups of all brokers.

    The exit code is 1 if groups are missing: of a broker that does not answer, or of partitions of
    __consumer_offsets without a leader.
    """
    from kraftd.client.groups import list_groups

    found, missing = await list_groups(cluster)
    rows = [
        {
            "group": one.group_id,
            "type": (one.group_type or "classic").lower(),
            "state": one.group_state,
            "protocol": one.protocol_type,
        }
        for one in sorted(found, key=lambda one: one.group_id)
    ]
    if as_json:
        print_lines(map(json.dumps, rows))
    elif rows:
        print_table(("GROUP", "TYPE", "STATE", "PROTOCOL"), _texts(rows))
    elif not missing:
        click.echo("There are no groups.", err=True)
    return show_missing(missing, "groups")


@groups.command()
@click.argument("group", nargs=-1, required=True)
@of_brokers
@json_option
async def describe(cluster: Cluster, group: tuple[str, ...], as_json: bool) -> int:
    """Describe groups, their members and lag.

    A line for each partition has the committed offset, the log's end and the member that reads it. Of a group
    that rebalances it says what is lacking. The exit code is 1 if one of the groups is not there. So it is
    if the end of a log is not known within the timeout; the total lag is then unknown (null with --json), or
    that of the other logs at least.
    """
    import asyncio

    from kraftd.cli.failures import explain
    from kraftd.client.failures import ClientFailure
    from kraftd.client.group_description import DEAD, describe_group

    async def described(name: str) -> GroupState | ClientFailure:
        try:
            return await describe_group(cluster, name)
        except ClientFailure as failure:
            return failure

    code = OK
    for first in range(0, len(group), DESCRIBED_AT_ONCE):
        names = group[first : first + DESCRIBED_AT_ONCE]
        for state in await asyncio.gather(*map(described, names)):
            if isinstance(state, ClientFailure):
                text, code = explain(state)
                click.echo(text, err=True)
                continue
            if state.state == DEAD:
                code = FAILED
                click.echo(f"There is no group {visible_cell(state.group)}.", err=True)
            elif as_json:
                click.echo(json.dumps(_as_dict(state)))
            else:
                show_group(state)
            if state.missing:
                code = FAILED
                more = f", and {len(state.missing) - 1} more" if len(state.missing) > 1 else ""
                click.echo(f"The end of a log is not known: {state.missing[0]}{more}.", err=True)
    return code


@groups.command()
@click.argument("group", nargs=-1, required=True)
@of_brokers
async def delete(cluster: Cluster, group: tuple[str, ...]) -> int:
    """Delete groups without members, with their committed offsets."""
    import asyncio

    from kraftd.client.groups import delete_group
    from kraftd.wire.error_code import ErrorCode, error_name

    answers = await asyncio.gather(*(delete_group(cluster, name) for name in group))
    why: dict[int, str] = {
        ErrorCode.NON_EMPTY_GROUP: "it has members",
        ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    }
    failed = False
    for name, code in zip(group, answers, strict=True):
        if code:
            failed = True
            click.echo(f"{name}: not deleted: {why.get(code, error_name(code))}.", err=True)
        else:
            click.echo(f"{name}: deleted.")
    return FAILED if failed else OK


def _as_dict(state: GroupState) -> dict[str, Any]:
    return {
        "group": state.group,
        "type": state.kind,
        "state": state.state,
        "protocol": state.protocol,
        "coordinator": state.coordinator,
        "lag": state.lag,
        "waits_for": list(state.waits_for),
        "wait_ends": state.wait_ends or None,
        "members": [
            {
                "member_id": one.member_id,
                "instance_id": one.instance_id,
                "client_id": one.client_id,
                "host": one.host,
                "partitions": [list(each) for each in one.partitions],
            }
            for one in state.members
        ],
        "partitions": [
            {
                "topic": one.topic,
                "partition": one.partition,
                "committed": one.committed,
                "log_end": one.log_end,
                "lag": one.lag,
                "member_id": None if one.member is None else one.member.member_id,
            }
            for one in state.partitions
        ],
    }


def _texts(rows: Iterable[dict[str, str]]) -> list[Sequence[str]]:
    return [tuple(row.values()) for row in rows]
