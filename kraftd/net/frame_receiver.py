"""Receives a stream of frames into buffers of its own, for a loop that reads straight into them.

A large frame is received into the buffer that becomes the frame: no byte of it is copied, but for those that
came with its size. Small ones share a buffer with all receivers of the process, and are copied out of it.
"""

from __future__ import annotations

from kraftd.net.splitter import FrameSplitter

SHARED_BYTES = 65_536
FIRST_BUFFER_BYTES = 1 << 20
# The loop reads into it and hands on what it has read before it reads for another connection.
_SHARED = memoryview(bytearray(SHARED_BYTES))


class FrameReceiver:
    """`buffer` is where the next bytes go; `received` returns the frames that they complete.

    A frame's buffer grows with what arrives, to twice as much or by FIRST_BUFFER_BYTES: an announced size
    alone costs nothing. Once the frame is let go, what follows is received into it, until that is small.
    """

    __slots__ = ("_buffer", "_held_bytes", "_needed_bytes", "_room", "_spare", "_splitter")

    def __init__(self, max_frame_bytes: int) -> None:
        self._splitter = FrameSplitter(max_frame_bytes)
        self._buffer: bytearray | None = None  # of a large frame, its size before it
        self._held_bytes = 0  # in it
        self._needed_bytes = 0
        self._room: memoryview | None = None  # that the loop has got of it, or of the spare one
        self._spare: bytearray | None = None  # of the last large frame

    @property
    def held_bytes(self) -> int:
        """Bytes of the incomplete frame that have arrived."""
        return self._splitter.held_bytes if self._buffer is None else self._held_bytes

    @property
    def buffer_bytes(self) -> int:
        """The memory of the buffers that it keeps beside the shared one."""
        return sum(len(each) for each in (self._buffer, self._spare) if each is not None)

    def buffer(self, size_hint: int = -1) -> memoryview:
        """Where the next bytes are to be written, from its begin on, however many a loop expects."""
        if self._room is not None:
            self._room.release()
            self._room = None
        if self._buffer is None:
            spare = self._spare
            if spare is None or self._splitter.held_bytes or not _is_free(spare):
                return _SHARED
            self._room = memoryview(spare)
            return self._room
        if self._held_bytes == len(self._buffer):
            more = min(self._needed_bytes - self._held_bytes, max(self._held_bytes, FIRST_BUFFER_BYTES))
            self._buffer += bytes(more)
        self._room = memoryview(self._buffer)[self._held_bytes : self._needed_bytes]
        return self._room

    def whole_frame(self, size_bytes: int) -> memoryview | None:
        """The frame, without its size, if so many bytes at the begin of `buffer` are exactly one.

        It is there until `buffer` is written again. `received` follows unless it is done with by then.
        """
        if self._buffer is not None:
            return None
        begun = _SHARED if self._room is None else self._room
        if not self._splitter.is_whole(begun, size_bytes):
            return None
        if size_bytes <= SHARED_BYTES:
            self._spare = None
        return begun[4:size_bytes]

    def received(self, size_bytes: int) -> list[memoryview]:
        """The frames, without their sizes, that so many bytes at the begin of `buffer` complete.

        Raises FrameError on a size that is not positive or is over the limit; the stream is lost then.
        """
        begun = _SHARED if self._room is None else self._room
        if self._buffer is None and begun is not _SHARED:
            needed_bytes = self._splitter.begun_bytes(begun, size_bytes)
            if needed_bytes >= size_bytes and needed_bytes > SHARED_BYTES:
                self._buffer, self._spare = self._spare, None
                self._held_bytes, self._needed_bytes = 0, needed_bytes
        if self._buffer is not None:
            self._held_bytes += size_bytes
            if self._held_bytes < self._needed_bytes:
                return []
            self._spare, self._buffer = self._buffer, None
            return [memoryview(self._spare)[4 : self._needed_bytes]]
        frames = self._splitter.feed(bytes(begun[:size_bytes]))
        if self._splitter.missing_bytes > SHARED_BYTES:
            self._begin_large_frame()
        elif frames:
            self._spare = None
        return frames

    def _begin_large_frame(self) -> None:
        self._needed_bytes = self._splitter.needed_bytes
        head = self._splitter.take()
        self._held_bytes = len(head)
        spare, self._spare = self._spare, None
        if spare is not None and _is_free(spare):
            spare[: len(head)] = head
            self._buffer = spare
        else:
            self._buffer = head

    def __repr__(self) -> str:
        return f"<FrameReceiver {self.held_bytes} bytes held>"


def _is_free(buffer: bytearray) -> bool:
    """Return whether no view of a buffer is left: only then its size may change."""
    try:
        buffer.append(0)
    except BufferError:
        return False
    del buffer[-1]
    return True
