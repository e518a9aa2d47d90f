"""Queries the leader for the quorum, its clock, and the registrations."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping

from kraftd.cli.doctor.findings import Finding, note, ok, problem
from kraftd.cli.doctor.judge_peers import Answer, is_broker
from kraftd.cli.doctor.judge_quorum import (
    Member,
    judge_brokers,
    judge_clock,
    judge_duplicate_ids,
    judge_lag,
    judge_membership,
    judge_refused,
    judge_registrations,
    judge_voters,
)
from kraftd.cli.doctor.peer_probe import Address
from kraftd.cli.failures import CommandFailure
from kraftd.cli.quorum.leader import NoLeader, Quorum, ask_leader, connect, describe_quorum, endpoint_address
from kraftd.cli.quorum.registrations import Registration, registrations
from kraftd.client.failures import ClientFailure, NoAnswer
from kraftd.named_tuple import NamedTuple
from kraftd.types import address_text

DEFAULT_SESSION_TIMEOUT_MS = 9_000
GETS_NONE = "and gets no answer in time to what it forwards to the controllers"
NAMES_NONE = "and names no controllers"
NAME_THEM = "examine the controllers that its file names: kraftd doctor --bootstrap HOST:PORT,..."


class Leader(NamedTuple):
    """The leader's answer, the times (ms) of this machine's clock around it, and the registered nodes."""

    quorum: Quorum
    sent_ms: float
    answered_ms: float
    registered: list[Registration]


async def controllers_behind(
    answers: Mapping[Address, Answer], timeout_s: float, found: list[Finding]
) -> list[Address]:
    """The addresses that answered so, with the controllers that brokers name in place of these brokers.

    What a broker answers is noted in `found`, or why it names no controllers.
    """
    controllers: dict[Address, None] = {}
    for address, answer in answers.items():
        if answer.failure or not is_broker(answer):
            controllers[address] = None
            continue
        try:
            quorum = await ask_leader(address_text(address), timeout_s)
            named = [endpoint_address(own[0]) for own in quorum.endpoints.values() if own]
        except NoAnswer:
            found.append(problem("peers", answer.at, f"a broker answers, {GETS_NONE}", NAME_THEM))
            continue
        except (CommandFailure, ClientFailure) as failure:
            why = " ".join(str(failure).split()).removeprefix(f"{answer.at}: ")
            found.append(problem("peers", answer.at, f"a broker answers, {NAMES_NONE}: {why}", NAME_THEM))
            continue
        if named:
            names = ", ".join(map(address_text, named))
            found.append(ok("peers", answer.at, f"a broker answers, and names the controllers {names}"))
        else:
            found.append(note("peers", answer.at, f"a broker answers, {NAMES_NONE}", NAME_THEM))
        controllers |= dict.fromkeys(named)
    return list(controllers)


async def probe_quorum(bootstrap: str, timeout_s: float) -> Leader | Finding:
    """The leader's answers, or the finding that none leads."""
    try:
        found = await ask_leader(bootstrap, timeout_s)
        async with await connect(found.address, timeout_s) as connection:
            sent_ms = time.time() * 1000
            quorum = await describe_quorum(connection, found.address)
            answered_ms = time.time() * 1000
    except NoLeader as failure:
        text = " ".join(str(failure).split())
        return problem("voters", "quorum", text, "bring a majority of the voters back: see the peers")
    except CommandFailure as failure:
        text = " ".join(str(failure).split())
        remedy = (
            "allow this principal DESCRIBE and ALTER on the cluster, "
            "or name another login with --command-config"
        )
        return problem("voters", "quorum", f"the leader did not describe the quorum: {text}", remedy)
    except ClientFailure as failure:
        text = " ".join(str(failure).split())
        return problem("voters", "quorum", f"no leader was found: {text}", "see the peers")
    try:
        registered = await registrations(bootstrap, timeout_s)
    except (CommandFailure, ClientFailure):
        registered = []
    return Leader(quorum, sent_ms, answered_ms, registered)


def judge_leader(
    leader: Leader,
    session_timeout_ms: int,
    me: Member | None,
    static_voters: Mapping[int, tuple[str, int]],
    running: Collection[int] = (),
) -> Iterator[Finding]:
    """All findings from the leader's answers. `running` has nodes whose address accepts connections."""
    partition = leader.quorum.partition
    yield judge_clock(partition, leader.sent_ms, leader.answered_ms)
    yield from judge_voters(partition, running)
    if me is not None:
        yield from judge_membership(partition, me, static_voters)
    yield from judge_lag(partition)
    yield from judge_duplicate_ids(partition, leader.quorum.refused)
    yield from judge_refused(leader.quorum.refused, f"node {partition.leader_id}")
    controllers = [one.controller_id for one in leader.registered]
    yield from judge_brokers(partition, controllers, session_timeout_ms)
    yield from judge_registrations(
        (one.controller_id, one.endpoint) for one in leader.registered if one.role == "gone"
    )
    if not leader.registered:
        yield note("registrations", "quorum", "the leader reports no registered controllers")
