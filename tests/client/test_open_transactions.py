"""Whether an open transaction hangs, by what its coordinator says."""

from __future__ import annotations

import pytest

from kraftd.client.open_transactions import IdState, OpenTransaction, duration_text, judge

NOW_MS = 1_000_000
OPEN = OpenTransaction("out", 0, 7, 1, 0, 40, NOW_MS - 5_000)


def owner(state: str, *partitions: tuple[str, int], timeout_ms: int = 60_000) -> IdState:
    return IdState("id", state, 7, 1, timeout_ms, NOW_MS - 10_000, frozenset(partitions), "host:1")


@pytest.mark.parametrize(
    ("found", "hangs", "why"),
    [
        (owner("Ongoing", ("out", 0)), False, "its producer ends it, or its timeout in 50 s"),
        (
            owner("Ongoing", ("out", 0), timeout_ms=3_000),
            False,
            "past its timeout by 7 s: its coordinator is about to abort it",
        ),
        (
            owner("Ongoing", ("out", 0), timeout_ms=2**31 - 1),
            False,
            "its producer alone ends it (two phases)",
        ),
        (
            owner("PrepareCommit", ("out", 0), ("out", 1)),
            False,
            "committed; 2 markers to be written",
        ),
        (owner("PrepareAbort", ("out", 0)), False, "aborted; 1 marker to be written"),
        (owner("Ongoing", ("out", 1)), True, "the transaction of id (Ongoing) is without this partition"),
        (owner("CompleteCommit"), True, "id has no open transaction (CompleteCommit)"),
        (None, True, "no coordinator knows producer 7, so that nothing ends it"),
    ],
)
def test_a_transaction_hangs_unless_its_coordinator_still_ends_it(
    found: IdState | None, hangs: bool, why: str
) -> None:
    judged = judge(OPEN, found, NOW_MS)
    assert (judged.hangs, judged.why) == (hangs, why)


def test_durations_have_at_most_two_units() -> None:
    texts = [duration_text(ms) for ms in (0, 999, 61_000, 3_600_000, 90_000_000, 2**31 - 1)]
    assert texts == ["0 s", "0 s", "1 min 1 s", "1 h", "1 d 1 h", "24 d 20 h"]
