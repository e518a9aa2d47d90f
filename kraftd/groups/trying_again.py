"""What is due and could not be written is tried again: a failed append must not keep a silent member."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from kraftd.groups.outcome import Outcome
from kraftd.groups.shard import CoordinatorState
from kraftd.wire.error_code import ErrorCode

AGAIN_MS = 500  # as in Kafka
_NO_LONGER_SERVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})


def again_if_failed(
    state: CoordinatorState, key: Hashable, action: Callable[[], Outcome], outcome: Outcome
) -> Outcome:
    """The outcome of a deadline's action, which is due again soon if its records are not written.

    If the key has a deadline then, because its member was heard meanwhile, that one counts.
    """
    if not outcome.records:
        return outcome
    after = outcome.after

    def follow(error: ErrorCode | None) -> Outcome | None:
        following = None if after is None else after(error)
        if error is not None and error not in _NO_LONGER_SERVED and key not in state.deadlines:
            state.deadlines.schedule(key, state.now_ms + AGAIN_MS, action)
        return following

    outcome.after = follow
    return outcome
