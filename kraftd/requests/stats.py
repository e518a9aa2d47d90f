"""Counts requests by API, when their answers are made and when they leave.

Every request passes here, so the cost is two lookups, one search among bounds and a few additions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Generator
from functools import cache
from typing import Any

from kraftd.histogram import TIME_BOUNDS_NS, Histogram
from kraftd.requests.call import Call
from kraftd.wire.message import Message
from kraftd.wire.slices import MAX_STRUCTS_PER_SLICE, struct_count
from kraftd.wire.table import FieldRow, StructTable, table_of

_SHORT_NS = TIME_BOUNDS_NS[0]
# Whether a struct has an error code, and its lists that contain error codes.
Places = tuple[bool, tuple[tuple[str, Any], ...]]

SIZE_BOUNDS_BYTES = tuple(1 << power for power in range(32))


class ApiStats:
    """One API: requests by version, errors by code, times from arrival to answer, sizes of requests.

    `at_once` has requests answered in the event loop callback of their arrival; `parked` those that waited
    for records, a commit or the disk. Both are in nanoseconds. An error counts once for each place in an
    answer.
    """

    __slots__ = ("at_once", "errors", "parked", "size_bytes", "versions")

    def __init__(self) -> None:
        self.versions: dict[int, int] = {}
        self.errors: dict[int, int] = {}
        self.at_once = Histogram()
        self.parked = Histogram()
        self.size_bytes = Histogram(SIZE_BOUNDS_BYTES)

    def __repr__(self) -> str:
        return (
            f"<ApiStats {sum(self.versions.values())} requests, {self.parked.count} answered after a while>"
        )


class RequestStats:
    """Statistics of all APIs: `by_key` holds those that were requested, by API key."""

    __slots__ = ("by_key", "not_served")

    def __init__(self) -> None:
        self.by_key: dict[int, ApiStats] = {}
        self.not_served = 0  # requests of unserved APIs or versions

    def answered(self, calls: list[Call], began_ns: int, now_ns: int) -> None:
        """Count calls whose answers leave now, in a step begun at `began_ns`, and Envelopes around them."""
        by_key = self.by_key
        for call in calls:
            stats = by_key.get(call.key) or self._new(call.key)
            try:
                stats.versions[call.version] += 1
            except KeyError:
                stats.versions[call.version] = 1
            size_bytes = call.size_bytes
            sizes = stats.size_bytes
            sizes.counts[(size_bytes - 1).bit_length()] += 1  # its bounds are powers of two
            sizes.total += size_bytes
            arrived_ns = call.arrived_ns
            took_ns = now_ns - arrived_ns
            times = stats.at_once if arrived_ns == began_ns else stats.parked
            if took_ns <= _SHORT_NS:
                times.counts[0] += 1
            else:
                times.counts[bisect_left(TIME_BOUNDS_NS, took_ns)] += 1
            times.total += took_ns
            if call.envelope is not None:
                self.answered([call.envelope], began_ns, now_ns)

    def count_errors(self, key: int, message: Message) -> list[int]:
        """Count the errors anywhere in an answer; return their codes."""
        found = _found(message, _places(type(message)))
        for code in found:
            self.count_error(key, code)
        return found

    def count_error(self, key: int, code: int, count: int = 1) -> None:
        """Count errors of an API."""
        stats = self.by_key.get(key) or self._new(key)
        stats.errors[code] = stats.errors.get(code, 0) + count

    def count_errors_in_slices(self, key: int, message: Message) -> Generator[None, None, list[int]]:
        """As `count_errors`, as a generator, for an answer that may be very large; each code once."""
        has_code, lists = _places(type(message))
        found = [int(message.error_code)] if has_code and message.error_code else []  # type: ignore[attr-defined]
        counts: Counter[int] | None = None  # of earlier slices
        left = MAX_STRUCTS_PER_SLICE
        for name, places in lists:
            inner = tuple(one for one, _ in places[1])
            for row in getattr(message, name) or ():
                if left <= 0:
                    counts = Counter(found) if counts is None else counts + Counter(found)
                    found.clear()
                    yield
                    left = MAX_STRUCTS_PER_SLICE
                left -= struct_count(row, inner)
                found += _found(row, places)
        if found or counts:
            counts = Counter(found) if counts is None else counts + Counter(found)
            for code, count in counts.items():
                self.count_error(key, code, count)
        return [] if counts is None else list(counts)

    def _new(self, key: int) -> ApiStats:
        stats = self.by_key[key] = ApiStats()
        return stats

    def __repr__(self) -> str:
        return f"<RequestStats of {len(self.by_key)} APIs, {self.not_served} requests not served>"


def error_codes(message: Message) -> list[int]:
    """Every occurrence of an error code but NONE in a response and the structs of its lists."""
    return _found(message, _places(type(message)))


def _found(struct: Any, places: Places) -> list[int]:
    has_code, lists = places
    found = [int(struct.error_code)] if has_code and struct.error_code else []
    for name, inner in lists:
        rows = getattr(struct, name) or ()
        if inner[1]:
            for one in rows:
                found += _found(one, inner)
        else:  # such as partitions: most structs of a large answer, and most without an error
            found += [int(one.error_code) for one in rows if one.error_code]
    return found


@cache
def _places(kind: type[Message]) -> Places:
    """The places of error codes in a response."""
    table = table_of(kind)

    def of(struct: StructTable) -> Places:
        inner = ((row.attribute, of(table.structs[row.type])) for row in struct.fields if _is_list(row))
        has_code = any(row.attribute == "error_code" for row in struct.fields)
        return has_code, tuple((name, places) for name, places in inner if any(places))

    return of(table.root)


def _is_list(row: FieldRow) -> bool:
    return bool(row.array) and not row.is_primitive()
