"""What is behind the end of a compressed stream is nothing, as for Kafka's readers."""

from __future__ import annotations

import pytest

from kraftd.wire.compression import DecompressionError, OutputTooLarge, compress, decompress

GZIP, LZ4 = 1, 3
ONE, TWO = b"one" * 1000, b"two" * 100_000


@pytest.mark.parametrize("behind", [b"x", b"x" * 40, b"\x1f\x8b\x08", bytes(30)])
@pytest.mark.parametrize("codec", [GZIP, LZ4])
def test_bytes_behind_a_stream_are_nothing(codec: int, behind: bytes) -> None:
    assert decompress(codec, memoryview(compress(codec, TWO) + behind)) == TWO


def test_a_second_stream_of_gzip_counts_and_a_second_frame_of_lz4_does_not() -> None:
    assert decompress(GZIP, memoryview(compress(GZIP, ONE) + compress(GZIP, TWO))) == ONE + TWO
    assert decompress(GZIP, memoryview(compress(GZIP, ONE) + compress(GZIP, TWO) + b"x")) == ONE + TWO
    assert decompress(LZ4, memoryview(compress(LZ4, ONE) + compress(LZ4, TWO))) == ONE


@pytest.mark.parametrize("codec", [GZIP, LZ4])
def test_a_stream_that_is_cut_is_refused(codec: int) -> None:
    whole = compress(codec, ONE)
    for size in range(len(whole)):
        with pytest.raises(DecompressionError):
            decompress(codec, memoryview(whole)[:size])
    with pytest.raises(DecompressionError):
        decompress(codec, memoryview(whole[:-9] + b"x" * 9))


def test_the_limit_holds_for_what_has_bytes_behind_it() -> None:
    data = memoryview(compress(GZIP, ONE) + b"x")
    assert decompress(GZIP, data, len(ONE)) == ONE
    with pytest.raises(OutputTooLarge):
        decompress(GZIP, data, len(ONE) - 1)
