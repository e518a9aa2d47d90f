"""Finds the key that an unknown one probably means."""

from __future__ import annotations

from collections.abc import Iterable

MAX_EDITS = 2
# Words for one unit: the one that Kafka's keys end with is among them.
UNITS = (
    ("ms", "millis", "milliseconds", "msec", "msecs"),
    ("seconds", "second", "secs", "sec", "s"),
    ("minutes", "minute", "mins", "min", "m"),
    ("hours", "hour", "hrs", "hr", "h"),
    ("bytes", "byte", "b"),
)
_UNIT_WORDS = tuple(word for words in UNITS for word in words)
SHORT_KEY = 8  # up to this length only one edit counts as a slip


def probably_meant(text: str, known: Iterable[str]) -> str | None:
    """The nearest known text within two slips (one, for short texts); None if there is none.

    A slip is an extra, missing or wrong character, or two swapped ones. Case does not count. First comes a
    search for a misspelt or missing unit: `.hrs` for `.hours`.
    """
    known = tuple(known)
    if (with_unit := _with_its_unit(text.lower(), known)) is not None:
        return with_unit
    most = 1 if len(text) <= SHORT_KEY else MAX_EDITS
    lowered = text.lower()
    best, best_edits = None, most + 1
    for candidate in known:
        if abs(len(candidate) - len(text)) < best_edits:
            edits = edit_distance(lowered, candidate.lower(), best_edits - 1)
            if edits < best_edits:
                best, best_edits = candidate, edits
    return best


def _with_its_unit(text: str, known: Iterable[str]) -> str | None:
    """The only known key that differs from the text in its unit: in the word for it, in having one, or in
    which it is.
    """
    stem, dot, unit = text.rpartition(".")
    spelled = {f"{stem}.{word}" for words in UNITS if unit in words for word in words} if dot else set()
    lacking = {f"{text}.{word}" for word in _UNIT_WORDS}
    is_unit = unit in (*_UNIT_WORDS, "days", "day")
    others = {f"{stem}.{word}" for word in _UNIT_WORDS} if dot and is_unit else set()
    for wanted in (spelled, lacking, others):
        found = [candidate for candidate in known if candidate.lower() in wanted]
        if len(found) == 1:
            return found[0]
    return None


def edit_distance(left: str, right: str, limit: int) -> int:
    """The number of slips between two texts; ``limit + 1`` for more than the limit."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        previous, row, older = row, [i], before
        for j, b in enumerate(right, 1):
            edits = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                edits = min(edits, older[j - 2] + 1)
            row.append(edits)
        if min(row) > limit and min(previous) > limit:
            return limit + 1
        before = previous
    return min(row[-1], limit + 1)
