"""Distinguished names and certificates in DER, with values of any type, as issuers have made them."""

from __future__ import annotations

from random import Random

UTF8, PRINTABLE, TELETEX, IA5, GENERAL, BMP, UNIVERSAL = 0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E, 0x1C
OTHERS = (0x1A, 0x12, 0x04, 0x03, 0x15, 0x19, 0x30, 0x17)  # VisibleString, NumericString, OCTET STRING, ...
CN, C, L, ST, STREET, ORG, OU = ((2, 5, 4, number) for number in (3, 6, 7, 8, 9, 10, 11))
UID, DC = ((0, 9, 2342, 19200300, 100, 1, number) for number in (1, 25))
EMAIL, SERIAL_NUMBER, OWN = (1, 2, 840, 113549, 1, 9, 1), (2, 5, 4, 5), (2, 999, 2**40)
OIDS = (CN, C, L, ST, STREET, ORG, OU, UID, DC, EMAIL, SERIAL_NUMBER, OWN)

Oid = tuple[int, ...]
Attribute = tuple[Oid, int, bytes]


def der(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    length = bytes((size,)) if size < 0x80 else b"\x82" + size.to_bytes(2)
    if 0x80 <= size < 0x100:
        length = bytes((0x81, size))
    return bytes((tag,)) + length + content


def oid_of(numbers: Oid) -> bytes:
    found = bytearray()
    for number in (numbers[0] * 40 + numbers[1], *numbers[2:]):
        digits = [number & 0x7F]
        while number := number >> 7:
            digits.append(number & 0x7F | 0x80)
        found += bytes(reversed(digits))
    return bytes(found)


def name_of(*sets: tuple[Attribute, ...]) -> bytes:
    """A name with these relative distinguished names, their attributes in this order."""
    encoded = [
        der(0x31, *(der(0x30, der(6, oid_of(oid)), der(tag, value)) for oid, tag, value in attributes))
        for attributes in sets
    ]
    return der(0x30, *encoded)


def certificate_of(subject: bytes, not_after: bytes) -> bytes:
    """What is read of a certificate; its key and its signature are no real ones."""
    validity = der(0x30, der(0x17, b"200101000000Z"), not_after)
    algorithm = der(0x30, der(6, oid_of((1, 2, 840, 10045, 4, 3, 2))))
    fields = (der(0xA0, der(2, b"\x02")), der(2, b"\x01"), algorithm, der(0x30), validity, subject, der(0x30))
    return der(0x30, der(0x30, *fields), algorithm, der(3, b"\x00"))


def random_value(random: Random) -> tuple[int, bytes]:
    """The tag and the bytes of a value, mostly valid ones."""
    tag = random.choice((UTF8, PRINTABLE, TELETEX, IA5, GENERAL, BMP, UNIVERSAL, *OTHERS))
    text = "".join(random.choices('ab ,=+<>#;"\\éü\r\n\0€𝄞*Z.:í¢|@_', k=random.randrange(9)))
    if tag == 0x30:
        return tag, b""
    if random.random() < 0.1:
        return tag, random.randbytes(random.randrange(12))
    if tag in (BMP, UNIVERSAL):
        return tag, text.encode("utf-16-be" if tag == BMP else "utf-32-be")
    if tag in (TELETEX, IA5, PRINTABLE, GENERAL) and random.random() < 0.7:
        return tag, text.encode("latin-1", "ignore")
    return tag, text.encode() * random.choice((1, 1, 1, 40))


def random_name(random: Random) -> bytes:
    sets = []
    for _ in range(random.randint(1, 3)):
        count = random.choice((1, 1, 1, 2, 3))
        sets.append(tuple((random.choice(OIDS), *random_value(random)) for _ in range(count)))
    return name_of(*sets)
