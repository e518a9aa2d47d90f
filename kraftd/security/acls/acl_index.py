"""ACLs compiled for decisions on a principal's operation on a resource, in O(log ACLs).

An ACL becomes a bit in a mask, found by resource pattern, principal and host. A decision looks at the literal
name, at the wildcard and at every stored prefix of the name; Kafka's StandardAuthorizerData gives the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from kraftd.acl import WILDCARD, WILDCARD_PRINCIPAL, AclOperation, AclPatternType, AclPermission
from kraftd.ground.pace import Slices
from kraftd.metadata.state import AclState
from kraftd.security.acls.hosts import canonical_host
from kraftd.security.acls.names_by_rule import NamesByRule
from kraftd.security.acls.sorted_names import SortedNames

_DENY_SHIFT = 32
_ALL = 1 << AclOperation.ALL
_ALLOW, _LITERAL = int(AclPermission.ALLOW), int(AclPatternType.LITERAL)  # an int is compared faster

# The ACLs of one resource pattern, by (principal, host): the bits of allowed operations and, shifted by
# _DENY_SHIFT, those of denied ones.
Rules = dict[tuple[str, str], int]


def _implied_by(operation: int) -> int:
    """The bits each of which allows the operation."""
    bits = 1 << operation | _ALL
    if operation == AclOperation.DESCRIBE:
        for other in (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER):
            bits |= 1 << other
    elif operation == AclOperation.DESCRIBE_CONFIGS:
        bits |= 1 << AclOperation.ALTER_CONFIGS
    return bits


_ALLOWS = [_implied_by(operation) for operation in range(128)]
_DENIES = [(1 << operation | _ALL) << _DENY_SHIFT for operation in range(128)]


class Match:
    """The ACLs' verdict on one operation; `of_resource`: whether any ACL covers the resource."""

    __slots__ = ("allowed", "denied", "of_resource")

    def __init__(self, allowed: bool, denied: bool, of_resource: bool) -> None:
        self.allowed = allowed
        self.denied = denied
        self.of_resource = of_resource

    def __repr__(self) -> str:
        return f"<Match {'denied' if self.denied else 'allowed' if self.allowed else 'none'}>"


