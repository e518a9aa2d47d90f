"""Distinguished names as Java writes them (RFC 2253), because ACLs and mapping rules use that form.

Java knows the keywords of the RFC alone; other attributes become ``1.2.840…=#<DER in hex>``.
"""

from __future__ import annotations

from cryptography import x509
from cryptography.x509.oid import NameOID, ObjectIdentifier

_KEYWORDS: dict[ObjectIdentifier, str] = {
    NameOID.COMMON_NAME: "CN",
    NameOID.COUNTRY_NAME: "C",
    NameOID.LOCALITY_NAME: "L",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.STREET_ADDRESS: "STREET",
    NameOID.DOMAIN_COMPONENT: "DC",
    NameOID.USER_ID: "UID",
}
_ESCAPED = ',=+<>#;"\\'


def rfc2253(name: x509.Name) -> str:
    """The text of a name, the most specific part first."""
    return ",".join(
        # The parts of a set are in the order of their encodings.
        "+".join(map(_attribute, sorted(rdn, key=_attribute_der)))
        for rdn in reversed(list(name.rdns))
    )


def subject_and_end(certificate: bytes) -> tuple[str, int]:
    """The subject of a certificate in DER, and when it expires, in ms since 1970. Raises ValueError."""
    try:
        loaded = x509.load_der_x509_certificate(certificate)
        return rfc2253(loaded.subject), int(loaded.not_valid_after_utc.timestamp() * 1000)
    except Exception as error:  # a peer makes the bytes; the library has errors of many classes
        raise ValueError(f"the subject of its certificate cannot be read: {error}") from None


def _attribute(attribute: x509.NameAttribute[str | bytes]) -> str:
    keyword = _KEYWORDS.get(attribute.oid)
    if keyword is None or not isinstance(attribute.value, str):
        return f"{keyword or attribute.oid.dotted_string}=#{_value_der(attribute).hex()}"
    text = attribute.value
    # Java escapes blanks at either end, after it has escaped signs; "\r" counts as a blank to it.
    escaped = ["\\00" if sign == "\0" else f"\\{sign}" if sign in _ESCAPED else sign for sign in text]
    start = len(text) - len(text.lstrip(" \r"))
    end = len(text.rstrip(" \r"))
    return f"{keyword}=" + "".join(
        f"\\{sign}" if at < start or at >= end else sign for at, sign in enumerate(escaped)
    )


def _attribute_der(attribute: x509.NameAttribute[str | bytes]) -> bytes:
    """SEQUENCE { oid, value }; a name of one attribute has it in a SET in a SEQUENCE."""
    data = x509.Name([x509.RelativeDistinguishedName([attribute])]).public_bytes()
    for _ in range(2):
        data = data[_header_size(data) :]
    return data


def _value_der(attribute: x509.NameAttribute[str | bytes]) -> bytes:
    data = _attribute_der(attribute)
    data = data[_header_size(data) :]
    return data[_header_size(data) + data[1] :]


def _header_size(data: bytes) -> int:
    return 2 if data[1] < 0x80 else 2 + (data[1] & 0x7F)
