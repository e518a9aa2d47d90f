"""``kraftd dump``: what is in the files of a metadata log."""

from __future__ import annotations

import click


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path())
def dump(paths: tuple[str, ...]) -> None:
    """Show PATHS."""
