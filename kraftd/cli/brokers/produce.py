"""``kraftd produce``: lines of standard input as records of a topic."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from kraftd.cli.brokers.options import of_brokers
from kraftd.cli.cluster_options import json_option
from kraftd.cli.failures import OK

if TYPE_CHECKING:
    from kraftd.client.cluster import Cluster
    from kraftd.wire.keyed_records import KeyedRecord

RECORDS_PER_BATCH = 500
BYTES_PER_BATCH = 512 << 10


@click.command()
@click.argument("topic")
@of_brokers
@click.option("--key", help="The key of every record. Default: none.")
@click.option("--key-separator", metavar="TEXT", help="What stands between key and value in each line.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="A header of every record; may be repeated.",
)
@click.option(
    "--partition", type=click.IntRange(min=0), help="The partition. Default: that of the key, else any."
)
@json_option
async def produce(
    cluster: Cluster,
    topic: str,
    key: str | None,
    key_separator: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    as_json: bool,
) -> int:
    """Write lines of standard input as records of a topic.

    Each batch of records is acknowledged by all in-sync replicas.

    With --json, each line is an object with key, value, headers, partition and timestamp_ms, as
    `kraftd consume --json` prints it. For each batch an object with partition and first offset is printed.
    """
    import asyncio

    from kraftd.cli.brokers.records_as_text import BadLine, from_json, from_line, header_of
    from kraftd.client.producer import Producer, Written
    from kraftd.history.names import count as counted

    if key is not None and key_separator is not None:
        raise click.UsageError("Give either --key or --key-separator.")
    try:
        common = tuple(header_of(one) for one in headers)
    except BadLine as error:
        raise click.BadParameter(str(error), param_hint="--header") from None

    def record_of(number: int, line: str) -> tuple[KeyedRecord, int | None]:
        try:
            found, named = from_json(line) if as_json else (from_line(line, key_separator, key), None)
        except BadLine as error:
            raise click.UsageError(f"Line {number}: {error}.") from None
        return found._replace(headers=common + found.headers), partition if named is None else named

    producer = Producer(cluster, topic)
    await producer.partition_count()
    if sys.stdin.isatty():
        click.echo(f"Each line becomes a record of {topic}. End with Ctrl-D.", err=True)
    count = 0
    numbered = enumerate(sys.stdin, 1)
    while some := await asyncio.to_thread(_next_lines, numbered):
        by_partition: dict[int | None, list[KeyedRecord]] = {}
        for number, line in some:
            record, where = record_of(number, line)
            by_partition.setdefault(where, []).append(record)
        written: list[Written] = []
        for where, records in by_partition.items():
            written += await producer.send(records, where)
        count += len(some)
        if as_json:
            _print(written)
    if not as_json:
        click.echo(f"{counted(count, 'record')} written to {topic}.", err=True)
    return OK


def _next_lines(numbered: Iterator[tuple[int, str]]) -> list[tuple[int, str]]:
    """The next lines, without their ends: from a person one, from a file a batch of them."""
    some: list[tuple[int, str]] = []
    size_bytes = 0
    is_person = sys.stdin.isatty()
    for number, line in numbered:
        some.append((number, line.rstrip("\r\n")))
        size_bytes += len(line)
        if is_person or len(some) >= RECORDS_PER_BATCH or size_bytes >= BYTES_PER_BATCH:
            break
    return some


def _print(written: Iterable[object]) -> None:
    import json

    from kraftd.client.producer import Written

    for one in written:
        assert isinstance(one, Written)
        click.echo(json.dumps(one._asdict()))
