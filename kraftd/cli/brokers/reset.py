"""``kraftd groups reset``: other committed offsets for a group without members."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kraftd.cli.brokers.options import of_brokers
from kraftd.cli.cluster_options import json_option
from kraftd.cli.failures import FAILED, OK, CommandFailure
from kraftd.cli.tables import print_lines, print_table
from kraftd.control_characters import visible_cell
from kraftd.history.points import parse_time

if TYPE_CHECKING:
    from kraftd.client.cluster import Cluster
    from kraftd.client.group_offsets import Place
    from kraftd.client.group_reset import Move, Rule

_RULES = ("to_earliest", "to_latest", "to_offset", "to_time", "by_shift", "from_file")

MAX_SHOWN = 100  # characters of a line


@click.command()
@click.argument("group")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="T[:N,...]",
    help="Only this topic, or these partitions of it. Default: all with committed offsets.",
)
@click.option("--to-earliest", is_flag=True, help="To the beginning of the log.")
@click.option("--to-latest", is_flag=True, help="To the end of the log.")
@click.option("--to-offset", type=click.IntRange(0, (1 << 63) - 1), metavar="N", help="To an offset.")
@click.option(
    "--to-time", metavar="TIME", help="To the first record since a time: 2026-03-01T03:12 (UTC), 2h (ago)."
)
@click.option("--by-shift", type=int, metavar="N", help="By N records; back if N is negative.")
@click.option(
    "--from-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="To the offsets of a file, with lines such as orders,0,4711 (topic, partition, offset).",
)
@click.option("--execute", is_flag=True, help="Commit the offsets; without it they are only shown.")
@of_brokers
@json_option
async def reset(
    cluster: Cluster,
    group: str,
    topics: tuple[str, ...],
    execute: bool,
    as_json: bool,
    **rules: object,
) -> int:
    """Reset the offsets of a group without members.

    A line for each partition has the committed offset and the new one, which lies within its log. --execute
    commits them.
    """
    from kraftd.client.group_description import describe_group
    from kraftd.client.group_reset import (
        ResetRefused,
        check_resettable,
        commit_moves,
        committed_offsets,
        plan_reset,
    )

    rule, named = _parse_rule(rules, topics)
    chosen = dict(map(_parse_topic, topics))
    state = await describe_group(cluster, group)
    committed = committed_offsets(state)
    try:
        check_resettable(state)
        if rule is not None:
            places = await _places(cluster, chosen) if chosen else committed
            named = dict.fromkeys(places, rule)
        else:
            await _check_places(cluster, named)
        if not named:
            raise ResetRefused(f"Group {group} has no committed offsets: choose topics with --topic.")
        moves = await plan_reset(cluster, committed, named)
    except ResetRefused as error:
        raise CommandFailure(str(error), FAILED) from None
    if execute:
        await commit_moves(cluster, state, moves)
    _show(group, moves, execute, as_json)
    return OK


def _parse_rule(
    rules: Mapping[str, object], topics: tuple[str, ...]
) -> tuple[Rule | None, dict[Place, Rule]]:
    """The rule for all partitions, or None and those of a file."""
    from kraftd.client.group_reset import Rule
    from kraftd.client.partition_reader import EARLIEST, LATEST

    given = [name for name in _RULES if rules[name] is not None and rules[name] is not False]
    if len(given) != 1:
        options = ", ".join("--" + name.replace("_", "-") for name in _RULES)
        raise click.UsageError(f"Give exactly one of {options}.")
    (name,) = given
    value = rules[name]
    if isinstance(value, Path):
        if topics:
            raise click.UsageError("--from-file names its topics itself: leave out --topic.")
        return None, _read_file(value)
    if name == "to_time":
        return Rule(time_ms=_parse_time(str(value))), {}
    if name == "to_offset" or name == "by_shift":
        number = int(str(value))
        return (Rule(offset=number) if name == "to_offset" else Rule(shift_count=number)), {}
    return Rule(time_ms=EARLIEST if name == "to_earliest" else LATEST), {}


def _parse_time(text: str) -> int:
    try:
        return parse_time(text, time.time())
    except ValueError as error:
        raise click.UsageError(f"--to-time: {error}.") from None


def _parse_topic(text: str) -> tuple[str, tuple[int, ...]]:
    """A topic and its partitions, none for all of them."""
    topic, colon, indexes = text.partition(":")
    numbers = indexes.split(",") if colon else []
    if not topic or not all(one.isascii() and one.isdecimal() for one in numbers):
        raise click.UsageError(f"--topic {text}: write it as orders, or as orders:0,2.")
    return topic, tuple(map(int, numbers))


async def _check_places(cluster: Cluster, places: Iterable[Place]) -> None:
    """Raise CommandFailure if one of the partitions does not exist."""
    places = list(places)
    await cluster.refresh(list(dict.fromkeys(topic for topic, _ in places)))
    for topic, index in places:
        if index not in cluster.cache.topics[topic].partitions:
            raise CommandFailure(f"{topic} has no partition {index}.", FAILED)


async def _places(cluster: Cluster, chosen: Mapping[str, tuple[int, ...]]) -> list[Place]:
    await cluster.refresh(list(chosen))
    places: list[Place] = []
    for topic, indexes in chosen.items():
        known = cluster.cache.topics[topic].partitions
        unknown = [index for index in indexes if index not in known]
        if unknown:
            raise CommandFailure(f"{topic} has no partition {unknown[0]}.", FAILED)
        places.extend((topic, index) for index in indexes or known)
    return places


def _read_file(path: Path) -> dict[Place, Rule]:
    from kraftd.client.group_reset import Rule

    found: dict[Place, Rule] = {}
    with path.open(newline="", encoding="utf-8", errors="surrogateescape") as lines:
        for number, row in enumerate(csv.reader(lines), 1):
            if not row:
                continue
            if any(not one.isascii() and any("\udc80" <= each <= "\udcff" for each in one) for one in row):
                raise click.UsageError(f"{path}, line {number}: it is not text in UTF-8.")
            row = [row[0], *(one.strip(" ") for one in row[1:])]
            if len(row) != 3 or not all(
                one.isascii() and one.isdecimal() and len(one) < 19 for one in row[1:]
            ):
                shown = visible_cell(",".join(row))[:MAX_SHOWN]
                raise click.UsageError(f"{path}, line {number}: {shown} is not topic,partition,offset.")
            place = (row[0], int(row[1]))
            if place in found:
                raise click.UsageError(f"{path}, line {number}: {place[0]},{place[1]} is there twice.")
            found[place] = Rule(offset=int(row[2]))
    if not found:
        raise click.UsageError(f"{path}: it names no partition.")
    return found


def _show(group: str, moves: Iterable[Move], executed: bool, as_json: bool) -> None:
    if as_json:
        print_lines(json.dumps({**one._asdict(), "executed": executed}) for one in moves)
        return
    print_table(("TOPIC", "PARTITION", "COMMITTED", "NEW", "CHANGE", "NOTE"), [_row(one) for one in moves])
    if not executed:
        click.echo(f"Nothing was changed. --execute commits these offsets for group {group}.", err=True)


def _row(one: Move) -> tuple[str, ...]:
    before = "-" if one.committed is None else str(one.committed)
    change = "-" if one.committed is None else f"{one.offset - one.committed:+d}"
    side = "beginning" if one.offset > one.wanted else "end"
    note = "" if one.offset == one.wanted else f"{one.wanted} is outside of the log: its {side}"
    return (one.topic, str(one.partition), before, str(one.offset), change, note)
