"""Long work pauses so that other requests are decided in between, and gives the same result."""

from __future__ import annotations

from kraftd.ground.pace import MAX_SLICE_WORK_US, Pace, Sliced, Slices, at_once


def test_a_callback_ends_once_its_budget_of_work_is_used_up() -> None:
    pace = Pace()
    assert [pace.spent(work) for work in (MAX_SLICE_WORK_US - 1, 1)] == [False, True]
    assert [pace.spent(work) for work in (1_000, 1_000, 499, 1)] == [False, False, False, True]
    assert [pace.spent(work) for work in (MAX_SLICE_WORK_US + 1, 1, MAX_SLICE_WORK_US)] == [True, False, True]


def _counted(slices: int, *, name: str) -> Slices[str]:
    """Count."""
    for _ in range(slices):
        yield
    return name


def test_sliced_work_can_be_done_at_once_or_slice_by_slice() -> None:
    counted = Sliced(_counted)
    assert (counted.__name__, counted.__doc__) == ("_counted", "Count.")  # type: ignore[attr-defined]
    assert counted(3, name="a") == at_once(counted.begin(3, name="a")) == "a"
    assert list(counted.begin(3, name="a")) == [None] * 3
