"""Distinguished names as Java writes them (RFC 2253), because ACLs and mapping rules use that form.

Java knows the keywords of the RFC alone; other attributes become ``1.2.840…=#<DER in hex>``. It reads the
bytes of every text as UTF-8, also those of a BMPString: "ab" becomes ``\\00a\\00b``. So names are read from
their DER here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from kraftd.named_tuple import NamedTuple

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ESCAPED = ',=+<>#;"\\'

_SEQUENCE, _VERSION, _UTC_TIME = 0x30, 0xA0, 0x17
_UTF8, _PRINTABLE, _T61, _IA5, _GENERAL, _BMP = 0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E
# Java replaces an encoded surrogate as a whole, Python each of its bytes.
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_TEXTS = frozenset((_UTF8, _PRINTABLE, _T61, _IA5, _GENERAL, _BMP))  # to Java; a UniversalString is none

Value = tuple[int, bytes]
"""A DER value: its tag and its content."""


def rfc2253(name: bytes) -> str:
    """The text of a name in DER, the most specific part first. Raises ValueError."""
    ((tag, content),) = _values(name)
    if tag != _SEQUENCE:
        raise ValueError("a name is no sequence")
    return ",".join(
        "+".join(map(_attribute, _values(parts))) for _, parts in reversed(list(_values(content)))
    )


class Known(NamedTuple):
    """What a certificate says: its subject as Java writes it, when it expires, in ms since 1970, and both
    names in DER.
    """

    text: str
    ends_ms: int
    subject: bytes
    issuer: bytes


def read_certificate(certificate: bytes) -> Known:
    """What a certificate in DER says. Raises ValueError."""
    try:
        ((_, signed),) = _values(certificate)
        _, content = next(_values(signed))
        fields = [field for field in _values(content) if field[0] != _VERSION]
        _serial, _algorithm, issuer, (_, validity), subject, *_ = fields
        _begin, end = _values(validity)
        return Known(rfc2253(_encoded(subject)), _time_ms(end), _encoded(subject), _encoded(issuer))
    except Exception as error:  # a peer makes the bytes
        raise ValueError(f"the subject of its certificate cannot be read: {error}") from None


def _time_ms(value: Value) -> int:
    """A UTCTime or a GeneralizedTime in ms since 1970 (RFC 5280: in UTC, to the second)."""
    tag, content = value
    text = content.decode("ascii")
    if tag == _UTC_TIME:
        text = ("20" if text < "50" else "19") + text
    return int(datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()) * 1000


def _attribute(attribute: Value) -> str:
    (_, oid), value = _values(attribute[1])
    dotted = _dotted(oid)
    keyword = _KEYWORDS.get(dotted)
    tag, content = value
    if keyword is None or tag not in _TEXTS:
        return f"{keyword or dotted}=#{_encoded(value).hex()}"
    text = _SURROGATE.sub(b"\xff", content).decode("utf-8", "replace")
    # Java escapes blanks at either end, after it has escaped signs; "\r" counts as a blank to it.
    escaped = ["\\00" if sign == "\0" else f"\\{sign}" if sign in _ESCAPED else sign for sign in text]
    start = len(text) - len(text.lstrip(" \r"))
    end = len(text.rstrip(" \r"))
    return f"{keyword}=" + "".join(
        f"\\{sign}" if at < start or at >= end else sign for at, sign in enumerate(escaped)
    )


def _dotted(oid: bytes) -> str:
    numbers, number = [], 0
    for byte in oid:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    if not numbers or oid[-1] >= 0x80:
        raise ValueError("an object identifier is cut off")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _values(data: bytes) -> Iterator[Value]:
    """The DER values in some bytes. Raises ValueError."""
    at = 0
    while at < len(data):
        if len(data) - at < 2:
            raise ValueError("a DER value is cut off")
        tag, size = data[at], data[at + 1]
        at += 2
        if size >= 0x80:
            digits = size & 0x7F
            size = int.from_bytes(data[at : at + digits])
            at += digits
        if at + size > len(data):
            raise ValueError("a DER value is cut off")
        yield tag, data[at : at + size]
        at += size


def _encoded(value: Value) -> bytes:
    tag, content = value
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    digits = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(digits))) + digits + content
