"""``kraftd show``: the state of a cluster as a tree, now or as of an offset or a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

import click

from kraftd.cli.cluster_options import json_option, of_cluster, secrets_option
from kraftd.cli.failures import FAILED, OK, CommandFailure
from kraftd.cli.metadata.as_of import AsOf
from kraftd.cli.sources.source import Limit
from kraftd.cli.tables import print_lines

if TYPE_CHECKING:
    from kraftd.cli.cluster_options import Cluster

MAX_CHILDREN = 100  # of one directory, for people; --json shows all


@click.command()
@click.argument("path_in_tree", metavar="[PATH]", default="/")
@of_cluster
@click.option(
    "--as-of",
    type=AsOf(),
    default=Limit(),
    metavar="OFFSET|TIME",
    help="The state at this offset, with its record, or at this time. Default: now.",
)
@click.option(
    "--depth",
    type=click.IntRange(1, 16),
    help="How many levels to show. Default: 1, and all levels below a topic.",
)
@secrets_option
@json_option
async def show(
    cluster: Cluster, path_in_tree: str, as_of: Limit, depth: int | None, show_secrets: bool, as_json: bool
) -> int:
    """Show a cluster's state as a tree.

    PATH is a path of Kafka's metadata-shell, such as /topics/byName/orders. In it *, ? and [...] match names.
    Without PATH the command shows the top of the tree.
    """
    from kraftd.cli.metadata.replaying import load
    from kraftd.history.tree import Leaf, find, leaves, tree_of

    async with cluster as source:
        state = await load(source, as_of)
    root = tree_of(state.image, state.provenance, show_secrets=show_secrets)
    found = 0
    for full_path, node in find(root, path_in_tree):
        found += 1
        if as_json:
            import msgspec

            rows = ({"path": path, "value": leaf.value} for path, leaf in leaves(full_path, node))
            print_lines(msgspec.json.encode(row).decode() for row in rows)
        elif isinstance(node, Leaf):
            click.echo(f"{full_path}: {node.text}" if full_path != path_in_tree else node.text)
        else:
            below = full_path.count("/") > 2 and full_path.startswith("/topics/")
            print_lines(chain([full_path], _lines(node, depth or (16 if below else 1), "  ")))
    if not found:
        raise CommandFailure(
            f"{path_in_tree}: there is no such path as of offset {state.provenance.offset}.", FAILED
        )
    return OK


def _lines(directory: object, depth: int, indent: str) -> Iterator[str]:
    """The children of a directory, a line each, down to a depth."""
    from kraftd.history.tree import Directory, Leaf

    assert isinstance(directory, Directory)
    names = iter(directory.names())
    for name in islice(names, MAX_CHILDREN):
        child = directory.child(name)
        if isinstance(child, Leaf):
            yield f"{indent}{name}: {child.text}"
        elif child is not None:
            yield f"{indent}{name}/"
            if depth > 1:
                yield from _lines(child, depth - 1, indent + "  ")
    more = sum(1 for _ in names)
    if more:
        yield f"{indent}and {more:,} more (--json shows all)"
