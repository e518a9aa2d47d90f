"""``kraftd topics``: the topics of a cluster, a line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from kraftd.cli.cluster_options import json_option, of_cluster
from kraftd.cli.failures import FAILED, OK, CommandFailure
from kraftd.cli.metadata.as_of import AsOf
from kraftd.cli.sources.source import Limit
from kraftd.cli.tables import print_lines, print_table

if TYPE_CHECKING:
    from kraftd.cli.cluster_options import Cluster
    from kraftd.metadata.image import Image
    from kraftd.metadata.state import TopicState


@click.command()
@click.argument("pattern", required=False)
@of_cluster
@click.option(
    "--as-of",
    type=AsOf(),
    default=Limit(),
    metavar="OFFSET|TIME",
    help="The state at this offset, with its record, or at this time. Default: now.",
)
@json_option
async def topics(cluster: Cluster, pattern: str | None, as_of: Limit, as_json: bool) -> int:
    """List the topics of a cluster, and what is wrong with them.

    PATTERN is the name of a topic, in which *, ? and [...] match parts of names.
    """
    from kraftd.cli.metadata.replaying import load

    async with cluster as source:
        state = await load(source, as_of)
    rows = rows_of(state.image, pattern)
    if as_json:
        import msgspec

        print_lines(msgspec.json.encode(row).decode() for row in rows)
        return OK
    if show_table(rows):
        return OK
    if pattern is not None:
        raise CommandFailure(f"No topic is named {pattern}.", FAILED)
    click.echo("There are no topics.", err=True)
    return OK


def rows_of(image: Image, pattern: str | None) -> Iterator[dict[str, Any]]:
    """What there is to say of each topic that a pattern names, by name."""
    names = image.topic_names()
    if pattern is not None and pattern in names:
        wanted = [pattern]
    else:
        wanted = sorted(name for name in names if pattern is None or fnmatchcase(name, pattern))
    for name in wanted:
        topic = image.topic_named(name)
        assert topic is not None
        yield row_of(image, topic)


def row_of(image: Image, topic: TopicState) -> dict[str, Any]:
    from kraftd.metadata.state import TOPIC_RESOURCE
    from kraftd.types import uuid_text

    partitions = topic.partitions.values()
    return {
        "topic": topic.name,
        "id": uuid_text(topic.id),
        "partitions": len(topic.partitions),
        "replication_factor": max((len(one.replicas) for one in partitions), default=0),
        "under_replicated": sum(len(one.isr) < len(one.replicas) for one in partitions),
        "without_leader": sum(one.leader < 0 for one in partitions),
        "reassigning": sum(one.is_reassigning for one in partitions),
        "configs": len(image.config(TOPIC_RESOURCE, topic.name)),
    }


HEADINGS = {
    "topic": "TOPIC",
    "id": "ID",
    "partitions": "PARTITIONS",
    "replication_factor": "REPLICATION",
    "under_replicated": "UNDER-REPLICATED",
    "without_leader": "WITHOUT LEADER",
    "reassigning": "REASSIGNING",
    "configs": "CONFIGS",
}


def show_table(rows: Iterable[dict[str, Any]]) -> int:
    """Print a table for people, unless it is empty; return the number of topics.

    A problem stands out where the terminal has colours.
    """
    texts, styles = [], []
    for row in rows:
        texts.append(tuple(str(row[key]) for key in HEADINGS))
        styles.append("bold red" if row["without_leader"] else "yellow" if row["under_replicated"] else "")
    if texts:
        print_table(HEADINGS.values(), texts, styles)
    return len(texts)
