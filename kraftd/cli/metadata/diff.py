"""``kraftd diff``: what differs in a cluster between two offsets or times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from kraftd.cli.cluster_options import json_option, of_cluster, secrets_option
from kraftd.cli.failures import OK
from kraftd.cli.metadata.as_of import AsOf
from kraftd.cli.sources.source import Limit
from kraftd.cli.tables import print_lines
from kraftd.configdef.text import double_text

if TYPE_CHECKING:
    from kraftd.cli.cluster_options import Cluster
    from kraftd.history.difference import Difference


@click.command()
@of_cluster
@click.option(
    "--from", "before", type=AsOf(), required=True, metavar="OFFSET|TIME", help="The earlier state."
)
@click.option(
    "--to",
    "after",
    type=AsOf(),
    default=Limit(),
    metavar="OFFSET|TIME",
    help="The later state. Default: now.",
)
@secrets_option
@json_option
async def diff(cluster: Cluster, before: Limit, after: Limit, show_secrets: bool, as_json: bool) -> int:
    """Show what differs between two states of a cluster.

    A line begins with + if something is new, with - if it is gone, and with ~ if it changed.
    """
    from kraftd.cli.metadata.replaying import load
    from kraftd.history.difference import differences

    # Read twice: each state may start from another checkpoint, and leaves out a transaction open at its end.
    async with cluster as source:
        first = await load(source, before)
        second = await load(source, after)
    count = 0

    def lines() -> Iterator[str]:
        nonlocal count
        found = differences(first.image, second.image, show_secrets=show_secrets)
        for count, one in enumerate(found, 1):  # noqa: B007
            yield _json(one) if as_json else f"{one.sign} {one.path}{_words(one.before, one.after)}"

    print_lines(lines())
    if not as_json:
        between = f"{_place(first.provenance.offset)} and {_place(second.provenance.offset)}"
        click.echo(f"{count or 'No'} difference{'s' * (count != 1)} between {between}.", err=True)
    return OK


def _json(one: Difference) -> str:
    import msgspec

    return msgspec.json.encode({"path": one.path, "before": one.before, "after": one.after}).decode()


def _place(offset: int) -> str:
    return "the beginning" if offset < 0 else f"offset {offset}"


def _words(before: Any, after: Any) -> str:
    """`: leader 1 -> 2, leaderEpoch 5 -> 6`."""
    if isinstance(before, dict) and isinstance(after, dict):
        return ": " + ", ".join(f"{name} {_text(before[name])} -> {_text(after[name])}" for name in before)
    if before is not None and after is not None:
        return f": {_text(before)} -> {_text(after)}"
    there = after if before is None else before
    if isinstance(there, dict):
        return ": " + ", ".join(
            f"{name} {_text(value)}" for name, value in there.items() if value not in (None, [])
        )
    return f": {_text(there)}"


def _text(value: Any) -> str:
    if isinstance(value, list | dict):
        import msgspec

        return msgspec.json.encode(value).decode()
    if isinstance(value, float):  # a quota
        return double_text(value)
    return "none" if value is None else str(value)
