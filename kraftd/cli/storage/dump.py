"""``kraftd dump``: the records in the files of a metadata log, the files beside it, and what is damaged."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from kraftd.cli.cluster_options import secrets_option
from kraftd.cli.failures import DIRECTORY, FAILED, OK, CommandFailure
from kraftd.types import time_text

if TYPE_CHECKING:
    from kraftd.log.disk import RealDisk

MAX_OFFSET = (1 << 63) - 1
OFFSET = click.IntRange(0, MAX_OFFSET)
Row = dict[str, Any]

HEADINGS = f"{'OFFSET':>10} {'EPOCH':>6} {'TYPE':<30} {'VERSION':>7}  DATA"


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@click.option(
    "--json", "form", flag_value="json", default="json", help="Print one JSON object per line (the default)."
)
@click.option("--table", "form", flag_value="table", help="Print a table, one line per record.")
@click.option(
    "--verify", is_flag=True, help="Check everything, also indexes and checksums, and print only damage."
)
@click.option("--from-offset", type=OFFSET, default=0, metavar="N", help="Begin with this offset.")
@click.option("--to-offset", type=OFFSET, default=MAX_OFFSET, metavar="N", help="End with this offset.")
@click.option("--skip-noop", is_flag=True, help="Leave out NoOpRecords, and batches that hold nothing else.")
@click.option("--times", is_flag=True, help="Print times as dates (UTC), not as milliseconds.")
@click.option("--camel-case", is_flag=True, help="Write names of fields as Kafka's tools do: topicId.")
@secrets_option
def dump(
    paths: tuple[str, ...],
    form: str,
    verify: bool,
    from_offset: int,
    to_offset: int,
    skip_noop: bool,
    times: bool,
    camel_case: bool,
    show_secrets: bool,
) -> int:
    """Print segments, checkpoints and the files beside them.

    PATHS are files, or directories: a data directory, its __cluster_metadata-0, or that of a broker's
    partition, such as orders-3. For a directory the command prints its segments and checkpoints. It prints
    quorum-state, meta.properties, partition.metadata, leader-epoch-checkpoint and the offsets of a log
    directory if PATHS names them; and of a segment the files .index, .timeindex, .txnindex (aborted
    transactions) and .snapshot (producers).

    Each record of a coordinator's partition, and each marker of a transaction, has a sentence, which --table
    prints in place of its fields.

    Salts and keys of SCRAM credentials, passwords, and values of configs that Kafka does not know are shown
    as [redacted].

    The command changes nothing and does not disturb a running controller. It prints damage where it finds it,
    and then ends with exit code 3. With --verify it also runs the checks of a start on a data directory.
    """
    if from_offset > to_offset:
        raise click.UsageError(f"--from-offset {from_offset} is after --to-offset {to_offset}.")
    from kraftd.log.disk import RealDisk

    disk = RealDisk()
    files, data_directories = found_at(disk, paths)
    if not files and not (verify and data_directories):
        raise CommandFailure(f"{', '.join(paths)}: no segment or checkpoint is there.", FAILED)
    damaged, last_path = 0, ""
    if form == "table" and not verify:
        click.echo(HEADINGS)
    starts = rehearsed(disk, data_directories) if verify else iter(())
    rows: Iterator[Row] = chain(rows_of(disk, files, verify, show_secrets), starts)
    has = Offsets()
    if not verify:
        rows = chosen(has.noted(rows), from_offset, to_offset, skip_noop)
    for row in rows:
        timestamp_ms = row.get("timestamp_ms", (row.get("data") or {}).get("timestamp_ms"))
        if times and timestamp_ms is not None:
            row["time"] = time_text(timestamp_ms)
        if camel_case and "data" in row:
            row["data"] = camel_cased(row["data"])
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
    if not verify:
        has.check(from_offset, "--from-offset")
        has.check(to_offset if to_offset < MAX_OFFSET else 0, "--to-offset")
    return OK


def found_at(disk: RealDisk, paths: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The files to dump, and which of the paths are data directories."""
    from os.path import isfile

    from kraftd.metadata_dir.rehearsal import is_data_directory
    from kraftd.metadata_dir.showing.dump import find_dumpable

    files: list[str] = []
    try:
        for path in paths:
            files += [path] if isfile(path) else find_dumpable(disk, [path.rstrip("/") or "/"])
    except FileNotFoundError as error:
        raise CommandFailure(f"{error}: there is no such file or directory.", FAILED) from None
    return files, [path for path in paths if not isfile(path) and is_data_directory(disk, path)]


