"""Sentences about the quorum, which are in control records: leaders, voters, kraft.version."""

from __future__ import annotations

from kraftd.history.event import Meaning
from kraftd.history.names import ids
from kraftd.messages.kraft_version_record import KRaftVersionRecord
from kraftd.messages.leader_change_message import LeaderChangeMessage
from kraftd.messages.voters_record import VotersRecord
from kraftd.types import uuid_text
from kraftd.wire.message import Message


def describe_control(message: Message, epoch: int, voters_before: frozenset[int] | None) -> Meaning | None:
    """The sentence of a control record; None for a snapshot's header and footer. voters_before are the
    previous voters' ids, if known.
    """
    if isinstance(message, LeaderChangeMessage):
        voters = sorted(voter.voter_id for voter in message.voters)
        text = f"controller {message.leader_id} leads the quorum in epoch {epoch} (voters {ids(voters)})"
        details = {"leader": message.leader_id, "epoch": epoch, "voters": voters}
        return Meaning("quorum-leader", text, "quorum", str(message.leader_id), details=details)
    if isinstance(message, VotersRecord):
        return _voters(message, voters_before)
    if isinstance(message, KRaftVersionRecord):
        version = message.kraft_version
        return Meaning(
            "kraft-version", f"kraft.version set to {version}", "quorum", details={"level": version}
        )
    return None


def voter_ids(message: Message) -> frozenset[int] | None:
    """The voters that a control record names; None if it names none."""
    if isinstance(message, LeaderChangeMessage | VotersRecord):
        return frozenset(voter.voter_id for voter in message.voters)
    return None


def _voters(message: VotersRecord, before: frozenset[int] | None) -> Meaning:
    now = sorted(voter.voter_id for voter in message.voters)
    changes = []
    if before is not None:
        changes = [
            f"{verb} {ids(sorted(which))}"
            for verb, which in (("added", set(now) - before), ("removed", before.difference(now)))
            if which
        ]
    text = f"voters of the quorum are {ids(now)}" + (f" ({', '.join(changes)})" if changes else "")
    details = {
        "voters": [
            {"id": voter.voter_id, "directory_id": uuid_text(voter.voter_directory_id)}
            for voter in message.voters
        ]
    }
    return Meaning("quorum-voters", text, "quorum", details=details)
