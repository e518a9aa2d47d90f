"""A group as text: its partitions and members in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftd.cli.tables import print_table
from kraftd.control_characters import visible_cell

if TYPE_CHECKING:
    from kraftd.client.group_description import GroupPartition, GroupState, Member


def show_group(state: GroupState) -> None:
    """Print a group. The column of instance ids is left out of one without static members."""
    members = f"{len(state.members)} member{'' if len(state.members) == 1 else 's'}"
    head = f"Group {visible_cell(state.group)} ({state.kind}): {state.state}"
    lag = "unknown" if state.lag is None else f"{'at least ' if state.missing else ''}{state.lag:,}"
    click.echo(f"{head}, {members}, total lag {lag}, coordinator {state.coordinator}")
    if state.waits_for:
        click.echo("The rebalance waits for:")
    for one in state.waits_for:
        click.echo(f"  {visible_cell(one)}")
    if state.wait_ends:
        click.echo(state.wait_ends)
    columns = 4 if any(member.instance_id is not None for member in state.members) else 3
    of_members = ("CLIENT", "HOST", "MEMBER", "INSTANCE")[:columns]
    if state.partitions:
        headings = ("TOPIC", "PARTITION", "COMMITTED", "LOG END", "LAG", *of_members)
        print_table(headings, [_row(one) + _who(one.member)[:columns] for one in state.partitions])
    idle = [one for one in state.members if not one.partitions]
    if idle:
        click.echo("Members without a partition:")
        print_table(of_members, [_who(one)[:columns] for one in idle])


def _row(one: GroupPartition) -> tuple[str, ...]:
    numbers = (one.committed, one.log_end, one.lag)
    return (one.topic, str(one.partition), *("-" if each is None else str(each) for each in numbers))


def _who(member: Member | None) -> tuple[str, ...]:
    if member is None:
        return "-", "-", "-", "-"
    return member.client_id, member.host, member.member_id, member.instance_id or "-"
