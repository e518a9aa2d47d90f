"""Asks voters what they hold, before a tool makes a quorum without them.

A voter is lost only if no connection to its addresses is accepted. One that answers, refuses the login or is
frozen may still be part of a majority.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING

from kraftd.cli.doctor.judge_peers import Answer, is_broker
from kraftd.cli.doctor.peer_probe import Address, probe
from kraftd.cli.failures import CommandFailure
from kraftd.cli.quorum.leader import Quorum, connect, describe_quorum
from kraftd.client.connection import Plaintext, default_setup
from kraftd.client.failures import ClientFailure
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.messages.fetch_response import FetchResponse
from kraftd.named_tuple import NamedTuple
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, METADATA_TOPIC_ID, OffsetAndEpoch, address_text
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.client.connection import Connection


class Presence(IntEnum):
    """How sure it is that a voter still runs."""

    LOST = 0  # no connection was accepted
    UNCLEAR = 1  # something else, or something that does not say what it is, answers there
    THERE = 2  # a controller of this cluster answers


class VoterAnswer(NamedTuple):
    """What a voter's address answered.

    voter_id is negative if the id is unknown. `why` explains a voter that is not THERE. `epoch` is the
    highest that it knows and `leader_id` the leader that it follows or followed last; both are -1 if unknown.
    `quorum` is its description if it leads, or the leader's if a broker answered. An `epoch` of 0 is of a
    voter that has never taken part in an election.
    """

    voter_id: int
    at: str
    presence: Presence
    why: str = ""
    cluster_id: str | None = None
    epoch: int = -1
    leader_id: int = -1
    quorum: Quorum | None = None
    leaders_address: Address | None = None

    @property
    def high_watermark(self) -> int:
        """The leader's high watermark; -1 if this voter does not lead."""
        return -1 if self.quorum is None else self.quorum.partition.high_watermark

    @property
    def name(self) -> str:
        """The node and its address."""
        return f"{f'Controller {self.voter_id}' if self.voter_id >= 0 else 'A node'} at {self.at}"

    def text(self, mine: OffsetAndEpoch) -> str:
        """A sentence about what it holds, compared with the end of a log."""
        name = self.name
        if self.presence is Presence.LOST:
            return f"{name} does not answer: {self.why}."
        if self.quorum is None:
            if self.presence is Presence.UNCLEAR:
                return f"{name} may be there: {self.why}."
            known = f", and knows epoch {self.epoch}; this log ends in epoch {mine.epoch}"
            return f"{name} answers{known if self.epoch >= 0 else ''}."
        partition = self.quorum.partition
        more = partition.high_watermark - mine.offset
        if more > 0:
            lacking = f"{more} of them are not in this log"
        elif partition.leader_epoch > mine.epoch:  # it has begun its epoch by a record
            lacking = "this log lacks some of them, or has others in their place"
        else:
            lacking = "this log is as long"
        return (
            f"{name} answers: controller {partition.leader_id} leads in epoch {partition.leader_epoch}, "
            f"with the records below offset {partition.high_watermark} committed; {lacking}, which ends at "
            f"{mine.offset} in epoch {mine.epoch}."
        )


async def ask_voters(
    addresses: Mapping[int, Iterable[Address]], cluster_id: str, timeout_s: float
) -> list[VoterAnswer]:
    """Ask each voter at all its addresses, then each leader that an answer names elsewhere.

    Returns one answer per voter, by id: that of the address which shows most.
    """
    known = {voter_id: list(dict.fromkeys(some)) for voter_id, some in addresses.items()}
    found = await _ask_all(known, cluster_id, timeout_s)
    leaders: dict[int, list[Address]] = {}
    for one in found:
        at = one.leaders_address
        if one.leader_id >= 0 and at is not None and at not in known.get(one.leader_id, ()):
            leaders.setdefault(one.leader_id, []).append(at)
    found += await _ask_all(leaders, cluster_id, timeout_s)
    best: dict[int, VoterAnswer] = {}
    for one in found:
        other = best.get(one.voter_id)
        if other is None or _rank(one) > _rank(other):
            best[one.voter_id] = one
    return [best[voter_id] for voter_id in sorted(best)]


