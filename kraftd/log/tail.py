"""The newest batches of the log, in memory: all that are not yet written, and more for fetches at the log
end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

# The memory of a batch beside its bytes; many small batches must not make the tail large.
_OVERHEAD_BYTES = 240


class Tail:
    """Consecutive batches by offset. first_offset is the end offset while it is empty."""

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

    def evict(self, limit_bytes: int, written_end: int) -> None:
        """Forget the oldest batches beyond limit_bytes, as far as they are on disk."""
        offsets, views, head = self._offsets, self._views, self._head
        last = len(offsets) - 1
        while self._kept_bytes > limit_bytes and head < last and offsets[head + 1] <= written_end:
            self._kept_bytes -= len(views[head]) + _OVERHEAD_BYTES
            views[head] = b""
            head += 1
        self._head = head
        if head > 1024 and head > len(offsets) // 2:
            del offsets[:head], views[:head], self._positions[:head]
            self._head = 0

    def truncate(self, end_offset: int) -> None:
        """Forget the batches from end_offset on: the beginning of a batch, or at or below first_offset."""
        keep = max(bisect_left(self._offsets, end_offset), self._head)
        self._kept_bytes -= sum(len(view) + _OVERHEAD_BYTES for view in self._views[keep:])
        del self._offsets[keep:], self._views[keep:], self._positions[keep:]
        self.end_offset = end_offset

    def place(self, offset: int) -> tuple[int, int]:
        """(base offset, position) of the batch that holds offset."""
        at = bisect_right(self._offsets, offset) - 1
        return self._offsets[at], self._positions[at]

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes | memoryview:
        """The batch that holds offset and later ones that fit; none that reaches past end_offset."""
        offsets, views = self._offsets, self._views
        first = bisect_right(offsets, offset) - 1
        count = len(offsets)
        if end_offset < self.end_offset:
            # The batch that holds end_offset is the first one past the limit.
            count = bisect_right(offsets, end_offset) - 1
            if count <= first:
                return b""
        room = max_bytes - len(views[first])
        last = first + 1
        while last < count and room >= len(views[last]):
            room -= len(views[last])
            last += 1
        return views[first] if last == first + 1 else b"".join(views[first:last])
