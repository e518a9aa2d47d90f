"""``kraftd quorum make-dynamic``: kraft.version 0 to 1 (KIP-853), examined before it is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from kraftd.cli.cluster_options import command_config_option, run
from kraftd.cli.failures import FAILED, CommandFailure
from kraftd.cli.leader import POLL_S, Quorum, ask_leader, leaders_time_ms
from kraftd.cli.voters import bootstrap_option, timeout_option

if TYPE_CHECKING:
    from kraftd.cli.doctor.findings import Finding

DYNAMIC = 1  # the kraft.version whose voters are in the log
SILENT_MS = 10_000
VOTERS, SERVERS = "controller.quorum.voters", "controller.quorum.bootstrap.servers"


class Seen(NamedTuple):
    """What the leader and its voters tell. `supports` and `registered` are ids; `refusal` is the leader's."""

    quorum: Quorum
    kraft_version: int
    supports: frozenset[int]
    asked: dict[int, str]  # voters that could not be asked, with the reason
    registered: frozenset[int]
    refusal: str | None


@click.command("make-dynamic")
@command_config_option
@bootstrap_option
@click.option(
    "-c",
    "--config",
    "files",
    multiple=True,
    metavar="FILE",
    help="A .properties file of a node of this cluster; may be given several times.",
)
@click.option("--dry-run", is_flag=True, help="Look at everything, and change nothing.")
@timeout_option
def make_dynamic(bootstrap: str, files: Sequence[str], dry_run: bool, timeout_s: float) -> int:
    """Make a static quorum dynamic (kraft.version 1), so that its voters can change.

    First it looks at what could go wrong: voters that are silent, not registered, or do not support it, and
    what the leader has against it. Then it asks the leader, waits until each voter's directory is known, and
    says what to change in each file. There is no way back. The exit code is 1 where something is in the way.
    """
    from kraftd.cli.doctor.command import show

    seen = run(look(bootstrap, timeout_s))
    found = [*judge(seen), *(finding for file in files for finding in judge_file(file, seen))]
    show(found)
    if any(one.is_wrong and one.area == "quorum" for one in found):
        raise CommandFailure("Nothing was changed: mend the above first.", FAILED)
    if seen.kraft_version >= DYNAMIC:
        click.echo("The quorum is dynamic already (kraft.version 1).")
    elif dry_run:
        click.echo("The quorum could become dynamic; nothing was changed.")
    else:
        run(change(bootstrap, timeout_s))
        click.echo("The quorum is dynamic (kraft.version 1).")
    servers = ",".join(addresses(seen.quorum))
    click.echo(
        f"In the file of every controller and broker, replace {VOTERS} by\n  {SERVERS}={servers}\n"
        "and restart one after the other, each once the one before is level (kraftd quorum describe)."
    )
    return 0


async def look(bootstrap: str, timeout_s: float) -> Seen:
    """Ask the leader and each voter. Raises CommandFailure, Unreachable."""
    from kraftd.cli.features import KRAFT_VERSION, UPGRADE, api_versions, feature_levels, update
    from kraftd.cli.registrations import registrations
    from kraftd.client.failures import ClientFailure
    from kraftd.configdef.addresses import parse_host_port

    quorum = await ask_leader(bootstrap, timeout_s)
    own = feature_levels(await api_versions(quorum.address, timeout_s)).get(KRAFT_VERSION)
    supports: set[int] = set()
    silent: dict[int, str] = {}
    for voter in quorum.partition.current_voters:
        where = [quorum.address] if voter.replica_id == quorum.partition.leader_id else []
        where += [parse_host_port(one.partition("://")[2]) for one in quorum.endpoints[voter.replica_id]]
        try:
            answer = await api_versions(where[0], timeout_s)
        except ClientFailure as failure:
            silent[voter.replica_id] = str(failure)
            continue
        levels = feature_levels(answer).get(KRAFT_VERSION)
        if levels is not None and levels.high >= DYNAMIC:
            supports.add(voter.replica_id)
    registered = frozenset(one.controller_id for one in await registrations(bootstrap, timeout_s))
    refusal = None
    kraft_version = 0 if own is None else own.finalized
    if kraft_version < DYNAMIC:
        try:
            await update(quorum, timeout_s, {KRAFT_VERSION: DYNAMIC}, UPGRADE, dry_run=True)
        except CommandFailure as failure:
            refusal = str(failure)
    return Seen(quorum, kraft_version, frozenset(supports), silent, registered, refusal)