class AclIndex:
    """A multiset of ACLs that decides."""

    def __init__(self, acls: Iterable[AclState] = ()) -> None:
        self.count = 0
        self._literal: dict[tuple[int, str], Rules] = {}
        self._prefixed: dict[tuple[int, str], Rules] = {}
        self._prefixes: dict[int, SortedNames] = {}  # by resource type
        self._repeated: dict[AclState, int] = {}  # further copies of an ACL
        self._names = NamesByRule()
        for acl in acls:
            self.add(acl)

    def add(self, acl: AclState) -> None:
        """Add an ACL."""
        self.count += 1
        acl = _with_canonical_host(acl)
        pattern, rule_key, bit = (acl.resource_type, acl.resource_name), (acl.principal, acl.host), _bit(acl)
        is_literal = _is_literal(acl)
        patterns = self._literal if is_literal else self._prefixed
        rules = patterns.get(pattern)
        if rules is None:
            patterns[pattern] = {rule_key: bit}
            if not is_literal:
                names = self._prefixes.get(acl.resource_type)
                if names is None:
                    names = self._prefixes[acl.resource_type] = SortedNames()
                names.add(acl.resource_name)
        else:
            mask = rules.get(rule_key, 0)
            if mask & bit:
                self._repeated[acl] = self._repeated.get(acl, 0) + 1
                return
            rules[rule_key] = mask | bit
        self._names.add((acl.resource_type, is_literal, bit), rule_key, acl.resource_name)

    def remove(self, acl: AclState) -> None:
        """Remove an existing ACL."""
        self.count -= 1
        acl = _with_canonical_host(acl)
        repeated = self._repeated.pop(acl, 0)
        if repeated:
            if repeated > 1:
                self._repeated[acl] = repeated - 1
            return
        pattern, bit, is_literal = (acl.resource_type, acl.resource_name), _bit(acl), _is_literal(acl)
        patterns = self._literal if is_literal else self._prefixed
        rules, rule_key = patterns[pattern], (acl.principal, acl.host)
        self._names.remove((acl.resource_type, is_literal, bit), rule_key, acl.resource_name)
        left = rules[rule_key] & ~bit
        if left:
            rules[rule_key] = left
            return
        del rules[rule_key]
        if not rules:
            del patterns[pattern]
            if patterns is self._prefixed:
                self._prefixes[acl.resource_type].remove(acl.resource_name)

    def match(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> Match:
        """The ACLs' verdict on an operation of this principal, from this host, on a resource.

        A host is an address as ``canonical_host`` writes it, here and below.
        """
        found = False
        mask = 0
        for rules in self._about(resource_type, name):
            found = True
            mask |= _mask(rules, principal, host)
        return Match(bool(mask & _ALLOWS[operation]), bool(mask & _DENIES[operation]), found)

    def allows_by_name(
        self, principal: str, host: str, operation: int, resource_type: int, name: str
    ) -> bool:
        """Return whether an ACL with exactly this name allows the operation; no denial is looked for."""
        rules = self._literal.get((resource_type, name))
        return rules is not None and bool(_mask(rules, principal, host) & _ALLOWS[operation])

    def rule(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> str:
        """The ACL behind a decision, as text for the audit; empty if none matches."""
        for permission, wanted in (("DENY", _DENIES[operation]), ("ALLOW", _ALLOWS[operation])):
            for pattern, kind, rules in self._patterns_about(resource_type, name):
                for rule_key in _rule_keys(principal, host):
                    bits = rules.get(rule_key, 0) & wanted
                    if bits:
                        bit = (bits & -bits).bit_length() - 1
                        done = AclOperation(bit - _DENY_SHIFT if permission == "DENY" else bit).name
                        return f"{permission} {done} for {rule_key[0]} from {rule_key[1]} on {kind} {pattern}"
        return ""

    def may_on_any(self, principal: str, host: str, operation: int, resource_type: int) -> Slices[bool]:
        """Return whether the ACLs allow the operation on at least one resource of a type; in slices.

        As in the default authorizeByResourceType of Kafka's Authorizer, implied operations do not count.
        """
        allows = 1 << operation, _ALL
        denies = 1 << operation + _DENY_SHIFT, _ALL << _DENY_SHIFT
        return self._names.any_is_allowed(resource_type, allows, denies, _rule_keys(principal, host))

    def has_allowance(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Return whether an ACL allows the operation on a resource of the type, even if another denies it."""
        bits = _ALLOWS[operation]
        rules = _rule_keys(principal, host)
        while bits:
            bit = bits & -bits
            bits ^= bit
            if self._names.has_any(resource_type, bit, rules):
                return True
        return False

    def _about(self, resource_type: int, name: str) -> Iterator[Rules]:
        """The rules of every pattern that matches a resource."""
        literal = self._literal
        rules = literal.get((resource_type, name))
        if rules is not None:
            yield rules
        # Kafka's search passes over the wildcard for a name that begins with it.
        if not name.startswith(WILDCARD):
            rules = literal.get((resource_type, WILDCARD))
            if rules is not None:
                yield rules
        names = self._prefixes.get(resource_type)
        if names is not None:
            for prefix in _prefixes_of(name, names):
                yield self._prefixed[resource_type, prefix]

    def _patterns_about(self, resource_type: int, name: str) -> Iterator[tuple[str, str, Rules]]:
        """As `_about`, with the name and the kind of each pattern."""
        for literal in (name, WILDCARD):
            if literal == name or not name.startswith(WILDCARD):
                rules = self._literal.get((resource_type, literal))
                if rules is not None:
                    yield literal, "LITERAL", rules
        names = self._prefixes.get(resource_type)
        if names is not None:
            for prefix in _prefixes_of(name, names):
                yield prefix, "PREFIXED", self._prefixed[resource_type, prefix]

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"<AclIndex {self.count} ACLs of {len(self._literal)} names, {len(self._prefixed)} prefixes>"


def _with_canonical_host(acl: AclState) -> AclState:
    host = acl.host
    if host == WILDCARD or (canonical := canonical_host(host)) == host:
        return acl
    return msgspec.structs.replace(acl, host=canonical)


def _is_literal(acl: AclState) -> bool:
    return acl.pattern_type == _LITERAL


def _bit(acl: AclState) -> int:
    # Kafka treats every permission but ALLOW as a denial.
    return 1 << (acl.operation if acl.permission_type == _ALLOW else acl.operation + _DENY_SHIFT)


def _rule_keys(principal: str, host: str) -> tuple[tuple[str, str], ...]:
    """The keys of rules that concern a principal on a host."""
    return (
        (principal, host),
        (principal, WILDCARD),
        (WILDCARD_PRINCIPAL, host),
        (WILDCARD_PRINCIPAL, WILDCARD),
    )


def _mask(rules: Rules, principal: str, host: str) -> int:
    get = rules.get
    return (
        get((principal, WILDCARD), 0)
        | get((principal, host), 0)
        | get((WILDCARD_PRINCIPAL, WILDCARD), 0)
        | get((WILDCARD_PRINCIPAL, host), 0)
    )


def _prefixes_of(name: str, names: SortedNames) -> Iterator[str]:
    """The names that are prefixes of `name`, longest first."""
    candidate = names.last_up_to(name)
    while candidate is not None:
        if name.startswith(candidate):
            yield candidate
            candidate = names.last_before(candidate)
        else:
            # All remaining prefixes of the name are prefixes of the common part.
            candidate = names.last_up_to(name[: _common_length(name, candidate)])


def _common_length(first: str, second: str) -> int:
    """How many characters two texts have in common from their start."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first.startswith(second[:middle]):
            low = middle
        else:
            high = middle - 1
    return low
