"""The newest batches of the log, in memory: all that are not yet written, and more for fetches at the log
end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from struct import Struct

# The memory of a batch beside its bytes; many small batches must not make the tail large.
_OVERHEAD_BYTES = 240


_LAST_OFFSET_DELTA = Struct(">i")
_LAST_OFFSET_DELTA_AT = 23


def _last_offset(base_offset: int, view: bytes | memoryview) -> int:
    return base_offset + int(_LAST_OFFSET_DELTA.unpack_from(view, _LAST_OFFSET_DELTA_AT)[0])


class Tail:
    """Batches that follow each other, by offset; there may be gaps between them. first_offset is the end
    offset while it is empty.
    """

    __slots__ = ("_head", "_kept_bytes", "_offsets", "_positions", "_views", "end_offset")

    def __init__(self, end_offset: int) -> None:
        self.end_offset = end_offset
        self._offsets: list[int] = []
        self._positions: list[int] = []
        self._views: list[bytes | memoryview] = []
        self._head = 0  # entries before it are evicted; they are cut off now and then
        self._kept_bytes = 0

    def __repr__(self) -> str:
        return f"<Tail {self.first_offset}..{self.end_offset}, {self._kept_bytes} bytes>"

    @property
    def kept_bytes(self) -> int:
        """The memory of the batches in bytes."""
        return self._kept_bytes

    @property
    def first_offset(self) -> int:
        return self._offsets[self._head] if self._head < len(self._offsets) else self.end_offset

    @property
    def first_position(self) -> int:
        """The first batch's position in its segment; only while not empty."""
        return self._positions[self._head]

    def add(self, base_offset: int, next_offset: int, position: int, view: bytes | memoryview) -> None:
        self._offsets.append(base_offset)
        self._positions.append(position)
        self._views.append(view)
        self._kept_bytes += len(view) + _OVERHEAD_BYTES
        self.end_offset = next_offset

    def evict_first(self) -> int:
        """Forget the oldest batch, which is on disk; returns the memory that it took."""
        head = self._head
        if head == len(self._offsets):
            return 0
        freed = len(self._views[head]) + _OVERHEAD_BYTES
        self._views[head] = b""
        self._kept_bytes -= freed
        self._head = head + 1
        self._cut_off_head()
        return freed

    def evict(self, limit_bytes: int, written_end: int) -> None:
        """Forget the oldest batches beyond limit_bytes, as far as they are on disk."""
        offsets, views, head = self._offsets, self._views, self._head
        last = len(offsets) - 1
        while self._kept_bytes > limit_bytes and head < last and offsets[head + 1] <= written_end:
            self._kept_bytes -= len(views[head]) + _OVERHEAD_BYTES
            views[head] = b""
            head += 1
        self._head = head
        self._cut_off_head()

    def _cut_off_head(self) -> None:
        head = self._head
        if head > 1024 and head > len(self._offsets) // 2:
            del self._offsets[:head], self._views[:head], self._positions[:head]
            self._head = 0

    def truncate(self, end_offset: int) -> None:
        """Forget the batches from end_offset on: the beginning of a batch, or at or below first_offset."""
        keep = max(bisect_left(self._offsets, end_offset), self._head)
        self._kept_bytes -= sum(len(view) + _OVERHEAD_BYTES for view in self._views[keep:])
        del self._offsets[keep:], self._views[keep:], self._positions[keep:]
        self.end_offset = end_offset

    def bytes_between(self, offset: int, end_offset: int) -> int:
        """The bytes of the batches from the one that holds an offset on that begin before another."""
        first = max(self._head, bisect_right(self._offsets, offset) - 1)
        return sum(map(len, self._views[first : bisect_left(self._offsets, end_offset)]))

    def batch_bytes(self, offset: int) -> int:
        """The size of the batch that holds an offset, or follows it; 0 if there is none."""
        at = bisect_right(self._offsets, offset) - 1
        if _last_offset(self._offsets[at], self._views[at]) < offset:
            at += 1  # the offset is in a gap
        return len(self._views[at]) if at < len(self._views) else 0

    def place(self, offset: int) -> tuple[int, int]:
        """(base offset, position) of the batch that holds offset."""
        at = bisect_right(self._offsets, offset) - 1
        return self._offsets[at], self._positions[at]

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes | memoryview:
        """The batch that holds offset and later ones that fit; none that reaches past end_offset."""
        offsets, views = self._offsets, self._views
        first = bisect_right(offsets, offset) - 1
        count = len(offsets)
        if _last_offset(offsets[first], views[first]) < offset:
            first += 1  # the offset is in a gap
        if end_offset < self.end_offset:
            count = bisect_right(offsets, end_offset)
            if count and _last_offset(offsets[count - 1], views[count - 1]) >= end_offset:
                count -= 1
        if count <= first:
            return b""
        room = max_bytes - len(views[first])
        last = first + 1
        while last < count and room >= len(views[last]):
            room -= len(views[last])
            last += 1
        return views[first] if last == first + 1 else b"".join(views[first:last])
