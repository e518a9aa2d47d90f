"""Hypothesis strategies of any message in any version, derived from the field tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftd.messages import registry
from kraftd.wire.api import message_class
from kraftd.wire.message import Message
from kraftd.wire.table import FieldRow, MessageTable, StructTable, class_of, table_of, within

ALL_MESSAGES: list[str] = sorted(registry.MODULES)

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32}
# The highest tag in use is 8, so these are unknown to every version; Kafka cannot write 2**31 - 1.
UNKNOWN_TAGS = st.integers(100, 2**31 - 2) | st.sampled_from([100, 127, 128, 16383, 16384, 2**31 - 2])


def for_all(strategy: st.SearchStrategy[Message], check: Callable[[Message], None], examples: int) -> None:
    """Run a check on values of a strategy."""

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def run(value: Message) -> None:
        check(value)

    run()


def versions(name: str) -> range:
    """The valid versions of a message."""
    first, last = table_of(message_class(name)).valid
    return range(first, last + 1)


@cache
def messages(name: str, version: int, *, tags: bool = True) -> st.SearchStrategy[Message]:
    """Messages that the version can encode; with ``tags``, their structs may have unknown ones."""
    cls = message_class(name)
    table = table_of(cls)
    return structs(cls, table, table.root, version, tags and table.is_flexible(version))


def structs(
    cls: type[Message], table: MessageTable, struct: StructTable, version: int, tags: bool
) -> st.SearchStrategy[Message]:
    """Structs whose fields outside of the version have their defaults."""
    fields: dict[str, st.SearchStrategy[Any]] = {
        row.attribute: values(cls, table, row, version, tags)
        for row in struct.fields
        if within(version, row.versions)
    }
    if tags:
        fields["unknown_tags"] = st.just(()) | unknown_tags()
    return st.builds(class_of(cls, struct.name), **fields)


def unknown_tags() -> st.SearchStrategy[tuple[tuple[int, bytes], ...]]:
    """Unknown tags, in a decoder's order."""
    return st.dictionaries(UNKNOWN_TAGS, st.binary(max_size=8), max_size=2).map(
        lambda d: tuple(sorted(d.items()))
    )


def values(
    cls: type[Message], table: MessageTable, row: FieldRow, version: int, tags: bool
) -> st.SearchStrategy[Any]:
    """Values of a field, including its default, and null where the version allows it."""
    if row.is_primitive():
        one = primitives(row.type)
        many: st.SearchStrategy[Any] = st.lists(one, max_size=4).map(tuple)
    else:
        one = structs(cls, table, table.structs[row.type], version, tags)
        many = st.lists(one, max_size=2)
    strategy = many if row.array else one
    if row.is_primitive() and row.default is not None and not row.array:
        strategy = strategy | st.just(row.default_value())
    return st.none() | strategy if within(version, row.nullable) else strategy


@cache
def primitives(kind: str) -> st.SearchStrategy[Any]:
    """Values of a primitive type, including its bounds."""
    if kind in BITS:
        bits = BITS[kind]
        low, high = (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return st.integers(low, high) | st.sampled_from([low, high, 0])
    if kind == "bool":
        return st.booleans()
    if kind == "float64":
        return st.floats(allow_nan=False, allow_infinity=False)
    if kind == "uuid":
        return st.binary(min_size=16, max_size=16)
    if kind == "string":
        # Lengths around a varint's second byte, and characters of every length in UTF-8.
        return st.text(max_size=12) | st.integers(120, 130).map(lambda n: "x" * n) | st.just("é€𝄞" * 15)
    return st.binary(max_size=12) | st.integers(120, 130).map(bytes)