async def ask_voter(voter_id: int, address: Address, cluster_id: str, timeout_s: float) -> VoterAnswer:
    """Ask one voter at one address. A failure is an answer too.

    A listener without TLS is asked without, whatever the controllers have: it may be a broker's.
    """
    answer = await probe(address, timeout_s)
    if answer.speaks != "PLAINTEXT":
        return await _ask_more(voter_id, address, answer, cluster_id, timeout_s)
    configured = default_setup.set(Plaintext())
    try:
        answer = await probe(address, timeout_s)
        return await _ask_more(voter_id, address, answer, cluster_id, timeout_s)
    finally:
        default_setup.reset(configured)


async def _ask_more(
    voter_id: int, address: Address, answer: Answer, cluster_id: str, timeout_s: float
) -> VoterAnswer:
    """Judge the answer of an address, and ask it for its epoch and leader if it is of the cluster."""
    at = address_text(address)
    if answer.failure:
        if not answer.listens:
            return VoterAnswer(voter_id, at, Presence.LOST, answer.failure)
        return VoterAnswer(
            voter_id, at, Presence.UNCLEAR, f"a connection is accepted there, but {_why(answer)}"
        )
    if answer.cluster_id not in (None, cluster_id):
        return _of_another_cluster(voter_id, at, answer.cluster_id, cluster_id)
    there = VoterAnswer(voter_id, at, Presence.THERE, cluster_id=answer.cluster_id)
    if is_broker(answer):  # it forwards the question for the quorum to the leader
        there = there._replace(presence=Presence.UNCLEAR, why="a broker answers there")
    try:
        async with await connect(address, timeout_s) as connection:
            if there.presence is Presence.THERE:
                fetched = await _fetch(connection, cluster_id)
                if fetched.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID:
                    return _of_another_cluster(voter_id, at, answer.cluster_id, cluster_id)
                there = _with_leader(there, fetched)
            quorum = await describe_quorum(connection, address)
            if quorum.cluster_id != cluster_id:
                return _of_another_cluster(voter_id, at, quorum.cluster_id, cluster_id)
            there = there._replace(
                epoch=quorum.partition.leader_epoch, leader_id=quorum.partition.leader_id, quorum=quorum
            )
    except (ClientFailure, CommandFailure):
        pass  # it is there, and does not lead or does not allow the question
    return there


def _why(answer: Answer) -> str:
    """Why a node that accepts connections cannot be asked."""
    if answer.speaks == "TLS" and default_setup.get() is None:
        return "it speaks TLS, and was asked without, as this node's file says"
    is_known = answer.speaks in ("", "SASL")
    return answer.failure if is_known else f"{answer.failure}; it speaks {answer.speaks}"


def _of_another_cluster(voter_id: int, at: str, theirs: str | None, ours: str) -> VoterAnswer:
    why = f"a node of cluster {theirs or 'another'} answers there, not of {ours}"
    return VoterAnswer(voter_id, at, Presence.UNCLEAR, why, theirs)


async def _ask_all(
    addresses: Mapping[int, Iterable[Address]], cluster_id: str, timeout_s: float
) -> list[VoterAnswer]:
    asked = [(voter_id, address) for voter_id, some in addresses.items() for address in some]
    return list(await asyncio.gather(*(ask_voter(*one, cluster_id, timeout_s) for one in asked)))


async def _fetch(connection: Connection, cluster_id: str) -> FetchResponse:
    """The answer to a Fetch in epoch 0, which every replica refuses with the epoch and leader that it knows.

    It names no replica, so it changes nothing there.
    """
    partition = FetchPartition(METADATA_PARTITION, 0, 0, 0)
    request = FetchRequest(
        cluster_id=cluster_id,
        replica_state=ReplicaState(-1),
        max_wait_ms=0,
        topics=[FetchTopic(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])],
    )
    return await connection.ask(request, FetchResponse)


def _with_leader(there: VoterAnswer, fetched: FetchResponse) -> VoterAnswer:
    """The answer with the epoch and leader of a refused Fetch."""
    for topic in fetched.responses:
        for partition in topic.partitions:
            leader = partition.current_leader
            at = [(one.host, one.port) for one in fetched.node_endpoints if one.node_id == leader.leader_id]
            return there._replace(
                epoch=leader.leader_epoch, leader_id=leader.leader_id, leaders_address=at[0] if at else None
            )
    return there


def _rank(one: VoterAnswer) -> tuple[int, bool, int]:
    return one.presence, one.quorum is not None, one.epoch
