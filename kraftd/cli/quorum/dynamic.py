"""``kraftd quorum make-dynamic``: kraft.version 0 to 1 (KIP-853), examined before it is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from kraftd.cli.cluster_options import command_config_option, run
from kraftd.cli.failures import FAILED, CommandFailure
from kraftd.cli.quorum.leader import POLL_S, Quorum, ask_leader, endpoint_address, leaders_time_ms
from kraftd.cli.quorum.voters import quorum_option, timeout_option
from kraftd.named_tuple import NamedTuple

if TYPE_CHECKING:
    from kraftd.cli.doctor.findings import Finding

DYNAMIC = 1  # the kraft.version whose voters are in the log
SILENT_MS = 10_000
NOT_YET = "INVALID_UPDATE_VERSION"  # the error of a leader that does not know its voters' directories yet
SURVEY_INTERVAL_S = 0.5  # between two surveys, while the obstacle passes by itself
VOTERS, SERVERS = "controller.quorum.voters", "controller.quorum.bootstrap.servers"


class Seen(NamedTuple):
    """The answers of the leader and its voters.

    `supports` and `registered` are ids; `refusal` is the leader's.
    """

    quorum: Quorum
    kraft_version: int
    supports: frozenset[int]
    unreachable: dict[int, str]  # voters that could not be asked, with the reason
    registered: frozenset[int]
    refusal: str | None


@click.command("make-dynamic")
@command_config_option
@quorum_option
@click.option(
    "-c",
    "--config",
    "files",
    multiple=True,
    metavar="FILE",
    help="A .properties file of a node of this cluster, to say what to change in it; may be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Run the checks, and change nothing.")
@timeout_option
def make_dynamic(bootstrap: str, files: Sequence[str], dry_run: bool, timeout_s: float) -> int:
    """Make a static quorum dynamic (kraft.version 1).

    The voters of a dynamic quorum can change. The command first checks that every voter answers, is
    registered and supports the change, and that the leader would accept it. A new leader knows its voters
    after some seconds; the command waits for that. Then it sends the change, and waits until the leader knows
    the directory of each voter.

    At the end it says what to change in each node's file. Do not change a file before: without static voters
    a node does not start while the quorum is static. The change cannot be undone. The exit code is 1 if a
    check fails.
    """
    from kraftd.cli.doctor.command import show

    seen = run(survey_until_ready(bootstrap, timeout_s))
    found = [*judge(seen), *(finding for file in files for finding in judge_file(file, seen))]
    show(found)
    if any(one.is_wrong and one.area == "quorum" for one in found):
        raise CommandFailure("Nothing was changed: correct the above first.", FAILED)
    if seen.kraft_version >= DYNAMIC:
        click.echo("The quorum is dynamic already (kraft.version 1).")
    elif dry_run:
        click.echo("The quorum could become dynamic; nothing was changed.")
    else:
        run(change(bootstrap, timeout_s))
        click.echo("The quorum is dynamic (kraft.version 1).")
    where = "In" if not dry_run or seen.kraft_version >= DYNAMIC else "Change the files only then: in"
    click.echo(
        f"{where} the file of every controller and broker, replace {VOTERS} by\n"
        f"  {SERVERS}={','.join(addresses(seen.quorum))}\n"
        "and restart one after the other, each once the one before is level (kraftd quorum describe)."
    )
    return 0


async def survey_until_ready(bootstrap: str, timeout_s: float) -> Seen:
    """Repeat the survey while the only obstacle passes by itself. Raises CommandFailure, Unreachable.

    Each voter reports its directory to a new leader once a fetch timeout after the election.
    """
    import asyncio
    import time

    deadline_s = time.monotonic() + timeout_s
    seen, has_reported = await survey(bootstrap, timeout_s), False
    while passes_by_itself(seen) and time.monotonic() + SURVEY_INTERVAL_S < deadline_s:
        if not has_reported:
            click.echo(
                f"Waiting until the voters have reported to the leader ({timeout_s:g} s at most).",
                err=True,
            )
            has_reported = True
        await asyncio.sleep(SURVEY_INTERVAL_S)
        seen = await survey(bootstrap, timeout_s)
    return seen


def passes_by_itself(seen: Seen) -> bool:
    """Return whether the only obstacle is what running voters have yet to report to the leader."""
    voters = {one.replica_id for one in seen.quorum.partition.current_voters}
    if not voters <= seen.supports or silent_voters(seen):
        return False
    if seen.refusal is None:
        return not voters <= seen.registered
    return seen.refusal.startswith(NOT_YET)


def silent_voters(seen: Seen) -> set[int]:
    """The voters that have not fetched within SILENT_MS."""
    partition = seen.quorum.partition
    now_ms = leaders_time_ms(partition)
    if now_ms is None:
        return set()
    return {
        one.replica_id for one in partition.current_voters if now_ms - one.last_fetch_timestamp > SILENT_MS
    }


async def survey(bootstrap: str, timeout_s: float) -> Seen:
    """Ask the leader and each voter. Raises CommandFailure, Unreachable."""
    from kraftd.cli.features import KRAFT_VERSION, UPGRADE, api_versions, feature_levels, update
    from kraftd.cli.quorum.registrations import registrations
    from kraftd.client.failures import ClientFailure

    quorum = await ask_leader(bootstrap, timeout_s)
    own = feature_levels(await api_versions(quorum.leaders_address, timeout_s)).get(KRAFT_VERSION)
    supports: set[int] = set()
    silent: dict[int, str] = {}
    for voter in quorum.partition.current_voters:
        where = [quorum.leaders_address] if voter.replica_id == quorum.partition.leader_id else []
        where += [endpoint_address(one) for one in quorum.endpoints.get(voter.replica_id, ())]
        if not where:
            silent[voter.replica_id] = "the leader does not name its address, as before Kafka 3.9"
            continue
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
    """The obstacles at the quorum, and what is in order."""
    from kraftd.cli.doctor.findings import ok, problem

    silent = silent_voters(seen)
    for voter in seen.quorum.partition.current_voters:
        subject, wrong = f"voter {voter.replica_id}", False
        if voter.replica_id in seen.unreachable:
            wrong = True
            yield problem(
                "quorum", subject, f"cannot be asked: {seen.unreachable[voter.replica_id]}", "start it"
            )
        elif voter.replica_id in silent:
            wrong = True
            yield problem("quorum", subject, "does not fetch from the leader", "see the log of that node")
        elif voter.replica_id not in seen.supports:
            wrong = True
            yield problem(
                "quorum", subject, "does not support kraft.version 1", "upgrade it to Kafka 3.9 or later"
            )
        if voter.replica_id not in seen.registered:
            wrong = True
            text = "is not registered, so its feature levels are unknown"
            yield problem("quorum", subject, text, "wait until it has found the leader, or restart it")
        if not wrong:
            yield ok("quorum", subject, "runs, is registered and supports kraft.version 1")
    if seen.refusal is not None:
        remedy = "each voter reports its directory to a new leader within seconds: see the logs of the voters"
        yield problem("quorum", "leader", f"refuses it: {seen.refusal}", remedy)


def judge_file(file: str, seen: Seen) -> Iterator[Finding]:
    """What to change in a node's file once the quorum is dynamic.

    Apache Kafka's nodes end with a fatal error at the start if their file does not name the voters of a
    static quorum.
    """
    from kraftd.cli.doctor.findings import note, ok, problem, warning
    from kraftd.config.load import MAX_FILE_BYTES
    from kraftd.configdef.properties import parse
    from kraftd.input_file import read_input_file

    servers = ",".join(addresses(seen.quorum))
    try:
        keys = parse(read_input_file(file, MAX_FILE_BYTES).decode("utf-8", "replace"))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        yield problem("file", file, f"cannot be read: {why}", "correct the path")
        return
    lines = {one.key: one for one in keys}
    if seen.kraft_version < DYNAMIC:
        if VOTERS in lines:
            later = f"leave it until the quorum is dynamic; then replace it by {SERVERS}={servers}"
            yield note("file", file, f"has {VOTERS}", later)
        else:
            restore = f"have {VOTERS} in it until the quorum is dynamic"
            yield problem("file", file, f"has no {VOTERS}, and the quorum is static", restore)
    elif VOTERS in lines:
        yield warning(
            "file", file, f"still has {VOTERS}", f"replace it by {SERVERS}={servers}, then restart the node"
        )
    elif SERVERS not in lines:
        yield warning("file", file, f"has no {SERVERS}", f"set it to {servers}, then restart the node")
    else:
        yield ok("file", file, f"has {SERVERS} and no {VOTERS}")


def addresses(quorum: Quorum) -> list[str]:
    """The voters' addresses, HOST:PORT each."""
    return [where[0].partition("://")[2] for _, where in sorted(quorum.endpoints.items()) if where]


async def change(bootstrap: str, timeout_s: float) -> None:
    """Have the leader raise kraft.version, and wait until it knows each voter's directory. Raises
    CommandFailure.
    """
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
            raise CommandFailure(
                "The quorum is dynamic, but the leader does not report each voter's directory yet.", FAILED
            )
        await asyncio.sleep(POLL_S)
