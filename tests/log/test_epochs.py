"""The memory of leader epochs, of which each of very many logs has a cache."""

from __future__ import annotations

from kraftd.log.epochs import EpochCache


def test_logs_with_one_epoch_share_its_tuples() -> None:
    caches = [EpochCache([(3, 0)]) for _ in range(2)]
    first, second = (cache._epochs for cache in caches)
    assert first is second and caches[0]._starts is caches[1]._starts
    caches[0].assign(4, 10)
    assert caches[0].entries == [(3, 0), (4, 10)] and caches[1].entries == [(3, 0)]


def test_one_epoch_of_any_number_is_kept() -> None:
    for entry in ((0, 0), (63, 64), (64, 63), (1 << 30, 1 << 40)):
        assert EpochCache([entry]).entries == [entry]
