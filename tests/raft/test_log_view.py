"""Divergence of two logs, compared with plain lists; the effect of truncation and snapshots."""

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
    shared = draw(st.integers(0, len(leader)))
    last = leader[shared - 1] if shared else 0
    own = sorted(draw(st.lists(st.integers(last // 2, 7).map(lambda n: 2 * n + 1), max_size=6)))
    return leader, leader[:shared] + own


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
        assert common <= follower.end_offset < before, (
            "it makes progress, and never goes below the common prefix"
        )
    else:
        pytest.fail("it does not end")
    assert leader_epochs[: follower.end_offset] == follower_epochs[: follower.end_offset]


@given(st.lists(st.integers(1, 9), max_size=12).map(sorted), st.integers(0, 10))
def test_end_of_an_epoch_is_where_the_next_begins(epochs: list[int], requested_epoch: int) -> None:
    end = view(epochs).end_offset_for_epoch(requested_epoch)
    below = [epoch for epoch in epochs if epoch <= requested_epoch]
    if not epochs or requested_epoch >= epochs[-1]:
        assert end == (len(epochs), epochs[-1] if epochs else 0)
    else:
        assert end == (len(below), below[-1] if below else requested_epoch)


@given(st.lists(st.integers(1, 9), max_size=12).map(sorted), st.data())
def test_truncated_log_equals_a_log_that_was_never_longer(epochs: list[int], data: st.DataObject) -> None:
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
    """Records 4 to 9 of epochs 2 and 3 after a snapshot that ends at 4 in epoch 2."""
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


def test_log_that_was_reset_continues_after_the_snapshot() -> None:
    log = with_snapshot()
    log.reset_to(OffsetAndEpoch(20, 5), 100)
    assert log.end == (20, 5)
    assert (log.start_offset, log.synced_end_offset) == (20, 20)
    log.append(6, 20, 21)
    assert log.locate(20, 5).fit is Fit.VALID


def test_an_epoch_below_all_ends_where_the_log_begins_and_is_the_snapshots_there() -> None:
    log = LogView(5, 10, [(4, 5)], {OffsetAndEpoch(5, 2): 1})
    assert [log.end_offset_for_epoch(epoch) for epoch in (1, 2, 3)] == [(5, 2)] * 3
    assert log.end_offset_for_epoch(4) == (10, 4)
    assert LogView(5, 10, [(4, 5)], {OffsetAndEpoch(6, 2): 1}).end_offset_for_epoch(2) == (5, 2)


@pytest.mark.parametrize("epoch", [0, 1, 2, 3])
def test_a_replica_without_a_log_continues_any_log_that_begins_at_0(epoch: int) -> None:
    assert LogView(0, 10, [(2, 0)]).locate(0, epoch).fit is Fit.VALID


def test_a_position_at_the_end_of_the_last_epoch_continues_the_log() -> None:
    log = LogView(0, 10, [(2, 0), (4, 6)])
    assert log.locate(10, 4).fit is Fit.VALID
    assert log.locate(11, 4) == (Fit.DIVERGING, (10, 4))
    assert log.locate(7, 3) == (Fit.DIVERGING, (6, 2))
    assert log.locate(6, 2).fit is Fit.VALID
    assert log.locate(7, 2) == (Fit.DIVERGING, (6, 2))


def test_a_snapshot_may_be_of_a_log_if_its_epoch_reaches_that_far() -> None:
    log = LogView(5, 10, [(4, 5), (6, 8)], {OffsetAndEpoch(5, 2): 1})
    snapshot_ids = [
        OffsetAndEpoch(*one) for one in ((5, 1), (5, 2), (5, 3), (4, 3), (8, 4), (9, 4), (10, 6), (11, 6))
    ]
    assert [log.may_hold(one) for one in snapshot_ids] == [True, True, False, False, True, False, True, False]
    assert LogView(5, 10, [(4, 5)]).may_hold(OffsetAndEpoch(5, 9))


def test_a_log_start_keeps_the_epoch_that_is_in_force_there() -> None:
    epochs = [(1, 0), (2, 4), (3, 8)]
    for start, kept in ((3, [(1, 3), (2, 4), (3, 8)]), (4, [(2, 4), (3, 8)]), (9, [(3, 9)]), (10, [])):
        log = LogView(0, 10, epochs, {OffsetAndEpoch(one, 1): 1 for one in (3, 4, 9)})
        log.move_start(start)
        assert (log.start_offset, log._epochs) == (start, kept)
        assert [one.offset for one in log.snapshots] == [one for one in (3, 4, 9) if one >= start]
    log = LogView(5, 10, [(2, 5)])
    log.move_start(3)
    assert (log.start_offset, log._epochs) == (5, [(2, 5)])


def test_a_sync_is_news_once_and_ends_at_the_log_end() -> None:
    log = LogView(0, 10, [(1, 0)])
    log.append(1, 10, 12)
    assert [log.sync(one) for one in (10, 11, 11, 99, 12)] == [False, True, False, True, False]
    assert log.synced_end_offset == 12
