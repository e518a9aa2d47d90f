"""The search for one allowed name that no denial covers, in slices: the answer about any resource of a type.

ACLs may change between two slices. A name that a change may have freed is looked at again. So an answer held
at some moment between the question and its end.
"""

from __future__ import annotations

from collections.abc import Iterable

from kraftd.ground.pace import Pace, Slices

Rule = tuple[str, str]  # principal and host
Slot = tuple[int, bool, int]  # resource type, whether the pattern is literal, bit of the permission
Names = str | dict[str, None]  # of a rule in a slot: its only name, or all of its names
Found = dict[tuple[Slot, Rule], Names]
Question = tuple[tuple[Slot, Rule], ...]  # the rules that decide it

FIRST_DENIAL = 1 << 32  # smaller bits allow
_MEASURED_AT_ONCE, _MEASURE_US = 1_000, 100  # denied prefixes, and what they cost
_NAME_US, _LOOKUPS_PER_US = 2, 4


class NameSearch:
    """One question's search. `answer` is None until the names that are allowed and denied have decided it.

    `allowed` and `denied` hold what the question's rules have: literal names, and prefixes.
    """

    __slots__ = ("_allowed", "_candidates", "_denied", "_lengths", "_work", "answer")

    def __init__(self) -> None:
        self.answer: bool | None = None
        self._allowed: tuple[Found, Found] = ({}, {})
        self._denied: tuple[Found, Found] = ({}, {})
        self._work: Slices[None] | None = None
        self._lengths: set[int] = set()  # of denied prefixes
        self._candidates: list[
            tuple[bool, list[str]]
        ] = []  # not looked at yet; with whether they are literal

    def advance(self, allowed: tuple[Found, Found], denied: tuple[Found, Found]) -> None:
        """Do a slice, with what the rules have now."""
        self._allowed, self._denied = allowed, denied
        if self._work is None:
            self._candidates = [
                (is_literal, _listed(names))
                for is_literal, found in ((False, allowed[1]), (True, allowed[0]))
                for names in found.values()
            ]
            self._work = self._search([_listed(names) for names in denied[1].values()])
        next(self._work, None)
        if self.answer is not None:
            self._candidates.clear()

    def changed(self, slot: Slot, name: str, is_wider: bool) -> None:
        """Take note that a rule got or lost a name. `is_wider`: this can only allow more."""
        _, is_literal, bit = slot
        is_denial = bit >= FIRST_DENIAL
        if not is_wider:
            if is_denial and not is_literal:
                self._lengths.add(len(name))
        elif is_denial and not is_literal:
            self._work = None  # it may have freed very many names: begin anew
        else:
            self._candidates.append((is_literal, [name]))

    def _search(self, prefixes: list[list[str]]) -> Slices[None]:
        pace = Pace()
        for names in prefixes:
            for start in range(0, len(names), _MEASURED_AT_ONCE):
                self._lengths.update(map(len, names[start : start + _MEASURED_AT_ONCE]))
                if pace.spent(_MEASURE_US):
                    yield
        while self._candidates:
            is_literal, names = self._candidates[-1]
            while names:
                name = names.pop()
                if self._is_free(name, is_literal):
                    self.answer = True
                    return
                if pace.spent(_NAME_US + len(self._lengths) * len(self._denied[1]) // _LOOKUPS_PER_US):
                    yield
            self._candidates.remove((is_literal, names))
        self.answer = False

    def _is_free(self, name: str, is_literal: bool) -> bool:
        """Return whether the name is allowed now, and neither denied nor begins with a denied prefix."""
        if is_literal and has_name(self._denied[0].values(), name):
            return False
        length, prefixes = len(name), self._denied[1].values()
        for end in self._lengths:
            if end <= length and has_name(prefixes, name[:end]):
                return False
        return has_name(self._allowed[0 if is_literal else 1].values(), name)

    def __repr__(self) -> str:
        left = sum(len(names) for _, names in self._candidates)
        return f"<NameSearch {left} names left, answer {self.answer}>"


def has_name(found: Iterable[Names], name: str) -> bool:
    """Return whether one of the rules has the name."""
    for names in found:  # noqa: SIM110 - costs less than any()
        if names == name if type(names) is str else name in names:
            return True
    return False


def _listed(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
