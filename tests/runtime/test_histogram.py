"""Counts by size, with inclusive bounds."""

from __future__ import annotations

from kraftd.histogram import TIME_BOUNDS_NS, Histogram


def test_a_bound_is_in_its_own_count_and_larger_values_in_the_last() -> None:
    histogram = Histogram((10, 20))
    for value in (0, 10, 11, 20, 21, 1000):
        histogram.note(value)
    assert histogram.counts == [2, 2, 2]
    assert (histogram.count, histogram.total) == (6, 1062)
    assert repr(histogram) == "<Histogram of 6 values, 1062 in all>"


def test_bounds_of_times_go_up_from_50_microseconds_to_10_seconds() -> None:
    assert list(TIME_BOUNDS_NS) == sorted(set(TIME_BOUNDS_NS))
    assert (TIME_BOUNDS_NS[0], TIME_BOUNDS_NS[-1]) == (50_000, 10_000_000_000)
