"""Row: one configuration key as one line of ``DaemonConfig``, from which settings, checks and docs are made.

A row names its key, the parser that makes the setting of the key's value, and what kraftd does with it. The
attribute that holds the row is its target: ``config.num_partitions`` is the setting of ``num.partitions``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from kraftd.configdef import facts
from kraftd.configdef.definition import Value

T = TypeVar("T")


class Unread(AttributeError):
    """The file has no usable value for this key, so whatever needs it is unknown."""


class Row(Generic[T]):
    """One key. ``parse`` gets its typed value, and raises ValueError with the remedy.

    ``definition`` is set for keys that Kafka 4.3's definition lacks, mostly kraftd's own.
    """

    def __init__(
        self, parse: Callable[[Value], T], key: str, text: str, *, definition: facts.Row | None = None
    ) -> None:
        self.parse = parse
        self.key = key
        self.text = text
        self.definition = definition
        self.target = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.target = name

    @overload
    def __get__(self, config: None, owner: type) -> Row[T]: ...
    @overload
    def __get__(self, config: object, owner: type) -> T: ...
    def __get__(self, config: object | None, owner: type) -> Row[T] | T:
        """Return the row itself, on the class; on a configuration the setting is found first."""
        if config is None:
            return self
        raise Unread(f"{self.key} has not been read")

    def __repr__(self) -> str:
        return f"<Row {self.key} -> {self.target}>"


def integer(key: str, text: str, **more: Any) -> Row[int]:
    return Row(_integer, key, text, **more)


def seconds_as_ms(key: str, text: str) -> Row[int]:
    """A key in seconds, its setting in milliseconds."""
    return Row(lambda value: _integer(value) * 1000, key, text)


def fraction(key: str, text: str, **more: Any) -> Row[float]:
    return Row(_float, key, text, **more)


def flag(key: str, text: str, **more: Any) -> Row[bool]:
    return Row(bool, key, text, **more)


def string(key: str, text: str, **more: Any) -> Row[str]:
    """A text, empty where it is not set."""
    return Row(lambda value: str(value or ""), key, text, **more)


def strings(key: str, text: str, **more: Any) -> Row[tuple[str, ...]]:
    return Row(as_strings, key, text, **more)


def own(key: str, kind: str, default: str, rule: facts.Rule | None = None) -> dict[str, facts.Row]:
    """The definition of a key that Kafka does not have, to be passed on to a row with ``**``."""
    return {"definition": (key, kind, default, rule, "")}


def as_strings(value: Value) -> tuple[str, ...]:
    """The items of a list; none where it is null."""
    return tuple(value) if isinstance(value, list) else ()


def _integer(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _float(value: Value) -> float:
    assert isinstance(value, float)
    return value
