"""Distinct names in order, in pieces of bounded size, so that adding one costs O(log names)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

MAX_PIECE_NAMES = 1024  # a larger piece is split in two


class SortedNames:
    """A set of texts that finds the last one at or before another text."""

    __slots__ = ("_firsts", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[list[str]] = []
        self._firsts: list[str] = []  # of each piece, its first name

    def add(self, name: str) -> None:
        """Add a new name."""
        if not self._pieces:
            self._pieces.append([name])
            self._firsts.append(name)
            return
        at = max(bisect_right(self._firsts, name) - 1, 0)
        piece = self._pieces[at]
        insort(piece, name)
        if len(piece) > MAX_PIECE_NAMES:
            half = len(piece) // 2
            self._pieces.insert(at + 1, piece[half:])
            self._firsts.insert(at + 1, piece[half])
            del piece[half:]
        self._firsts[at] = piece[0]

    def remove(self, name: str) -> None:
        """Remove an existing name."""
        at = bisect_right(self._firsts, name) - 1
        piece = self._pieces[at]
        del piece[bisect_left(piece, name)]
        if piece:
            self._firsts[at] = piece[0]
        else:
            del self._pieces[at], self._firsts[at]

    def last_up_to(self, text: str) -> str | None:
        """The last name that equals the text or sorts before it; None without one."""
        at = bisect_right(self._firsts, text)
        if not at:
            return None
        piece = self._pieces[at - 1]
        return piece[bisect_right(piece, text) - 1]

    def last_before(self, text: str) -> str | None:
        """The last name that sorts before the text, None without one."""
        at = bisect_left(self._firsts, text)
        if not at:
            return None
        piece = self._pieces[at - 1]
        return piece[bisect_left(piece, text) - 1]

    def __iter__(self) -> Iterator[str]:
        for piece in self._pieces:
            yield from piece

    def __len__(self) -> int:
        return sum(map(len, self._pieces))

    def __repr__(self) -> str:
        return f"<SortedNames {len(self)} in {len(self._pieces)} pieces>"
