"""The state machine of a replica, as a table.

Rules.
1. An epoch never goes back.
2. At most one vote an epoch, and it is durable before it is sent; a replica that returns to a state in the
  same epoch keeps the vote.
3. Only a voter, or one whose removal may not be committed, leaves Unattached or Follower towards Prospective;
   an observer waits for a leader forever.
4. Only the winner of a pre-vote starts an election: no voter disturbs an epoch that a majority follows
  (KIP-996).
5. A leader can only resign, or learn of a later epoch; no replica leads an epoch twice, even after a
  restart.
6. Resigned is left by a later epoch only, so that its old epoch cannot be followed or voted in again.
"""

from __future__ import annotations

from enum import Enum


class State(Enum):
    """The state of a replica in its epoch."""

    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    FOLLOWER = "follower"
    LEADER = "leader"
    RESIGNED = "resigned"


class Cause(Enum):
    """Why a replica changes its state."""

    STARTED = "starts as the only voter"
    ELECTION_TIMEOUT = "election timeout"
    FETCH_TIMEOUT = "fetch timeout or leader's connection lost"
    PRE_VOTES_WON = "pre-votes won, or pre-vote unknown to a voter"
    PRE_VOTES_LOST = "pre-votes lost, no leader known"
    PRE_VOTES_LOST_TO_LEADER = "pre-votes lost, leader known"
    VOTES_WON = "votes won"
    LEADER_FOUND = "leader of the epoch found"
    HIGHER_EPOCH = "higher epoch seen"
    LEADER_OF_HIGHER_EPOCH = "leader of a higher epoch found"
    VOTE_GRANTED = "vote granted"
    RESIGNATION = "shutdown, check-quorum, removal or failure"


U, P, C, F, L, R = State


TRANSITIONS: dict[tuple[State, Cause], State] = {
    (U, Cause.STARTED): P,
    (F, Cause.STARTED): P,
    (R, Cause.STARTED): P,
    (U, Cause.ELECTION_TIMEOUT): P,
    (C, Cause.ELECTION_TIMEOUT): P,
    (R, Cause.ELECTION_TIMEOUT): U,
    (F, Cause.FETCH_TIMEOUT): P,
    (P, Cause.PRE_VOTES_WON): C,
    (P, Cause.PRE_VOTES_LOST): U,
    (P, Cause.PRE_VOTES_LOST_TO_LEADER): F,
    (C, Cause.VOTES_WON): L,
    (U, Cause.VOTE_GRANTED): U,
    (P, Cause.VOTE_GRANTED): P,
    (U, Cause.LEADER_FOUND): F,
    (P, Cause.LEADER_FOUND): F,
    (C, Cause.LEADER_FOUND): F,
    (F, Cause.LEADER_FOUND): F,  # more of its endpoints became known
    **{(state, Cause.HIGHER_EPOCH): U for state in State},
    **{(state, Cause.LEADER_OF_HIGHER_EPOCH): F for state in State},
    (L, Cause.RESIGNATION): R,
}

RAISES_EPOCH = {
    (P, Cause.PRE_VOTES_WON),
    (R, Cause.ELECTION_TIMEOUT),
    *((state, cause) for state in State for cause in (Cause.HIGHER_EPOCH, Cause.LEADER_OF_HIGHER_EPOCH)),
}


class IllegalTransition(RuntimeError):
    """The table has no such transition: a defect, never caused by input."""


def check(state: State, cause: Cause, epoch: int, new_epoch: int) -> State:
    """The state that `cause` leads to.  Raises IllegalTransition, including for an epoch that the rules
    forbid.
    """
    target = TRANSITIONS.get((state, cause))
    if target is None:
        raise IllegalTransition(f"{state.value} has no way out by {cause.value!r}")
    if (state, cause) in RAISES_EPOCH:
        if new_epoch <= epoch:
            raise IllegalTransition(f"{cause.value!r} must raise epoch {epoch}, not set {new_epoch}")
    elif new_epoch != epoch:
        raise IllegalTransition(f"{cause.value!r} must stay in epoch {epoch}, not go to {new_epoch}")
    return target


def diagram() -> str:
    """The table as a Mermaid state diagram, for the docs."""
    lines = ["stateDiagram-v2", "    [*] --> unattached"]
    arrows: dict[tuple[State, State], list[str]] = {}
    for (state, cause), target in TRANSITIONS.items():
        if cause not in (Cause.HIGHER_EPOCH, Cause.LEADER_OF_HIGHER_EPOCH):
            mark = " (epoch + 1)" if (state, cause) in RAISES_EPOCH else ""
            arrows.setdefault((state, target), []).append(cause.value + mark)
    lines += [f"    {a.value} --> {b.value}: {' / '.join(causes)}" for (a, b), causes in arrows.items()]
    lines += [
        "    note right of unattached: from every state when a higher epoch is seen",
        "    note right of follower: from every state when a leader of a higher epoch is found",
    ]
    return "\n".join(lines)
