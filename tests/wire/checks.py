"""Checks that kraftd's codecs and Kafka's agree on one message; AssertionError if they do not."""

from __future__ import annotations

from kraftd.wire.codec import decode, encode_bytes
from kraftd.wire.errors import UnsupportedFieldError
from kraftd.wire.message import Message
from kraftd.wire.table import table_of
from tests.wire.java_json import to_json, without_records
from tests.wire.oracle import Oracle, Refused


def check_same_bytes_and_value(oracle: Oracle, version: int, message: Message) -> None:
    """Kafka must decode the bytes to the same value, and encode this and its JSON to them."""
    table = table_of(type(message))
    data = encode_bytes(message, version)
    assert decode(type(message), version, data) == message
    text, again = oracle.decode(table.name, version, data)
    assert again == data
    value = to_json(message, version)
    assert without_records(table, table.root, text) == without_records(table, table.root, value)
    if not holds_unknown_tags(message):
        assert oracle.encode(table.name, version, value) == data


def check_same_in_other_version(oracle: Oracle, version: int, other: int, message: Message) -> None:
    """A message read in one version is written in another with Kafka's bytes, or refused as by Kafka."""
    name = table_of(type(message)).name
    data = encode_bytes(message, version)
    try:
        expected: bytes | str = oracle.transcode(name, version, other, data)
    except Refused as refused:
        # The message has a field, a tag or a null that the version lacks.
        assert refused.kind in ("UnsupportedVersionException", "NullPointerException"), refused
        expected = "refused"
    try:
        actual: bytes | str = encode_bytes(decode(type(message), version, data), other)
    except UnsupportedFieldError:
        actual = "refused"
    assert actual == expected


def holds_unknown_tags(value: object) -> bool:
    """Return whether a message has an unknown tag anywhere: JSON cannot hold these."""
    if isinstance(value, list):
        return any(holds_unknown_tags(item) for item in value)
    if isinstance(value, Message):
        return bool(getattr(value, "unknown_tags", ())) or any(
            holds_unknown_tags(getattr(value, attribute)) for attribute in value.__struct_fields__
        )
    return False
