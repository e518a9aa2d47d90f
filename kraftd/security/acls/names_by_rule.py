"""The resource names of each rule, for a decision about any resource of a type in O(log ACLs).

A rule is a principal and a host with one permission for one operation. Kafka's
`authorizeByResourceType` looks for one name that an ALLOW has and that no DENY covers.
"""

from __future__ import annotations

from collections import defaultdict

from kraftd.acl import WILDCARD
from kraftd.ground.pace import Slices
from kraftd.security.acls.name_search import (
    FIRST_DENIAL,
    Found,
    Names,
    NameSearch,
    Question,
    Rule,
    Slot,
    has_name,
)

MAX_REMEMBERED = 1_000  # questions


class NamesByRule:
    """By resource type, kind of pattern, bit of permission, principal and host: the names of the patterns.

    The bits are those of the masks of ``AclIndex``.
    """

    def __init__(self) -> None:
        self._slots: defaultdict[Slot, dict[Rule, Names]] = defaultdict(dict)
        self._searches: dict[Question, NameSearch] = {}  # each goes on, or remembers its answer
        self._asked: dict[tuple[Slot, Rule], set[Question]] = {}  # with a search, by rule

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
        self._changed(slot, rule, name, slot[2] < FIRST_DENIAL)

    def remove(self, slot: Slot, rule: Rule, name: str) -> None:
        """Remove a name that the rule has."""
        rules = self._slots[slot]
        names = rules[rule]
        if type(names) is dict and len(names) > 1:
            del names[name]
        else:
            del rules[rule]
            for question in list(self._asked.get((slot, rule), ())):
                self._forget(question)
            return
        self._changed(slot, rule, name, slot[2] >= FIRST_DENIAL)

    def _changed(self, slot: Slot, rule: Rule, name: str, is_wider: bool) -> None:
        """Forget the answers that a change of a rule may have changed, and let searches look at the name.

        `is_wider`: the change can only allow more.
        """
        questions = self._asked.get((slot, rule))
        if not questions:
            return
        for question in list(questions):
            search = self._searches[question]
            if search.answer is None:
                search.changed(slot, name, is_wider)
            elif search.answer is not is_wider:
                self._forget(question)

    def _forget(self, question: Question) -> None:
        if self._searches.pop(question, None) is None:
            return
        for part in question:
            self._asked[part].discard(question)
            if not self._asked[part]:
                del self._asked[part]

    def any_is_allowed(
        self, resource_type: int, allows: tuple[int, ...], denies: tuple[int, ...], rules: tuple[Rule, ...]
    ) -> Slices[bool]:
        """Return whether a rule allows a name of the type by one of the bits, and none denies it.

        It is O(log ACLs) unless denials may cover every allowed name. Then the first question searches the
        names, in slices.
        """
        searched = None
        while True:
            allowed = (
                self._of(resource_type, True, allows, rules),
                self._of(resource_type, False, allows, rules),
            )
            if not (allowed[0] or allowed[1]):
                return False
            denied = (
                self._of(resource_type, True, denies, rules),
                self._of(resource_type, False, denies, rules),
            )
            if has_name(denied[0].values(), WILDCARD):
                return False
            if has_name(allowed[0].values(), WILDCARD) or not (denied[0] or denied[1]):
                return True
            question = (*allowed[0], *allowed[1], *denied[0], *denied[1])
            if searched not in (None, question):
                self._forget(searched)  # another rule belongs to it now
            searched = question
            search = self._search_of(question)
            if search.answer is None:
                search.advance(allowed, denied)
            if search.answer is not None:
                return search.answer
            yield  # the rules may be others afterwards

    def _search_of(self, question: Question) -> NameSearch:
        search = self._searches.get(question)
        if search is None:
            if len(self._searches) >= MAX_REMEMBERED:
                ended = [one for one, other in self._searches.items() if other.answer is not None]
                for one in ended or [next(iter(self._searches))]:
                    self._forget(one)
            search = self._searches[question] = NameSearch()
            for part in question:
                self._asked.setdefault(part, set()).add(question)
        return search

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
        return f"<NamesByRule {rules} rules, {len(self._searches)} remembered questions>"
