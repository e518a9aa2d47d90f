"""``kraftd history``: what happened to a topic, or to all of a cluster, as far back as the log reaches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from kraftd.cli.cluster_options import json_option, of_cluster, secrets_option
from kraftd.cli.failures import FAILED, OK, CommandFailure
from kraftd.cli.metadata.as_of import MOST_OFFSET, AsOf
from kraftd.cli.sources.source import Limit

if TYPE_CHECKING:
    from kraftd.cli.cluster_options import Cluster
    from kraftd.history.event import Event
    from kraftd.history.story import Story
    from kraftd.wire.batch import Batch


@click.command()
@of_cluster
@click.option("--topic", metavar="T", help="Show only events of this topic.")
@click.option(
    "--partition",
    type=click.IntRange(0),
    help="With --topic: show only events of this partition and of the topic itself.",
)
@click.option(
    "--from",
    "since",
    type=AsOf(),
    metavar="OFFSET|TIME",
    help="Begin after this offset or time. Default: the start of the log.",
)
@click.option(
    "--to",
    "until",
    type=AsOf(),
    default=Limit(),
    metavar="OFFSET|TIME",
    help="End with this offset or time. Default: now.",
)
@secrets_option
@json_option
async def history(
    cluster: Cluster,
    topic: str | None,
    partition: int | None,
    since: Limit | None,
    until: Limit,
    show_secrets: bool,
    as_json: bool,
) -> int:
    """Print what happened in a cluster, one sentence per event.

    The command goes as far back as the log reaches.
    """
    if partition is not None and topic is None:
        raise click.UsageError("--partition needs --topic.")
    if since is not None and (since.offset or 0) > (MOST_OFFSET if until.offset is None else until.offset):
        raise click.UsageError(f"--from {since.offset} is after --to {until.offset}.")
    from kraftd.cli.metadata.feed import echo, wants
    from kraftd.cli.metadata.replaying import batches_within, begun, check_within, replayed
    from kraftd.history.incidents import Incidents
    from kraftd.history.story import Story

    selected = wants(topic, partition)
    found_count = 0

    def wanted(event: Event) -> bool:
        nonlocal found_count
        found_count += (is_wanted := selected(event))
        return is_wanted

    incidents = Incidents(wanted, in_order=as_json)
    async with cluster as source:
        await check_within(source, until)
        if since is not None:
            state = await replayed(source, since)
        else:
            state = begun(source, await source.begin_earliest())
        story = Story(state.image, show_secrets=show_secrets)
        known = topic is None or story.image.topic_named(topic) is not None
        if not as_json and state.next_offset and since is None:
            click.echo(
                f"The log begins at offset {state.next_offset}; what was before is in a checkpoint.", err=True
            )
        async for batch, count in batches_within(source, state.next_offset, until):
            events = list(events_of(source.name, story, batch, state.next_offset, count))
            echo(incidents.add(events), as_json)
        echo(incidents.end(), as_json)
    if topic is not None and not found_count and not known:
        raise CommandFailure(f"No topic was ever named {topic} as far back as the log reaches.", FAILED)
    return OK


def events_of(name: str, story: Story, batch: Batch, start: int, count: int) -> Iterator[Event]:
    """The events of the first count records of a batch, without those before the offset start.

    Raises CommandFailure for a record that cannot be read.
    """
    from kraftd.cli.metadata.replaying import damage, messages_of
    from kraftd.wire.batch import control_records

    header = batch.header
    with damage(name, header.base_offset):
        if header.is_control:
            for record in control_records(batch)[:count]:
                if record.message is not None and record.offset >= start:
                    event = story.describe_control(
                        record.message, record.offset, header.leader_epoch, header.base_timestamp_ms
                    )
                    if event is not None:
                        yield event
            return
        first = max(header.base_offset, start)
        messages = messages_of(batch)[first - header.base_offset : count]
        yield from story.describe(messages, first, header.leader_epoch, header.base_timestamp_ms)