class Offsets:
    """The lowest and the highest offset in the files that are dumped."""

    def __init__(self) -> None:
        self.first = self.last = -1

    def noted(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            if row["kind"] == "batch":
                self.first = row["base_offset"] if self.first < 0 else min(self.first, row["base_offset"])
                self.last = max(self.last, row["last_offset"])
            yield row

    def check(self, offset: int, option: str) -> None:
        """Raise CommandFailure for an offset beyond the last one; files without a batch have none."""
        if 0 <= self.last < offset:
            has = f"the files have the offsets {self.first} to {self.last}"
            raise CommandFailure(f"{option} {offset} is beyond the end: {has}.", FAILED)


def chosen(rows: Iterator[Row], first: int, last: int, skip_noop: bool) -> Iterator[Row]:
    """The rows between two offsets, both included; damage is always shown. A batch is held back until it is
    known to have more than NoOps."""
    held: Row | None = None
    for row in rows:
        if row["kind"] == "batch":
            within = row["base_offset"] <= last and row["last_offset"] >= first
            held = row if within else None
            if held is not None and not skip_noop:
                yield held
                held = None
        elif row["kind"] == "damage" or row["offset"] is None:  # the latter is a whole file
            yield row
        elif first <= row["offset"] <= last and not (skip_noop and row["type"] == "NoOpRecord"):
            if held is not None:
                yield held
                held = None
            yield row


def camel_cased(value: Any) -> Any:
    """The same with every key in camel case."""
    if isinstance(value, dict):
        return {_camel(key): camel_cased(one) for key, one in value.items()}
    return [camel_cased(one) for one in value] if isinstance(value, list) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def rehearsed(disk: Any, directories: list[str]) -> Iterator[Row]:
    """The faults that would refuse a start of each data directory. Repairs that a start would make go to
    stderr.
    """
    from kraftd.host.checks.rehearsed_start import rehearse_start

    for directory in directories:
        refusals, notes = rehearse_start(disk, directory.rstrip("/") or "/")
        for note in notes:
            click.echo(f"A start would report: {note}", err=True)
        for refusal in refusals:
            yield {"kind": "damage", **refusal._asdict(), "refuses_start": True}


def rows_of(disk: Any, files: list[str], verify: bool, show_secrets: bool) -> Iterator[Row]:
    from kraftd.metadata_dir.showing import dump as storage

    for path in files:
        try:
            if verify:
                yield from storage.verify(disk, path)
            else:
                yield from storage.dump(disk, path, show_secrets=show_secrets)
        except OSError as error:  # the other files are still shown
            reason = f"it cannot be read: {error.strerror or error}"
            yield {"kind": "damage", "path": path, "position": 0, "offset": None, "reason": reason}


def show(row: Row, form: str) -> None:
    """Print one row. A table has no lines for batches, because their records show the same."""
    if form == "json":
        from kraftd.metadata_dir.showing.dump import as_json_line

        click.echo(as_json_line(row).decode(), nl=False)
    elif row["kind"] == "damage":
        offset = "" if row["offset"] is None else f" (offset {row['offset']})"
        click.echo(f"DAMAGED {row['path']}, byte {row['position']}{offset}: {row['reason']}")
    elif row["kind"] != "batch":
        from msgspec.json import encode

        data = row["text"] if "text" in row else encode(row["data"]).decode()
        epoch = row.get("epoch", "")
        time = f"{row['time']}  " if "time" in row else ""
        offset = "" if row["offset"] is None else row["offset"]
        click.echo(f"{offset:>10} {epoch:>6} {row['type']:<30} {row['version']:>7}  {time}{data}")
