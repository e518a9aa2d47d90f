"""Refuses a large request without decoding its elements, where the sender has no right to any.

A principal without rights may name a million topics. Each is refused for the same reason, and its row in the
answer repeats its name alone. So the rows are copied from the request's bytes in a thread. Where one error
refuses the whole request, no row is needed. An unusual request (a name twice, malformed bytes) is
decoded and answered as always: the answers are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from kraftd.acl import AclOperation, AclResourceType
from kraftd.named_tuple import NamedTuple
from kraftd.requests.call import Call
from kraftd.requests.refusals import element_class, refuse
from kraftd.types import ZERO_UUID
from kraftd.wire.api import ApiKey, flexible, request_class, response_class, valid_versions
from kraftd.wire.codec import encode_bytes
from kraftd.wire.engine import C_ENGINE, Repeated
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer
from kraftd.wire.slices import EncodedRows

PART_BYTES = 65_536
MAX_SAMPLE_ELEMENTS = 10
SAMPLE = "\ue000a name that no encoding contains by chance"
INNER_SAMPLE = 0x5AA55AA5


class UnreadRefusal(NamedTuple):
    """How an API refuses all elements, those of the arrays `elements` of its requests.

    The sender lacks `operation` on all resources of the type. `request` and `row` make a request of one
    element and the row of its refusal, for a name. `copied` is the field of the element that the row repeats,
    empty if it repeats none; elements that are strings are repeated themselves.
    `checked` is a field that has the same value in all elements as in the sample. `repeated` says how
    an element that is named twice is refused. `inner` is an array of the element, if its own elements are
    refused. Their rows follow the copied field, and begin with the field `inner_copied` of such an element.
    `applies` returns whether what the request has before its elements lets all be refused alike: version,
    frame, offset. With `only_rows`, the answer has no error beside those of its rows.
    """

    elements: tuple[str, ...]
    copied: str
    request: Callable[[str], Message]  # with one inner element, if there are any: INNER_SAMPLE
    response: type[Message]
    rows: str
    row: Callable[[str], Message]  # likewise
    code: ErrorCode
    operation: AclOperation
    type: AclResourceType
    checked: str = ""
    repeated: Repeated = Repeated.DECODED
    reserved: frozenset[str] = frozenset()  # names that are refused in another way
    inner: str = ""
    inner_copied: str = ""
    applies: Callable[[int, Buffer, int], bool] | None = None
    only_rows: bool = False


class UnreadRow(NamedTuple):
    """The columns of an UnreadRefusal that a row of routes has; the rest follows from the API's messages."""

    elements: tuple[str, ...]
    copied: str = ""
    repeated: Repeated = Repeated.KEPT
    inner: str = ""
    inner_copied: str = ""


@cache
def refusal_by_row(
    key: ApiKey, operation: AclOperation | None, unread: UnreadRow | None
) -> UnreadRefusal | None:
    """The refusal of all elements of an API's requests, for a sender without the operation on the cluster."""
    if operation is None or unread is None:
        return None
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    def request(name: str) -> Message:
        sample, field = request_class(key)(), unread.elements[0]
        setattr(sample, field, [_sample_element(type(sample), field, unread, name)])
        return sample

    def rows(name: str) -> dict[str, Message]:
        answer = refuse(key, valid_versions(key)[1], request(name), code, code.message)
        arrays = {field: getattr(answer, field) for field in answer.__struct_fields__}
        return {field: found[0] for field, found in arrays.items() if isinstance(found, list)}

    (rows_field,) = rows(SAMPLE)
    return UnreadRefusal(
        unread.elements,
        unread.copied,
        request,
        response_class(key),
        rows_field,
        lambda name: rows(name)[rows_field],
        code,
        operation,
        AclResourceType.CLUSTER,
        repeated=unread.repeated,
        inner=unread.inner,
        inner_copied=unread.inner_copied,
    )


def _sample_element(request: type[Message], field: str, unread: UnreadRow, name: str) -> Any:
    element: Any = element_class(request, field)
    if not unread.copied:
        return element()
    is_id = isinstance(getattr(element(), unread.copied), bytes)
    values: dict[str, Any] = {unread.copied: name.encode()[: len(ZERO_UUID)] if is_id else name}
    if unread.inner:
        inner: Any = element_class(element, unread.inner)
        values[unread.inner] = (INNER_SAMPLE,) if inner is None else [inner(INNER_SAMPLE)]
    return element(**values)


