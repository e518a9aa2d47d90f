"""The base of every message's Struct, and the shape of a message's field table.

A table is plain data (tuples of texts, integers and None), so that an engine in any language can
read it.  An inclusive range of versions is ``(first, last)``, last 32767 where it is open.
"""

from __future__ import annotations

from msgspec import Struct

Range = tuple[int, int]

Row = tuple[
    str,  # attribute of the Struct
    str,  # Kafka's name of the field
    str,  # int32, string, ... or the name of a struct of this message
    int,  # 1 when it is an array of that type
    Range,  # versions that have the field
    Range | None,  # versions in which it can be null
    Range | None,  # versions in which it is a tagged field
    int | None,  # its tag
    Range | None,  # versions with compact lengths, where they are not those of the message; (0, -1) is never
    int,  # 1 when a version without the field drops its value, 0 when that is an error
    int | str | None,  # default: None is null; "" is empty, for whatever is not a number or a string
]

Table = tuple[
    str,  # name of the message and of its first struct
    int | None,  # API key, or key of a metadata record
    str,  # request, response, header, metadata, data
    Range,  # valid versions
    Range | None,  # flexible versions
    tuple[tuple[str, tuple[Row, ...]], ...],  # structs, the message itself first
]


class Message(Struct, gc=False, repr_omit_defaults=True):
    """A message or a struct of one; the same class for all versions.

    A uuid is 16 bytes, an array of primitives a tuple, an array of structs a list. ``records`` are bytes, or
    a view of the bytes that were decoded.  ``unknown_tags``, where a message has flexible versions, holds
    tagged fields that are not in its schema; they are written back as they came.
    """
