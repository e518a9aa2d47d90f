"""Where two logs part, against logs written out in full; what truncation and snapshots leave."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftd.raft.log_view import BOOTSTRAP_SNAPSHOT, Fit, LogView
from kraftd.types import OffsetAndEpoch


def view(epochs: list[int]) -> LogView:
    """The view of a log that has a record of epochs[i] at offset i."""
    log = LogView()
    for offset, epoch in enumerate(epochs):
        log.append(epoch, offset, offset + 1)
    return log


@st.composite
def two_logs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Logs of one quorum: equal epochs at an offset mean equal records and an equal past.

    Epochs that only the follower has are odd, the leader's even.
    """
    leader = sorted(draw(st.lists(st.integers(1, 6).map(lambda n: 2 * n), max_size=12)))
    kept = draw(st.integers(0, len(leader)))
    last = leader[kept - 1] if kept else 0
    own = sorted(draw(st.lists(st.integers(last // 2, 7).map(lambda n: 2 * n + 1), max_size=6)))
    return leader, leader[:kept] + own


@given(two_logs())
def test_divergence_ends_in_a_prefix_within_as_many_rounds_as_there_are_epochs(
    logs: tuple[list[int], list[int]],
) -> None:
    leader_epochs, follower_epochs = logs
    leader, follower = view(leader_epochs), view(follower_epochs)
    common = 0
    while common < min(len(leader_epochs), len(follower_epochs)):
        if leader_epochs[common] != follower_epochs[common]:
            break
        common += 1
    for _ in range(len(set(follower_epochs)) + 1):
        fit, at = leader.locate(follower.end_offset, follower.last_epoch)
        if fit is Fit.VALID:
            break
        assert fit is Fit.DIVERGING
        before = follower.end_offset
        follower.truncate_to(follower.truncation_offset(at))
        assert common <= follower.end_offset < before, "it goes on, and never below what both have"
    else:
        pytest.fail("it does not end")
    assert leader_epochs[: follower.end_offset] == follower_epochs[: follower.end_offset]


@given(st.lists(st.integers(1, 9), max_size=12).map(sorted), st.integers(0, 10))
def test_end_of_an_epoch_is_where_the_next_begins(epochs: list[int], asked: int) -> None:
    end = view(epochs).end_offset_for_epoch(asked)
    below = [epoch for epoch in epochs if epoch <= asked]
    if not epochs or asked >= epochs[-1]:
        assert end == (len(epochs), epochs[-1] if epochs else 0)
    else:
        assert end == (len(below), below[-1] if below else asked)


@given(st.lists(st.integers(1, 9), max_size=12).map(sorted), st.data())
def test_truncated_log_is_the_log_that_was_never_longer(epochs: list[int], data: st.DataObject) -> None:
    end_offset = data.draw(st.integers(0, len(epochs)))
    log, short = view(epochs), view(epochs[:end_offset])
    log.truncate_to(end_offset)
    assert log.end == short.end
    assert all(log.end_offset_for_epoch(one) == short.end_offset_for_epoch(one) for one in range(11))


def test_batch_that_leaves_a_gap_or_goes_back_in_epochs_does_not_fit() -> None:
    log = view([1, 2])
    with pytest.raises(ValueError, match="does not continue"):
        log.append(2, 3, 4)
    with pytest.raises(ValueError, match="behind epoch"):
        log.append(1, 2, 3)


def test_sync_never_reaches_past_the_end_or_back() -> None:
    log = LogView()
    log.append(1, 0, 5)
    assert log.sync(3) and log.synced_end_offset == 3
    assert not log.sync(2) and log.synced_end_offset == 3
    assert log.sync(9) and log.synced_end_offset == 5
    log.truncate_to(4)
    assert log.synced_end_offset == 4


def with_snapshot() -> LogView:
    """Records 4 to 9 of epochs 2 and 3 behind a snapshot of 4 at epoch 2."""
    log = LogView(snapshots={BOOTSTRAP_SNAPSHOT: 10})
    log.append(1, 0, 2)
    log.append(2, 2, 6)
    log.append(3, 6, 10)
    log.snapshots[OffsetAndEpoch(4, 2)] = 100
    log.move_start(4)
    return log


@pytest.mark.parametrize(
    ("offset", "epoch", "fit"),
    [
        (0, 0, Fit.SNAPSHOT),
        (3, 2, Fit.SNAPSHOT),
        (4, 1, Fit.SNAPSHOT),
        (5, 1, Fit.SNAPSHOT),
        (4, 2, Fit.VALID),
        (6, 2, Fit.VALID),
        (7, 2, Fit.DIVERGING),
        (10, 3, Fit.VALID),
        (11, 3, Fit.DIVERGING),
    ],
)
def test_position_behind_a_snapshot_gets_its_id__kip630(offset: int, epoch: int, fit: Fit) -> None:
    assert with_snapshot().locate(offset, epoch).fit is fit


def test_moving_the_start_forgets_the_snapshots_below_it() -> None:
    assert list(with_snapshot().snapshots) == [OffsetAndEpoch(4, 2)]


def test_bootstrap_checkpoint_is_no_snapshot_to_fetch() -> None:
    log = LogView(snapshots={BOOTSTRAP_SNAPSHOT: 10})
    log.append(1, 0, 2)
    assert log.locate(0, 0).fit is Fit.VALID


def test_log_that_was_reset_goes_on_from_the_snapshot() -> None:
    log = with_snapshot()
    log.reset_to(OffsetAndEpoch(20, 5), 100)
    assert log.end == (20, 5)
    assert (log.start_offset, log.synced_end_offset) == (20, 20)
    log.append(6, 20, 21)
    assert log.locate(20, 5).fit is Fit.VALID
