"""``kraftd random-uuid`` and ``kraftd version``."""

from __future__ import annotations

import click


@click.command("random-uuid")
def random_uuid() -> None:
    """Print a new random id, for a cluster or a directory."""
    from kraftd.types import uuid_text

    click.echo(uuid_text(new_uuid()))


@click.command()
def version() -> None:
    """Print the version of kraftd.

    The command also prints the metadata.version that kraftd supports, and its codec engine (c or python).
    """
    print_version()


def show_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """Print the version for `kraftd --version`, and end."""
    if wanted and not ctx.resilient_parsing:
        print_version()
        ctx.exit()


def print_version() -> None:
    from importlib.metadata import version as installed

    from kraftd.metadata.metadata_version import LATEST_PRODUCTION, version_name
    from kraftd.wire.engine import engine_name

    latest = version_name(LATEST_PRODUCTION)
    details = f"metadata.version up to {latest}, codec engine {engine_name()}"
    click.echo(f"kraftd {installed('kraftd')} ({details})")


def new_uuid() -> bytes:
    """A random id that is not reserved and whose text does not look like an option, as Kafka makes them."""
    from uuid import uuid4

    from kraftd.types import uuid_text

    while True:
        candidate = uuid4().bytes
        # Ids below 100 are reserved; a random version 4 id never is one of them.
        if not uuid_text(candidate).startswith("-"):
            return candidate
