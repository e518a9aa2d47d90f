"""``ssl.principal.mapping.rules``: from a certificate's distinguished name to the name of a principal.

As Kafka's SslPrincipalMapper: rules in order, the first that matches the whole name wins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_RULE = r"(DEFAULT)|RULE:((\\.|[^\\/])*)/((\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER = re.compile(_RULE)
_REFERENCE = re.compile(r"\\(.)|\$([0-9]*)", re.DOTALL)

Mapping = Callable[[str], str | None]


class NoMatchingRule(Exception):
    """No rule applies to a distinguished name: its owner has no principal here."""


class PrincipalMapper:
    """The rules of one listener. Raises ValueError for rules that cannot be read."""

    def __init__(self, rules: str) -> None:
        self.text = rules
        self._rules: Sequence[Mapping] = [mapping for rule in _split(rules) if (mapping := _mapping(rule))]

    def name(self, distinguished_name: str) -> str:
        """The principal's name for an RFC 2253 distinguished name. Raises NoMatchingRule."""
        for rule in self._rules:
            name = rule(distinguished_name)
            if name is not None:
                return name
        raise NoMatchingRule(f"no rule of ssl.principal.mapping.rules={self.text} applies")

    def __repr__(self) -> str:
        return f"<PrincipalMapper {self.text}>"


def _split(rules: str) -> list[str]:
    return [match[1] for match in _SPLITTER.finditer(rules.strip())]


def _mapping(rule: str) -> Mapping | None:
    """The function of one rule; None for an empty one."""
    match = _PARSER.match(rule)
    if match is None or match.end() < len(rule):  # as in Kafka, which allows nothing behind L or U
        raise ValueError(f"{rule!r} is no rule; write DEFAULT or RULE:pattern/replacement/ with L or U")
    if match[1]:
        return lambda name: name
    if match[2] is None:
        return None
    try:
        pattern = re.compile(match[2], re.ASCII)  # Java's classes, and its (?i), know ASCII alone
    except re.error as error:
        raise ValueError(f"{match[2]!r} is no pattern: {error}") from None
    replacement, change = match[4], match[6]

    def apply(name: str) -> str | None:
        if pattern.fullmatch(name) is None:
            return None
        mapped = pattern.sub(lambda found: _expand(replacement, found), name)
        return mapped.lower() if change == "L" else mapped.upper() if change == "U" else mapped

    return apply


def _expand(replacement: str, found: re.Match[str]) -> str:
    """Java's replacement with ``$1``: a number without a group loses its last digits until it names one, else
    it is literal.

    Raises NoMatchingRule for a replacement that Java refuses: a ``$`` without a number, or without any group.
    """
    groups = found.re.groups

    def value(reference: re.Match[str]) -> str:
        if reference[1] is not None:
            return reference[1]
        digits, rest = reference[2], ""
        if not digits or (groups == 0 and digits[0] != "0"):
            raise NoMatchingRule(f"the replacement {replacement} refers to no group of its pattern")
        while len(digits) > 1 and int(digits) > groups:
            digits, rest = digits[:-1], digits[-1] + rest
        if int(digits) > groups:
            return f"${digits}{rest}"
        return (found[int(digits)] or "") + rest

    return _REFERENCE.sub(value, replacement)