def judge(seen: Seen) -> Iterator[Finding]:
    """What stands in the way at the quorum, and what is well."""
    from kraftd.cli.doctor.findings import ok, problem

    now_ms = leaders_time_ms(seen.quorum.partition)
    for voter in seen.quorum.partition.current_voters:
        subject, wrong = f"voter {voter.replica_id}", False
        silent_ms = 0 if now_ms is None else now_ms - voter.last_fetch_timestamp
        if voter.replica_id in seen.asked:
            wrong = True
            yield problem("quorum", subject, f"cannot be asked: {seen.asked[voter.replica_id]}", "start it")
        elif silent_ms > SILENT_MS:
            wrong = True
            yield problem("quorum", subject, "does not fetch from the leader", "see the log of that node")
        elif voter.replica_id not in seen.supports:
            wrong = True
            yield problem(
                "quorum", subject, "does not support kraft.version 1", "upgrade it to Kafka 3.9 or later"
            )
        if voter.replica_id not in seen.registered:
            wrong = True
            text = "is not registered: what it supports is not known"
            yield problem("quorum", subject, text, "wait until it has found the leader, or restart it")
        if not wrong:
            yield ok("quorum", subject, "runs, is registered and supports kraft.version 1")
    if seen.refusal is not None:
        remedy = (
            "a voter tells the leader its directory within seconds of its start: try again, or restart it"
        )
        yield problem("quorum", "leader", f"refuses it: {seen.refusal}", remedy)


def judge_file(file: str, seen: Seen) -> Iterator[Finding]:
    """What is to be changed in a node's file. It holds the change up no more than any other file does."""
    from kraftd.cli.doctor.findings import ok, problem, warning
    from kraftd.configdef.properties import parse

    servers = ",".join(addresses(seen.quorum))
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:
            keys = parse(opened.read())
    except (OSError, ValueError) as error:
        yield problem("file", file, f"cannot be read: {error}", "correct the path")
        return
    lines = {one.key: one for one in keys}
    if VOTERS in lines:
        yield warning(
            "file", file, f"still has {VOTERS}", f"replace it by {SERVERS}={servers}, then restart the node"
        )
    elif SERVERS not in lines:
        yield warning("file", file, f"has no {SERVERS}", f"set it to {servers}, then restart the node")
    else:
        yield ok("file", file, f"has {SERVERS} and no {VOTERS}")


def addresses(quorum: Quorum) -> list[str]:
    """Where the voters are, HOST:PORT each."""
    return [where[0].partition("://")[2] for _, where in sorted(quorum.endpoints.items()) if where]


async def change(bootstrap: str, timeout_s: float) -> None:
    """Have the leader do it, and wait until it knows the directory of every voter. Raises CommandFailure."""
    import asyncio
    import time

    from kraftd.cli.features import KRAFT_VERSION, UPGRADE, update

    deadline_s = time.monotonic() + timeout_s
    await update(
        await ask_leader(bootstrap, timeout_s), timeout_s, {KRAFT_VERSION: DYNAMIC}, UPGRADE, dry_run=False
    )
    while True:
        quorum = await ask_leader(bootstrap, timeout_s)
        if all(any(one.replica_directory_id) for one in quorum.partition.current_voters):
            return
        if time.monotonic() > deadline_s:
            raise CommandFailure("It is dynamic, and the leader tells no directory of a voter yet.", FAILED)
        await asyncio.sleep(POLL_S)
