"""The voters that a quorum had before: which sources name them, their addresses, which of them are lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

import click

from kraftd.cli.failures import FAILED, CommandFailure
from kraftd.cli.quorum.voter_probe import Presence, VoterAnswer, ask_voters
from kraftd.named_tuple import NamedTuple

if TYPE_CHECKING:
    from kraftd.cli.doctor.peer_probe import Address
    from kraftd.config import DaemonConfig
    from kraftd.metadata.image import Image
    from kraftd.metadata_dir.files.last_start import LastStart
    from kraftd.metadata_dir.rescue.sole_voter import Survey
    from kraftd.types import OffsetAndEpoch

PROBE_S = 2.0  # for another voter to answer
MAX_BROKERS_ASKED = 20
REGISTRATIONS = "registered controllers"


class FormerVoters(NamedTuple):
    """The ids that each source names, this node's included, and every known address of each.

    `others` are addresses without an id: bootstrap servers and brokers, which may know a leader.
    """

    named_by: Mapping[str, frozenset[int]]
    addresses: Mapping[int, tuple[Address, ...]]
    others: tuple[Address, ...] = ()

    def not_asked(self, own_id: int) -> set[int]:
        """The ids of voters without an address."""
        named = {one for some in self.named_by.values() for one in some}
        return {one for one in named if one != own_id and not self.addresses.get(one)}


def former_voters(
    config: DaemonConfig,
    surveys: Iterable[Survey],
    image: Image,
    more: Mapping[int, Address],
    started: LastStart | None = None,
) -> FormerVoters:
    """Gather the voters from the directories, the registrations of an image, the file, what kraftd was last
    started with, and `more`.
    """
    named_by: dict[str, frozenset[int]] = {}
    found: dict[int, list[Address]] = {one: [at] for one, at in more.items()}
    is_static = True
    for survey in surveys:
        is_static = is_static and survey.voters is None
        for source, ids in survey.named_by.items():
            named_by[source] = named_by.get(source, frozenset()) | ids
        for voter in () if survey.voters is None else survey.voters.voters:
            found.setdefault(voter.voter_id, []).extend((one.host, one.port) for one in voter.endpoints)
    for one in image.controllers.values():
        found.setdefault(one.id, []).extend((at.host, at.port) for at in one.listeners)
    for node_id, at in config.quorum_voters.items():
        found.setdefault(node_id, []).append(at)
    last_voters = {} if started is None else {one.id: (one.host, one.port) for one in started.voters}
    for node_id, at in last_voters.items():
        found.setdefault(node_id, []).append(at)
    if is_static:
        if last_voters:
            named_by["controller.quorum.voters of the last start"] = frozenset(last_voters)
        if more:
            named_by["--voter"] = frozenset({*more, config.node_id})
        if config.quorum_voters:
            named_by["controller.quorum.voters"] = frozenset(config.quorum_voters)
        registered = frozenset(one.id for one in image.controllers.values() if one.listeners)
        if registered:
            named_by[REGISTRATIONS] = registered | {config.node_id}
    own = {(one.host, one.port) for one in (*config.listeners, *config.advertised_listeners)}
    own.update(found.pop(config.node_id, ()))
    asked = own.union(*found.values())
    servers = [*config.quorum_bootstrap_servers]
    if started is not None:
        servers += [(one.host, one.port) for one in started.bootstrap_servers]
    others = [one for one in dict.fromkeys([*servers, *brokers_of(image)]) if one not in asked]
    return FormerVoters(named_by, {one: tuple(dict.fromkeys(at)) for one, at in found.items()}, tuple(others))


def registered_voters(image: Image, servers: Iterable[Address]) -> FormerVoters:
    """The registered controllers of an image as the voters; `servers` and brokers may know a leader."""
    addresses = {
        one.id: tuple((at.host, at.port) for at in one.listeners)
        for one in image.controllers.values()
        if one.listeners
    }
    return FormerVoters(
        {REGISTRATIONS: frozenset(addresses)}, addresses, tuple(dict.fromkeys([*servers, *brokers_of(image)]))
    )


def brokers_of(image: Image) -> list[Address]:
    """Addresses of registered brokers, which forward the question for the quorum to its leader."""
    some = list(image.brokers.values())[:MAX_BROKERS_ASKED]
    return [(at.host, at.port) for one in some for at in one.listeners]


async def ask_former(former: FormerVoters, cluster_id: str) -> list[VoterAnswer]:
    """The answers of all voters, and those of other addresses that know a leader."""
    addresses = dict(former.addresses) | {-1 - n: (at,) for n, at in enumerate(former.others)}
    answers = await ask_voters(addresses, cluster_id, PROBE_S)
    return [one for one in answers if one.voter_id >= 0 or one.quorum is not None]


def majority_there(
    former: FormerVoters, answers: Iterable[VoterAnswer], own_id: int, lost: Collection[int]
) -> tuple[str, frozenset[int], set[int]] | None:
    """A source whose voters have a majority with this node: the source, its voters, and those that are there.

    None if no source has one. `lost` names voters that count as lost unless they are certainly there.
    """
    there = {
        one.voter_id
        for one in answers
        if one.presence is Presence.THERE or (one.presence is Presence.UNCLEAR and one.voter_id not in lost)
    }
    for source, ids in former.named_by.items():
        found = there & (ids - {own_id})
        if found and 2 * len(found | (ids & {own_id})) > len(ids):
            return source, ids, found
    return None


def check_lost(
    former: FormerVoters,
    answers: list[VoterAnswer],
    mine: OffsetAndEpoch,
    own_id: int,
    lost: Collection[int],
) -> None:
    """Print the answers. Raise CommandFailure if a leader lives, or enough voters for a majority.

    Otherwise two quorums would take decisions, each for the brokers that find it first.
    """
    for one in answers:
        click.echo(f"  {one.text(mine)}")
    leading = [one.text(mine) for one in answers if one.quorum is not None][:1]
    found = majority_there(former, answers, own_id, lost)
    if found is not None:
        source, ids, there = found
        answering = [one for one in answers if one.voter_id in there and one.presence is Presence.THERE]
        unclear = [one for one in answers if one.voter_id in there and one.presence is Presence.UNCLEAR]
        options = "".join(f" If controller {one.voter_id} is lost: --lost {one.voter_id}." for one in unclear)
        parts = [_clause(answering, "answers", "answer"), _clause(unclear, "may be there", "may be there")]
        why = (
            f"A majority of the voters {'may not be' if unclear else 'is not'} lost: "
            f"{', and '.join(filter(None, parts))}, of {numbers(ids)} ({source})."
        )
        raise CommandFailure(" ".join([why, *leading, f"{_REMEDY}{options}"]), FAILED)
    if leading:
        raise CommandFailure(" ".join(["The quorum has a leader.", *leading, _REMEDY]), FAILED)


def _clause(voters: list[VoterAnswer], verb: str, plural_verb: str) -> str:
    """What some voters do; "" for none."""
    names = ", ".join(one.name for one in voters)
    return f"{names} {verb if len(voters) == 1 else plural_verb}" if voters else ""


_REMEDY = (
    "Start this controller, and it joins them (in a static quorum, with all voters in "
    "controller.quorum.voters); or stop them for good first. Nothing was changed."
)


def check_not_asked(former: FormerVoters, own_id: int, lost: Collection[int], *, may_prompt: bool) -> None:
    """Raise CommandFailure if a voter without an address is not confirmed as lost."""
    missing = former.not_asked(own_id) - set(lost)
    if not missing:
        return
    shown = numbers(missing)
    click.echo(f"  Not asked, because no source has an address: controller {shown}.")
    if may_prompt:
        typed = click.prompt("Type the ids of the voters that could not be asked, if they are lost", type=str)
        if {one.strip() for one in typed.split(",")} == {str(one) for one in missing}:
            return
    options = " ".join(f"--lost {one}" for one in sorted(missing))
    raise CommandFailure(
        f"No source has an address of controller {shown}. Name it (--voter ID@HOST:PORT), and it is asked; "
        f"or confirm that it is lost for good ({options}). Nothing was changed.",
        FAILED,
    )


def numbers(ids: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(ids)))
