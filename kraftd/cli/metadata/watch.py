"""``kraftd watch``: what happens in a cluster, in words, as it happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftd.cli.cluster_options import json_option, of_cluster, secrets_option
from kraftd.cli.metadata.as_of import AsOf
from kraftd.cli.sources.source import Limit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from kraftd.cli.cluster_options import Cluster
    from kraftd.history.incidents import Incidents
    from kraftd.wire.batch import Batch

PAUSE_S = 0.5  # without another batch, after which the parts of an event are complete


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
    from kraftd.cli.metadata.feed import echo, wants
    from kraftd.cli.metadata.history import events_of
    from kraftd.cli.metadata.replaying import replayed
    from kraftd.history.incidents import Incidents
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
            incidents = Incidents(wanted, in_order=as_json)
            batches = source.batches(state.next_offset, follow=True)
            try:
                async for batch in _with_pauses(batches, incidents):
                    if batch is None:
                        echo(incidents.end(), as_json)
                        continue
                    events = events_of(
                        source.name, story, batch, state.next_offset, batch.header.record_count
                    )
                    echo(incidents.add(list(events)), as_json)
            except LogTruncated as error:
                echo(incidents.end(), as_json)
                click.echo(
                    f"The log was truncated at offset {error.offset}: events from there on are void.",
                    err=True,
                )
                since = Limit()


async def _with_pauses(batches: AsyncIterator[Batch], incidents: Incidents) -> AsyncIterator[Batch | None]:
    """The batches of a source; None when an event is open and no batch has come for a while."""
    import asyncio

    while True:
        coming = asyncio.ensure_future(anext(batches, None))
        try:
            while incidents.is_open and not (await asyncio.wait({coming}, timeout=PAUSE_S))[0]:
                yield None
            batch = await coming
        finally:
            coming.cancel()
        if batch is None:
            return
        yield batch