class WholeRefusal(NamedTuple):
    """How an API refuses a whole request by one error: `check` raises a Refusal with it.

    `applies` is that of an UnreadRefusal.
    """

    check: Callable[[Call], None]
    applies: Callable[[int, Buffer, int], bool] | None = None


class Refused(msgspec.Struct, frozen=True):
    """A call that is refused undecoded: the number of its elements, the encoded rows of the answer, and the
    number of rows within them.
    """

    call: Call
    refusal: UnreadRefusal | WholeRefusal
    count: int = 0
    rows: bytes = b""
    inner_count: int = 0

    @property
    def size(self) -> int:
        """The number of all rows, for what the refusal costs."""
        return self.count + self.inner_count

    @property
    def refused_count(self) -> int:
        """How many elements of the answer carry the error."""
        has_inner = isinstance(self.refusal, UnreadRefusal) and self.refusal.inner
        return self.inner_count if has_inner else self.count

    def encoded(self, refusal: UnreadRefusal) -> EncodedRows:
        """The rows in parts that a connection writes one at a time."""
        rows = EncodedRows(refusal.response, refusal.rows, self.call.version)
        view = memoryview(self.rows)
        for start in range(0, len(view), PART_BYTES):
            rows.add_encoded(view[start : start + PART_BYTES], 0 if start else self.count)
        return rows


def refuse_unread(
    call: Call, refusal: UnreadRefusal | WholeRefusal, frame: Buffer, offset: int, max_elements: int
) -> Refused | None:
    """Refuse a call or all its elements. Its message begins at an offset of the frame.

    None if the request must be decoded.
    """
    if C_ENGINE is None:
        return None
    key, version = call.key, call.version
    if refusal.applies is not None and not refusal.applies(version, frame, offset):
        return None
    if isinstance(refusal, WholeRefusal):
        cls = request_class(key)
        is_well_formed = C_ENGINE.rows_of_unread(
            cls, version, frame, offset, (), "", "", b"", Repeated.KEPT, b"", b"", "", "", b"", max_elements
        )
        return Refused(call, refusal) if is_well_formed else None
    template = _template(refusal, key, version)
    if template is None or (refusal.reserved and _holds(frame, refusal.reserved)):
        return None
    value, prefix, suffix, inner_suffix = template
    found = C_ENGINE.rows_of_unread(
        request_class(key),
        version,
        frame,
        offset,
        refusal.elements,
        refusal.copied,
        refusal.checked,
        value,
        refusal.repeated,
        prefix,
        suffix,
        refusal.inner,
        refusal.inner_copied,
        inner_suffix,
        max_elements,
    )
    return None if found is None else Refused(call, refusal, *found)


def _holds(frame: Buffer, names: frozenset[str]) -> bool:
    whole = bytes(frame)
    return any(name.encode() in whole for name in names)


@cache
def _template(refusal: UnreadRefusal, key: int, version: int) -> tuple[bytes, bytes, bytes, bytes] | None:
    """The bytes of the checked field, those before and after the copied one in a row; and of an inner row,
    those after its copied field.
    """
    engine, cls = C_ENGINE, request_class(key)
    assert engine is not None
    sample = encode_bytes(refusal.request(SAMPLE), version)

    def bytes_of(field: str) -> bytes | None:
        found = engine.rows_of_unread(
            cls,
            version,
            sample,
            0,
            refusal.elements,
            field,
            "",
            b"",
            Repeated.KEPT,
            b"",
            b"",
            "",
            "",
            b"",
            MAX_SAMPLE_ELEMENTS,
        )
        return None if found is None else found[1]

    copied, value = bytes_of(refusal.copied), bytes_of(refusal.checked) if refusal.checked else b""
    if copied is None or value is None:
        return None
    row = EncodedRows(refusal.response, refusal.rows, version).encode(refusal.row(SAMPLE))
    if not copied:
        return value, row, b"", b""
    before, found, after = row.partition(copied)
    if not found:
        return None
    if not refusal.inner:
        return value, before, after, b""
    rest = after.partition(INNER_SAMPLE.to_bytes(4))[2]
    tags = b"\0" if flexible(key, version) else b""  # of the row, behind those of the inner row
    return value, before, tags, rest.removesuffix(tags)
