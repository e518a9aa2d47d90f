"""Answering the AddRaftVoter or RemoveRaftVoter that is under way (KIP-853)."""

from __future__ import annotations

from kraftd.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftd.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftd.raft.effects import Respond
from kraftd.raft.replica import Replica
from kraftd.raft.roles import Leader, VoterChange
from kraftd.wire.error_code import ErrorCode

MAX_TEXT_LENGTH = 2_000  # characters


def cut(text: str) -> str:
    """A text for an answer, which may repeat parts of the request, cut to 2,000 characters."""
    return text if len(text) <= MAX_TEXT_LENGTH else text[: MAX_TEXT_LENGTH - 1] + "…"


def answer_voter_change(
    replica: Replica, change: VoterChange, error: ErrorCode, message: str | None = None
) -> None:
    """Answer the request once. Without a message the error's own is sent; without an error, none."""
    if change.request_id is None:
        return
    text = message if message is not None or not error else error.message
    response = (AddRaftVoterResponse if change.is_add else RemoveRaftVoterResponse)(
        error_code=error, error_message=None if text is None else cut(text)
    )
    replica.emit(Respond(change.request_id, response, change.version))
    change.request_id = None


def finish_voter_change(
    replica: Replica, leader: Leader, error: ErrorCode, message: str | None = None
) -> None:
    """End the change, done or failed; another may begin."""
    change, leader.voter_change = leader.voter_change, None
    if change is not None:
        answer_voter_change(replica, change, error, message)
