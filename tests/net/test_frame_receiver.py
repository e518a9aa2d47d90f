"""A stream received into buffers: any reads give the same frames, without copies of large ones."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable

import pytest

from kraftd.net.frame_receiver import FIRST_BUFFER_BYTES, SHARED_BYTES, FrameReceiver
from kraftd.net.splitter import FrameError

LARGE_BYTES = 3 << 20


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def feed(
    receiver: FrameReceiver, stream: bytes, reads: Iterable[int], *, copies: bool = False
) -> list[memoryview]:
    """Let a loop read the stream, at most so many bytes at a time; `copies` lets frames go at once."""
    frames, at, sizes = [], 0, iter(reads)
    while at < len(stream):
        room = receiver.buffer()
        size = min(len(room), next(sizes, 1 << 30), len(stream) - at)
        room[:size] = stream[at : at + size]
        at += size
        whole = receiver.whole_frame(size)
        seen = None if whole is None else bytes(whole)
        completed = receiver.received(size)
        assert seen is None or completed == [seen]
        frames += [memoryview(bytes(one)) for one in completed] if copies else completed
        whole = completed = None
    return frames


def test_a_frame_that_comes_alone_can_be_seen_where_it_was_received() -> None:
    receiver, body = FrameReceiver(LARGE_BYTES), bytes(range(200))
    for stream, expected in ((framed(body), body), (framed(body)[:-1], None), (framed(body) * 2, None)):
        receiver = FrameReceiver(LARGE_BYTES)
        receiver.buffer()[: len(stream)] = stream
        assert receiver.whole_frame(len(stream)) == expected
    receiver = FrameReceiver(LARGE_BYTES)
    assert feed(receiver, framed(body)[:9], ()) == []
    rest = framed(body)[9:]
    receiver.buffer()[: len(rest)] = rest
    assert receiver.whole_frame(len(rest)) is None, "it is no whole frame"


@pytest.mark.parametrize("seed", range(20))
def test_any_reads_of_the_stream_give_the_same_frames(seed: int) -> None:
    rng = random.Random(seed)
    bounds = [20, SHARED_BYTES - 8, SHARED_BYTES + 8, 3 * SHARED_BYTES, LARGE_BYTES]
    bodies = [rng.randbytes(rng.randint(1, rng.choice(bounds))) for _ in range(12)]
    receiver = FrameReceiver(LARGE_BYTES)
    reads = [rng.randint(1, rng.choice([9, SHARED_BYTES, LARGE_BYTES])) for _ in range(3_000)]
    frames = feed(receiver, b"".join(map(framed, bodies)), reads, copies=seed % 2 == 0)
    # All are looked at after the last one has come: a buffer that is still seen is not used again.
    assert [bytes(frame) for frame in frames] == bodies
    assert receiver.held_bytes == 0


def test_a_large_frame_is_received_into_its_own_buffer() -> None:
    receiver = FrameReceiver(LARGE_BYTES)
    feed(receiver, framed(bytes(LARGE_BYTES))[:FIRST_BUFFER_BYTES], [])
    room = receiver.buffer()
    room[:3] = b"abc"
    room[3:] = bytes(len(room) - 3)
    at = receiver.held_bytes
    receiver.received(len(room))
    (frame,) = feed(receiver, bytes(LARGE_BYTES + 4 - receiver.held_bytes), [])
    assert frame[at - 4 : at - 1] == b"abc"


def test_an_announced_size_takes_no_memory_until_bytes_arrive() -> None:
    receiver = FrameReceiver(104_857_600)
    feed(receiver, struct.pack(">i", 90 << 20) + bytes(60), [])
    assert receiver.held_bytes == 64
    assert receiver.buffer_bytes < 1_000
    feed(receiver, bytes(5 << 20), [])
    assert receiver.buffer_bytes < 12 << 20


def test_a_buffer_is_used_again_only_when_its_frame_is_let_go() -> None:
    receiver = FrameReceiver(LARGE_BYTES)
    stream = framed(b"x" * LARGE_BYTES)
    (first,) = feed(receiver, stream, [])
    memory = first.obj
    first.release()
    assert receiver.buffer().obj is memory, "the begin of the next frame is not copied, either"
    (second,) = feed(receiver, stream, [])
    assert second.obj is memory
    (third,) = feed(receiver, stream, [])
    assert third.obj is not memory


@pytest.mark.parametrize("reads", [(), (6,)])
def test_a_small_frame_ends_the_keeping_of_a_large_ones_buffer(reads: tuple[int, ...]) -> None:
    receiver = FrameReceiver(LARGE_BYTES)
    (frame,) = feed(receiver, framed(bytes(LARGE_BYTES)), [])
    frame.release()
    assert receiver.buffer_bytes >= LARGE_BYTES
    feed(receiver, framed(b"small"), reads)
    assert receiver.buffer_bytes == 0


@pytest.mark.parametrize("size", [0, -1, LARGE_BYTES + 1])
def test_an_invalid_size_is_an_error_that_keeps_the_frames_before_it(size: int) -> None:
    receiver = FrameReceiver(LARGE_BYTES)
    with pytest.raises(FrameError, match=str(size)) as raised:
        feed(receiver, framed(b"good") + struct.pack(">i", size), [])
    assert [bytes(frame) for frame in raised.value.frames] == [b"good"]
