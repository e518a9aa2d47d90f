"""``kraftd transactions``: the transactions of a cluster, which of them hang and why, and their abort."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from kraftd.cli.brokers.options import of_brokers, show_missing
from kraftd.cli.cluster_options import ClusterGroup, json_option
from kraftd.cli.failures import FAILED, OK, CommandFailure
from kraftd.cli.tables import print_lines, print_table
from kraftd.control_characters import visible_cell
from kraftd.types import METADATA_TOPIC

if TYPE_CHECKING:
    from kraftd.client.cluster import Cluster
    from kraftd.client.open_transactions import IdState, Judged, OpenTransaction


@click.group(cls=ClusterGroup)
def transactions() -> None:
    """Show the transactions of a cluster, and abort one."""


@transactions.command("list")
@click.option("--state", "states", multiple=True, metavar="S", help="Only these states, such as Ongoing.")
@click.option("--producer-id", "ids", multiple=True, type=int, metavar="N", help="Only these producer ids.")
@of_brokers
@json_option
async def list_command(cluster: Cluster, states: tuple[str, ...], ids: tuple[int, ...], as_json: bool) -> int:
    """List the transactional ids of all coordinators.

    The age is that of an open transaction.
    """
    from kraftd.client.open_transactions import duration_text
    from kraftd.client.transactions import describe_all, list_transactions

    listed, unasked = await list_transactions(cluster, states, ids)
    now_ms = _now_ms()
    ages = {one.transactional_id: one.age_ms(now_ms) for one in await describe_all(cluster, listed)}
    listed.sort()
    if as_json:
        print_lines(json.dumps({**one._asdict(), "age_ms": ages.get(one.transactional_id)}) for one in listed)
    elif listed:
        headings = ("TRANSACTIONAL ID", "STATE", "PRODUCER", "COORDINATOR", "AGE")
        texts = [
            "-" if (age := ages.get(one.transactional_id)) is None else duration_text(age) for one in listed
        ]
        print_table(headings, [(*map(str, one), text) for one, text in zip(listed, texts, strict=True)])
    elif not unasked:
        click.echo("There are no transactional ids.", err=True)
    return show_missing(unasked, "transactional ids")


@transactions.command()
@click.argument("transactional_ids", metavar="ID...", nargs=-1, required=True)
@of_brokers
@json_option
async def describe(cluster: Cluster, transactional_ids: tuple[str, ...], as_json: bool) -> int:
    """Describe transactional ids, and what is to come.

    A line for each partition without a marker has its leader, and the first offset of the transaction there.
    """
    from kraftd.client.transactions import describe_transaction, find_open

    code = OK
    for name in transactional_ids:
        state = await describe_transaction(cluster, name)
        if state is None:
            code = FAILED
            click.echo(f"There is no transactional id {visible_cell(name)}.", err=True)
            continue
        if state.partitions:
            await cluster.refresh(sorted({topic for topic, _ in state.partitions}))
        found, _ = await find_open(cluster, state.partitions)
        starts = {(one.topic, one.partition): one for one in found if one.producer_id == state.producer_id}
        rows = [_partition_row(cluster, place, starts.get(place)) for place in sorted(state.partitions)]
        if as_json:
            click.echo(json.dumps({**_as_dict(state), "partitions": rows}))
        else:
            _show(state, rows)
    return code


@transactions.command("open")
@click.argument("topic", nargs=-1)
@click.option("--hanging", is_flag=True, help="Show only what hangs.")
@of_brokers
@json_option
async def open_command(cluster: Cluster, topic: tuple[str, ...], hanging: bool, as_json: bool) -> int:
    """List what is open in partitions, what hangs, and why.

    TOPIC: only these topics. A transaction hangs if no coordinator will end it: readers of committed records
    wait for good. The command then ends with exit code 1. The age is that of its newest record.
    """
    from kraftd.client.transactions import find_open, judge_open

    await cluster.refresh(list(topic) or None)
    names = topic or tuple(name for name in cluster.cache.topics if name != METADATA_TOPIC)  # it has none
    places = [(name, index) for name in names for index in cluster.cache.topics[name].partitions]
    found, missing = await find_open(cluster, places)
    now_ms = _now_ms()
    judged = await judge_open(cluster, found, now_ms)
    hang_count = sum(one.hangs for one in judged)
    shown = sorted((one for one in judged if one.hangs or not hanging), key=lambda one: one.open.last_ms)
    if as_json:
        print_lines(json.dumps(_judged_dict(one, now_ms)) for one in shown)
    elif shown:
        headings = ("TOPIC", "PARTITION", "START", "PRODUCER", "EPOCH", "AGE", "HANGS", "WHY")
        styles = ["bold red" if one.hangs else "" for one in shown]
        print_table(headings, [_judged_row(one, now_ms) for one in shown], styles)
    else:
        click.echo(f"No transaction {'hangs' if hanging else 'is open'}.", err=True)
    for one in missing:
        click.echo(f"{one.topic}-{one.partition} could not be asked: {one.why}.", err=True)
    return FAILED if hang_count or missing else OK


@transactions.command()
@click.argument("transactional_ids", metavar="[ID]...", nargs=-1)
@click.option("--topic", metavar="T", help="The topic of a transaction that hangs.")
@click.option("--partition", type=click.IntRange(0), metavar="N", help="Its partition.")
@click.option("--start-offset", type=click.IntRange(0), metavar="N", help="Its first offset there.")
@click.option("--force", is_flag=True, help="Also if its coordinator would still end it.")
@of_brokers
async def abort(
    cluster: Cluster,
    transactional_ids: tuple[str, ...],
    topic: str | None,
    partition: int | None,
    start_offset: int | None,
    force: bool,
) -> int:
    """Abort transactions, by their ids or in a partition.

    Of an ID, the whole transaction is aborted, and its producer fenced. A transaction that hangs has no
    coordinator to do so: give its place, as `kraftd transactions open` shows it. The marker is then written
    in that partition alone.
    """
    is_place = topic is not None and partition is not None and start_offset is not None
    if bool(transactional_ids) is is_place or (
        not is_place and (topic, partition, start_offset) != (None,) * 3
    ):
        raise click.UsageError("Give either IDs, or --topic, --partition and --start-offset.")
    if topic is not None and partition is not None and start_offset is not None:
        return await _abort_in_partition(cluster, topic, partition, start_offset, force)
    failed = False
    for name in transactional_ids:
        done, text = await _abort_id(cluster, name)
        failed |= not done
        click.echo(f"{name}: {text}.", err=not done)
    return FAILED if failed else OK


async def _abort_id(cluster: Cluster, name: str) -> tuple[bool, str]:
    """Abort the transaction of an id; whether it was, and a text."""
    from kraftd.client.failures import Refused
    from kraftd.client.open_transactions import DECIDED
    from kraftd.client.transactions import abort_by_fencing, describe_transaction

    state = await describe_transaction(cluster, name)
    if state is None:
        return False, "there is no such transactional id"
    if state.state in DECIDED:
        return False, f"it is {DECIDED[state.state]} already, and waits for its markers"
    if not state.is_open:
        return False, f"no transaction is open ({state.state})"
    try:
        producer_id, epoch = await abort_by_fencing(cluster, state)
    except Refused as error:
        return False, f"not aborted: {error}"
    was = f"producer {state.producer_id} of epoch {state.producer_epoch}"
    return True, f"aborted; {was} is fenced, the id has producer {producer_id} of epoch {epoch}"


async def _abort_in_partition(
    cluster: Cluster, topic: str, partition: int, start_offset: int, force: bool
) -> int:
    from kraftd.client.transactions import abort_in_partition, find_open, judge_open

    place = f"{topic}-{partition}"
    await cluster.refresh([topic])
    found, missing = await find_open(cluster, [(topic, partition)])
    if missing:
        raise CommandFailure(f"{place} could not be asked: {missing[0].why}.", FAILED)
    chosen = [one for one in found if one.start_offset == start_offset]
    judged = await judge_open(cluster, chosen, _now_ms())
    if not judged:
        raise CommandFailure(
            f"No transaction that begins at offset {start_offset} is open in {place}.", FAILED
        )
    (one,) = judged
    if one.owner is not None and not one.hangs and not force:
        raise CommandFailure(
            f"It does not hang: it is of {one.owner.transactional_id}. Abort that id, which aborts it in all "
            "of its partitions; --force aborts it in this one alone.",
            FAILED,
        )
    await abort_in_partition(cluster, one.open)
    click.echo(f"{place}: aborted from offset {start_offset} on, of producer {one.open.producer_id}.")
    return OK


def _now_ms() -> int:
    return int(time.time() * 1000)


def _show(state: IdState, rows: Sequence[dict[str, Any]]) -> None:
    from kraftd.client.open_transactions import duration_text, outlook

    now_ms = _now_ms()
    age_ms = state.age_ms(now_ms)
    age = "" if age_ms is None else f", open for {duration_text(age_ms)}"
    producer = f"producer {state.producer_id} of epoch {state.producer_epoch}"
    click.echo(
        f"Transactional id {state.transactional_id}: {state.state}{age}, {producer}, "
        f"timeout {duration_text(state.timeout_ms)}, coordinator {state.coordinator}"
    )
    click.echo(f"Outlook: {outlook(state, now_ms)}")
    if rows:
        headings = ("TOPIC", "PARTITION", "LEADER", "START")
        print_table(headings, [["-" if one is None else str(one) for one in row.values()] for row in rows])


def _partition_row(cluster: Cluster, place: tuple[str, int], found: OpenTransaction | None) -> dict[str, Any]:
    leader = cluster.cache.leader(*place)
    return {
        "topic": place[0],
        "partition": place[1],
        "leader": None if leader is None or leader.id < 0 else leader.id,
        "start_offset": None if found is None else found.start_offset,
    }


def _as_dict(state: IdState) -> dict[str, Any]:
    from kraftd.client.open_transactions import outlook

    now_ms = _now_ms()
    return {
        "transactional_id": state.transactional_id,
        "state": state.state,
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "timeout_ms": state.timeout_ms,
        "start_ms": state.start_ms if state.start_ms >= 0 else None,
        "age_ms": state.age_ms(now_ms),
        "coordinator": state.coordinator,
        "outlook": outlook(state, now_ms),
    }


def _judged_row(one: Judged, now_ms: int) -> tuple[str, ...]:
    from kraftd.client.open_transactions import duration_text

    numbers = (one.open.partition, one.open.start_offset, one.open.producer_id, one.open.producer_epoch)
    age = duration_text(max(0, now_ms - one.open.last_ms))
    return (one.open.topic, *map(str, numbers), age, "yes" if one.hangs else "no", one.why)


def _judged_dict(one: Judged, now_ms: int) -> dict[str, Any]:
    return {
        "topic": one.open.topic,
        "partition": one.open.partition,
        "start_offset": one.open.start_offset,
        "producer_id": one.open.producer_id,
        "producer_epoch": one.open.producer_epoch,
        "last_ms": one.open.last_ms,
        "age_ms": max(0, now_ms - one.open.last_ms),
        "transactional_id": None if one.owner is None else one.owner.transactional_id,
        "hangs": one.hangs,
        "why": one.why,
    }
