"""What is read of a peer's certificate."""

from __future__ import annotations

import pytest

from kraftd.security.distinguished_names import read_certificate, rfc2253
from tests.security.der_names import (
    BMP,
    CN,
    EMAIL,
    GENERAL,
    IA5,
    ORG,
    OU,
    OWN,
    PRINTABLE,
    TELETEX,
    UNIVERSAL,
    UTF8,
    certificate_of,
    der,
    name_of,
)

NAME = name_of(((CN, UTF8, b"alice"),))


@pytest.mark.parametrize(
    ("tag", "value", "text"),
    [
        (UTF8, "Jürgen, 3".encode(), "Jürgen\\, 3"),
        (PRINTABLE, b" alice ", "\\ alice\\ "),
        (IA5, b"alice@example.com", "alice@example.com"),
        (GENERAL, b"alice", "alice"),
        (TELETEX, "Jürgen".encode("latin-1"), "J\ufffdrgen"),
        (BMP, "Jü".encode("utf-16-be"), "\\00J\\00\ufffd"),
        (BMP, "€".encode("utf-16-be"), " \ufffd".replace(" ", "\\ ")),
        (UNIVERSAL, "ab".encode("utf-32-be"), "#1c080000006100000062"),
        (UTF8, b"\xed\xa0\x80\xed\xa0x\xc3", "\ufffd\ufffdx\ufffd"),  # encoded surrogates, one cut off
        (0x04, b"alice", "#0405616c696365"),
    ],
)
def test_text_of_each_type_is_written_as_java_writes_it(tag: int, value: bytes, text: str) -> None:
    """The expected texts are those of Java 17's X500Principal; for text that is not UTF-8 they are odd."""
    assert rfc2253(name_of(((CN, tag, value),))) == f"CN={text}"


def test_attributes_without_a_keyword_in_the_rfc_are_written_as_der() -> None:
    name = name_of(((ORG, UTF8, b"a"),), ((EMAIL, IA5, b"a@b"),), ((OWN, UTF8, b"x" * 200),))
    assert rfc2253(name) == (
        "2.999.1099511627776=#0c81c8" + "78" * 200 + ",1.2.840.113549.1.9.1=#1603614062,O=a"
    )


def test_attributes_of_one_set_keep_their_order() -> None:
    assert rfc2253(name_of(((OU, UTF8, b"b"), (CN, UTF8, b"a")), ((ORG, UTF8, b"c"),))) == "O=c,OU=b+CN=a"


def test_name_is_read_where_the_order_of_a_set_is_wrong() -> None:
    """Java reads such a certificate too."""
    name = name_of(((OU, UTF8, b"b" * 9), (CN, UTF8, b"a")))
    text = read_certificate(certificate_of(name, der(0x17, b"300101000000Z"))).text
    assert text == "OU=bbbbbbbbb+CN=a"


@pytest.mark.parametrize(
    ("not_after", "ends_ms"),
    [
        (der(0x17, b"300101000000Z"), 1_893_456_000_000),
        (der(0x18, b"20300101000001Z"), 1_893_456_001_000),
        (der(0x17, b"700101000000Z"), 0),
        (der(0x18, b"99991231235959Z"), 253_402_300_799_000),
    ],
)
def test_end_of_a_certificate_is_read(not_after: bytes, ends_ms: int) -> None:
    assert read_certificate(certificate_of(NAME, not_after))[:2] == ("CN=alice", ends_ms)


@pytest.mark.parametrize(
    "certificate",
    [
        b"",
        b"\x30\x03\x02\x01\x01",
        certificate_of(NAME, der(0x17, b"soon")),
        certificate_of(NAME, der(0x17, b"300101000000Z"))[:-1],
        certificate_of(NAME[:-1], der(0x17, b"300101000000Z")),
        certificate_of(der(0x31), der(0x17, b"300101000000Z")),
        certificate_of(der(0x30, der(0x31, der(0x30, der(6), der(UTF8)))), der(0x17, b"300101000000Z")),
    ],
)
def test_bytes_that_are_no_certificate_are_refused(certificate: bytes) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        read_certificate(certificate)
