"""``kraftd dump``: the records in the files of a metadata log, and what is damaged in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from kraftd.cli.failures import DIRECTORY, FAILED, OK, CommandFailure

Row = dict[str, Any]

HEADINGS = f"{'OFFSET':>10} {'EPOCH':>6} {'TYPE':<30} {'VERSION':>7}  DATA"


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@click.option("--json", "form", flag_value="json", default="json", help="A JSON object a line (the default).")
@click.option("--table", "form", flag_value="table", help="A line of columns for each record, for people.")
@click.option(
    "--verify", is_flag=True, help="Check everything, indexes and checksums too, and show only damage."
)
def dump(paths: tuple[str, ...], form: str, verify: bool) -> int:
    """Show what is in segments and checkpoints.

    PATHS are files, or directories: a data directory, or its __cluster_metadata-0. Nothing is changed, and a
    running controller is not disturbed. What is damaged is shown where it is met; the exit code is then 3.
    """
    from os.path import isfile

    from kraftd.storage.disk import RealDisk
    from kraftd.storage.dump import find_dumpable

    disk = RealDisk()
    files: list[str] = []
    try:
        for path in paths:
            files += [path] if isfile(path) else find_dumpable(disk, [path.rstrip("/") or "/"])
    except FileNotFoundError as error:
        raise CommandFailure(f"{error}: there is no such file or directory.", FAILED) from None
    if not files:
        raise CommandFailure(f"{', '.join(paths)}: no segment or checkpoint is there.", FAILED)
    damaged, last_path = 0, ""
    if form == "table" and not verify:
        click.echo(HEADINGS)
    for row in rows_of(disk, files, verify):
        damaged += row["kind"] == "damage"
        if form == "table" and not verify and row["path"] != last_path:
            last_path = row["path"]
            click.echo(f"-- {last_path}")
        show(row, form)
    if damaged:
        click.echo(f"Damaged places: {damaged}, files read: {len(files)}.", err=True)
        return DIRECTORY
    if verify:
        click.echo(f"Files read: {len(files)}, all sound.", err=True)
    return OK


def rows_of(disk: Any, files: list[str], verify: bool) -> Iterator[Row]:
    from kraftd.storage import dump as storage

    for path in files:
        yield from storage.verify(disk, path) if verify else storage.dump(disk, path)


def show(row: Row, form: str) -> None:
    """One row; batches have no line of their own in a table, as their records tell the same."""
    if form == "json":
        from kraftd.storage.dump import as_json_line

        click.echo(as_json_line(row).decode(), nl=False)
    elif row["kind"] == "damage":
        offset = "" if row["offset"] is None else f" (offset {row['offset']})"
        click.echo(f"DAMAGED {row['path']}, byte {row['position']}{offset}: {row['reason']}")
    elif row["kind"] != "batch":
        from msgspec.json import encode

        data = encode(row["data"]).decode()
        epoch = row.get("epoch", "")
        click.echo(f"{row['offset']:>10} {epoch:>6} {row['type']:<30} {row['version']:>7}  {data}")
