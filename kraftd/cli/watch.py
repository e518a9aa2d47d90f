"""``kraftd watch``: what happens in a cluster, in words, as it happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftd.cli.as_of import AsOf
from kraftd.cli.cluster_options import json_option, of_cluster, secrets_option
from kraftd.cli.sources.source import Limit

if TYPE_CHECKING:
    from kraftd.cli.cluster_options import Cluster


@click.command()
@of_cluster
@click.option("--topic", metavar="T", help="Show only events of this topic.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    help="Show only events of this kind, such as leader-moved; may be repeated.",
)
@click.option(
    "--from",
    "since",
    type=AsOf(),
    default=Limit(),
    metavar="OFFSET|TIME",
    help="Begin after this offset or time. Default: now.",
)
@secrets_option
@json_option
async def watch(
    cluster: Cluster,
    topic: str | None,
    kinds: tuple[str, ...],
    since: Limit,
    show_secrets: bool,
    as_json: bool,
) -> int:
    """Print what happens in a cluster, as it is committed.

    Each line has the offset, the time and a sentence: a topic was created, a leader moved, an ISR shrank. The
    command runs until it is interrupted.

    A directory does not say what is committed. Its last records may still be truncated; then a line says so.
    """
    from kraftd.cli.feed import echo_events, wants
    from kraftd.cli.history import events_of
    from kraftd.cli.replaying import replayed
    from kraftd.history.causes import with_causes
    from kraftd.history.kinds import KINDS
    from kraftd.history.story import Story
    from kraftd.log.following import LogTruncated

    for kind in kinds:
        if kind not in KINDS:
            known = ", ".join(sorted(KINDS))
            raise click.BadParameter(f"{kind} is no kind of event. Kinds are {known}.", param_hint="--kind")
    wanted = wants(topic, None, kinds)
    async with cluster as source:
        while True:
            state = await replayed(source, since)
            click.echo(f"Following {source.name} from offset {state.next_offset}.", err=True)
            if note := await source.note():
                click.echo(note, err=True)
            story = Story(state.image, show_secrets=show_secrets)
            try:
                async for batch in source.batches(state.next_offset, follow=True):
                    events = events_of(
                        source.name, story, batch, state.next_offset, batch.header.record_count
                    )
                    found = with_causes(list(events))
                    echo_events([event for event in found if wanted(event)], as_json)
            except LogTruncated as error:
                click.echo(
                    f"The log was truncated at offset {error.offset}: events from there on are void.",
                    err=True,
                )
                since = Limit()
