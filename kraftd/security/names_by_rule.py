"""The resource names of each rule, for a decision about any resource of a type in O(log ACLs).

A rule is a principal and a host with one permission for one operation. Kafka's
`authorizeByResourceType` looks for one name that an ALLOW has and that no DENY covers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from kraftd.acl import WILDCARD

Rule = tuple[str, str]  # principal and host
Slot = tuple[int, bool, int]  # resource type, whether the pattern is literal, bit of the permission
Names = str | dict[str, None]  # of a rule in a slot: its only name, or all of its names
Found = dict[tuple[Slot, Rule], Names]

MAX_REMEMBERED = 1_000  # answers
_FIRST_DENIAL = 1 << 32  # smaller bits allow

Question = tuple[tuple[Slot, Rule], ...]  # the rules that decide it


class NamesByRule:
    """By resource type, kind of pattern, bit of permission, principal and host: the names of the patterns.

    The bits are those of the masks of ``AclIndex``.
    """

    def __init__(self) -> None:
        self._slots: defaultdict[Slot, dict[Rule, Names]] = defaultdict(dict)
        self._answers: dict[Question, bool] = {}
        self._asked: dict[tuple[Slot, Rule], set[Question]] = {}  # with an answer, by rule

    def add(self, slot: Slot, rule: Rule, name: str) -> None:
        """Add a name that the rule did not have."""
        rules = self._slots[slot]
        names = rules.get(rule)
        if names is None:
            rules[rule] = name
        elif isinstance(names, str):
            rules[rule] = {names: None, name: None}
        else:
            names[name] = None
        self._forget(slot, rule, slot[2] < _FIRST_DENIAL)

    def remove(self, slot: Slot, rule: Rule, name: str) -> None:
        """Remove a name that the rule has."""
        rules = self._slots[slot]
        names = rules[rule]
        if type(names) is dict and len(names) > 1:
            del names[name]
        else:
            del rules[rule]
        self._forget(slot, rule, slot[2] >= _FIRST_DENIAL)

    def _forget(self, slot: Slot, rule: Rule, is_wider: bool) -> None:
        """Forget the answers that a change of a rule may have changed. `is_wider`: it can only allow more."""
        questions = self._asked.get((slot, rule))
        if not questions:
            return
        for question in [one for one in questions if self._answers[one] is not is_wider]:
            del self._answers[question]
            for part in question:
                self._asked[part].discard(question)
                if not self._asked[part]:
                    del self._asked[part]

    def any_is_allowed(
        self, resource_type: int, allows: tuple[int, ...], denies: tuple[int, ...], rules: tuple[Rule, ...]
    ) -> bool:
        """Return whether a rule allows a name of the type by one of the bits, and none denies it."""
        allowed = self._of(resource_type, True, allows, rules), self._of(resource_type, False, allows, rules)
        if not (allowed[0] or allowed[1]):
            return False
        denied = self._of(resource_type, True, denies, rules), self._of(resource_type, False, denies, rules)
        if _has(denied[0].values(), WILDCARD):
            return False
        if _has(allowed[0].values(), WILDCARD) or not (denied[0] or denied[1]):
            return True
        key = (*allowed[0], *allowed[1], *denied[0], *denied[1])
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= MAX_REMEMBERED:
                self._answers.clear()
                self._asked.clear()
            answer = self._answers[key] = _any_is_left(allowed, denied)
            for part in key:
                self._asked.setdefault(part, set()).add(key)
        return answer

    def has_any(self, resource_type: int, bit: int, rules: tuple[Rule, ...]) -> bool:
        """Return whether one of the rules has the permission of this bit for a name of the type."""
        for is_literal in (True, False):
            of_slot = self._slots.get((resource_type, is_literal, bit))
            if of_slot and any(rule in of_slot for rule in rules):
                return True
        return False

    def _of(
        self, resource_type: int, is_literal: bool, bits: tuple[int, ...], rules: tuple[Rule, ...]
    ) -> Found:
        """The names that the rules have for some of the bits."""
        found: Found = {}
        for bit in bits:
            slot = (resource_type, is_literal, bit)
            of_slot = self._slots.get(slot)
            if of_slot:
                for rule in rules:
                    names = of_slot.get(rule)
                    if names is not None:
                        found[slot, rule] = names
        return found

    def __repr__(self) -> str:
        rules = sum(map(len, self._slots.values()))
        return f"<NamesByRule {rules} rules, {len(self._answers)} remembered answers>"


def _has(found: Iterable[Names], name: str) -> bool:
    return any(names == name if type(names) is str else name in names for names in found)


def _each(found: Found) -> Iterator[str]:
    for names in found.values():
        if type(names) is str:
            yield names
        else:
            yield from names


def _any_is_left(allowed: tuple[Found, Found], denied: tuple[Found, Found]) -> bool:
    """Return whether a name that is allowed is neither denied nor begins with a denied prefix."""
    denied_literals, denied_prefixes = denied[0].values(), denied[1].values()
    longest = max(map(len, _each(denied[1])), default=0)

    def is_dominated(name: str) -> bool:
        return any(_has(denied_prefixes, name[:end]) for end in range(1, min(len(name), longest) + 1))

    if any(not is_dominated(name) for name in _each(allowed[1])):
        return True
    return any(not _has(denied_literals, name) and not is_dominated(name) for name in _each(allowed[0]))
