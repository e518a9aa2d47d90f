"""The states of a classic group, and how one follows another."""

from __future__ import annotations

from enum import Enum


class ClassicState(Enum):
    """With the names that ListGroups and DescribeGroups show."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY = ClassicState.EMPTY
PREPARING_REBALANCE = ClassicState.PREPARING_REBALANCE
COMPLETING_REBALANCE = ClassicState.COMPLETING_REBALANCE
STABLE = ClassicState.STABLE
DEAD = ClassicState.DEAD

# Rules.
# 1. Members join while a rebalance is prepared; it begins when a member joins, leaves, fails or asks for it.
# 2. It ends with a new generation: completing if a member is left, else empty.
# 3. A completing group waits for its leader's assignment; with that it is stable.
# 4. A dead group was unloaded. It answers nothing and stays dead.
TRANSITIONS: dict[ClassicState, frozenset[ClassicState]] = {
    EMPTY: frozenset({PREPARING_REBALANCE, DEAD}),
    PREPARING_REBALANCE: frozenset({COMPLETING_REBALANCE, EMPTY, DEAD}),
    COMPLETING_REBALANCE: frozenset({STABLE, PREPARING_REBALANCE, DEAD}),
    STABLE: frozenset({PREPARING_REBALANCE, DEAD}),
    DEAD: frozenset({DEAD}),
}
CAN_REBALANCE = frozenset(
    state for state, following in TRANSITIONS.items() if PREPARING_REBALANCE in following
)
