"""The stream split into frames: any pieces give the same frames, and no memory is allocated in advance."""

from __future__ import annotations

import itertools
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftd.net.splitter import FrameError, FrameSplitter


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@given(
    bodies=st.lists(st.binary(min_size=1, max_size=40), max_size=12),
    cuts=st.lists(st.integers(0, 500), max_size=20),
)
def test_any_cut_of_the_stream_gives_the_same_frames(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(framed, bodies))
    splitter = FrameSplitter(100)
    bounds = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    frames = []
    for start, stop in itertools.pairwise(bounds):
        if stop > start:
            frames += [bytes(frame) for frame in splitter.feed(stream[start:stop])]
    assert frames == bodies
    assert splitter.held_bytes == 0


@given(st.binary(max_size=300))
def test_arbitrary_bytes_give_frames_or_one_frame_error(data: bytes) -> None:
    splitter = FrameSplitter(64)
    try:
        frames = splitter.feed(data)
    except FrameError as error:
        frames = error.frames
    assert all(0 < len(frame) <= 64 for frame in frames)
    assert splitter.held_bytes <= len(data)


def test_an_announced_size_takes_no_memory_until_bytes_arrive() -> None:
    splitter = FrameSplitter(104_857_600)
    assert splitter.feed(struct.pack(">i", 90 << 20) + bytes(60)) == []
    assert splitter.held_bytes == 64
    assert sys.getsizeof(splitter._partial) < 200


@pytest.mark.parametrize("size", [0, -1, -(2**31), 101, 2**31 - 1])
def test_an_invalid_size_is_an_error_that_keeps_the_frames_before_it(size: int) -> None:
    splitter = FrameSplitter(100)
    with pytest.raises(FrameError, match=str(size)) as raised:
        splitter.feed(framed(b"good") + struct.pack(">i", size))
    assert [bytes(frame) for frame in raised.value.frames] == [b"good"]


@pytest.mark.parametrize(
    ("head", "protocol"),
    [
        (b"GET / HTTP/1.1", "HTTP"),
        (b"get / http/1.0", "HTTP"),
        (b"CONNECT a:1 HTTP/1.1", "HTTP"),
        (b"TRACE / HTTP/1.1", "HTTP"),
        (b"PRI * HTTP/2.0", "HTTP"),
        (b"HTTP/1.1 400 Bad Request", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01", "TLS"),
        (b"\x15\x03\x03\x00\x02\x02", "TLS"),
        (b"SSH-2.0-OpenSSH_9.2", "SSH"),
        (b"PROXY TCP4 10.0.0.1 10.0.0.2 5 6\r\n", "the PROXY protocol"),
        (b"\r\n\r\n\x00\r\nQUIT\n", "the PROXY protocol"),
    ],
)
def test_another_protocol_is_recognized_by_its_first_bytes(head: bytes, protocol: str) -> None:
    with pytest.raises(FrameError, match=f"the other side speaks {protocol} on a plaintext connection"):
        FrameSplitter(100 << 20).feed(head)
    for size in (0, -1, 1 << 30, 0x16030900):
        with pytest.raises(FrameError, match="was announced"):
            FrameSplitter(100 << 20).feed(size.to_bytes(4, "big", signed=True))


def test_returned_frames_do_not_change_when_more_data_arrives() -> None:
    splitter = FrameSplitter(100)
    splitter.feed(framed(b"first")[:3])
    (first,) = splitter.feed(framed(b"first")[3:] + framed(b"second")[:5])
    splitter.feed(framed(b"second")[5:])
    assert bytes(first) == b"first"
