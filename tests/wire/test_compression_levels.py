"""Compression levels as configs of topics have them."""

from __future__ import annotations

import pytest

from kraftd.wire.compression import compress, decompress


@pytest.mark.parametrize("codec, level", [(1, -1), (1, 1), (1, 9), (3, 1), (3, 17), (4, -131072), (4, 22)])
def test_the_ends_of_each_range_of_levels_are_taken(codec: int, level: int) -> None:
    data = b"record" * 1000
    assert decompress(codec, memoryview(compress(codec, data, level)), len(data)) == data


def test_minus_1_is_the_default_level_of_gzip() -> None:
    assert compress(1, b"record" * 1000, -1) == compress(1, b"record" * 1000)
