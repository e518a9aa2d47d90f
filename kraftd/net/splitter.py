"""A byte stream cut into frames: a size of four bytes, big-endian, and that many bytes."""

from __future__ import annotations

from struct import Struct

_SIZE = Struct(">i")
_NONE: list[memoryview] = []


_HTTP = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"HTTP", b"PRI ")
_OTHERS = {
    **dict.fromkeys(_HTTP, "HTTP"),
    b"SSH-": "SSH",
    b"PROX": "the PROXY protocol",  # version 1
    b"\r\n\r\n": "the PROXY protocol",  # version 2
}
_TLS_RECORDS = (0x15, 0x16)  # alert, handshake


def other_protocol(head: bytes | memoryview) -> str | None:
    """The protocol of a stream's first four bytes if it is not Kafka's: TLS, HTTP, SSH or PROXY."""
    if head[0] in _TLS_RECORDS and head[1] == 3 and head[2] <= 4:
        return "TLS"
    return _OTHERS.get(bytes(head).upper())


class FrameError(Exception):
    """The stream announced an impossible frame. `frames` are the good ones before it."""

    def __init__(self, message: str, frames: list[memoryview]) -> None:
        super().__init__(message)
        self.frames = frames


class FrameSplitter:
    """Cuts arriving bytes into frames; holds only the bytes of the incomplete frame.

    The announced size is only ever compared, never allocated: a peer that announces 90 MiB and sends
    64 bytes costs 64 bytes.
    """

    __slots__ = ("_needed_bytes", "_partial", "max_frame_bytes")

    def __init__(self, max_frame_bytes: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._partial: bytearray | None = None
        self._needed_bytes = 0

    @property
    def needed_bytes(self) -> int:
        """Bytes of the incomplete frame in all, as its sender announced."""
        return self._needed_bytes if self._partial else 0

    @property
    def held_bytes(self) -> int:
        """Bytes of the incomplete frame that have arrived."""
        return len(self._partial) if self._partial else 0

    @property
    def missing_bytes(self) -> int:
        """Bytes of the incomplete frame that have not arrived."""
        return self._needed_bytes - len(self._partial) if self._partial else 0

    def take(self) -> bytearray:
        """Hand over the bytes of the incomplete frame, its size before them: it continues elsewhere."""
        assert self._partial is not None
        partial, self._partial = self._partial, None
        return partial

    def is_whole(self, data: memoryview, size_bytes: int) -> bool:
        """Return whether no bytes are held, and so many at the begin of data are exactly one frame."""
        return (
            self._partial is None
            and 4 < size_bytes <= self.max_frame_bytes
            and _SIZE.unpack_from(data)[0] == size_bytes - 4
        )

    def begun_bytes(self, data: memoryview, size_bytes: int) -> int:
        """The size of the frame that so many bytes begin, its own included; 0 if it is impossible, or unknown
        as bytes are held or too few.
        """
        if self._partial is not None or size_bytes < 4:
            return 0
        size: int = _SIZE.unpack_from(data)[0]
        return size + 4 if 0 < size <= self.max_frame_bytes else 0

    def feed(self, data: bytes) -> list[memoryview]:
        """The frames that `data` completes, without their sizes, as views of the bytes that arrived.

        Raises FrameError on a size that is not positive or is over the limit; the stream is lost then.
        """
        partial = self._partial
        if partial is None:
            view = memoryview(data)
        else:
            partial += data
            if len(partial) < self._needed_bytes:
                return _NONE
            # The returned views keep this buffer alive; the rest moves to a new one.
            view = memoryview(partial)
            self._partial = None
        end = len(view)
        at = 0
        frames: list[memoryview] = []
        while end - at >= 4:
            (size,) = _SIZE.unpack_from(view, at)
            if not 0 < size <= self.max_frame_bytes:
                other = other_protocol(view[at : at + 4])
                if other is not None:
                    raise FrameError(f"the other side speaks {other} on a plaintext connection", frames)
                raise FrameError(
                    f"a frame of {size} bytes was announced (limit {self.max_frame_bytes})", frames
                )
            stop = at + 4 + size
            if stop > end:
                break
            frames.append(view[at + 4 : stop])
            at = stop
        if at < end:
            self._partial = bytearray(view[at:])
            self._needed_bytes = stop - at if end - at >= 4 else 4
        return frames

    def __repr__(self) -> str:
        return f"<FrameSplitter {self.held_bytes} of {self._needed_bytes} bytes held>"
