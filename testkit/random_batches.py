"""Batches as producers send them, sound or wrong in one thing or a few, made from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from struct import Struct

from kraftd.wire.compression import compress
from kraftd.wire.crc32c import crc32c

NOW_MS = 1_700_000_000_000
HEADER = Struct(">qiibIhiqqqhii")
EDGES = (-1, 0, 1, 2, (1 << 31) - 1, -(1 << 31))
LONG_EDGES = (*EDGES, (1 << 63) - 1, -(1 << 63))


def varint(value: int) -> bytes:
    """A number as a zig-zag varint."""
    value = value << 1 ^ (-1 if value < 0 else 0)
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def long_varint(value: int) -> bytes:
    """The same with a byte more than necessary."""
    short = varint(value)
    return short[:-1] + bytes((short[-1] | 128, 0))


@dataclass
class Parts:
    """A batch before it is written; a test may change any part."""

    records: list[bytes]
    base_offset: int = 0
    leader_epoch: int = -1
    magic: int = 2
    attributes: int = 0
    last_offset_delta: int = 0
    base_timestamp: int = NOW_MS
    max_timestamp: int = NOW_MS
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    count: int = 0
    codec: int = 0
    body: bytes | None = None  # in place of the compressed records
    behind: bytes = b""
    crc_change: int = 0
    length_change: int = 0

    def encoded(self) -> bytes:
        body = compress(self.codec, b"".join(self.records)) if self.body is None else self.body
        batch = bytearray(HEADER.size) + body
        attributes = self.attributes & ~7 | self.codec
        HEADER.pack_into(
            batch, 0, self.base_offset, len(batch) - 12 + self.length_change, self.leader_epoch, self.magic,
            0, attributes - 65536 if attributes > 32767 else attributes, self.last_offset_delta,
            self.base_timestamp, self.max_timestamp, self.producer_id, self.producer_epoch,
            self.base_sequence, self.count,
        )  # fmt: skip
        crc = crc32c(memoryview(batch)[21:]) ^ self.crc_change
        batch[17:21] = crc.to_bytes(4, "big")
        return bytes(batch) + self.behind


def random_record(random: Random, timestamp_delta: int, offset_delta: int, odd: bool) -> bytes:
    """A record; an odd one may have lengths that are wrong."""

    def length(value: int) -> bytes:
        if odd and random.random() < 0.15:
            return random.choice((varint(random.choice(EDGES)), long_varint(value), varint(value + 1)))
        return varint(value)

    parts = [bytes((random.choice((0, 0, 0, 3, 255)),)), varint(timestamp_delta), varint(offset_delta)]
    for chance in (0.4, 0.15):
        if random.random() < chance:
            parts.append(varint(random.choice((-1, -1, -5)) if odd else -1))
        else:
            content = random.randbytes(random.choice((0, 1, 3, 70, 200)))
            parts += (length(len(content)), content)
    headers = random.choice((0, 0, 0, 1, 3))
    parts.append(length(headers))
    for _ in range(headers):
        name = random.choice((b"", b"h", b"header"))
        parts += (length(len(name)), name)
        if random.random() < 0.3:
            parts.append(varint(-1))
        else:
            parts += (length(2), b"ab")
    body = b"".join(parts)
    return length(len(body)) + body


def random_parts(random: Random, odd_chance: float = 0.5) -> Parts:
    """A batch of some records, of any codec."""
    odd = random.random() < odd_chance
    count = random.choice((1, 1, 2, 3, 10, 40))
    base = NOW_MS + random.choice((0, 0, 0, 5000, -5000, 10_000_000, -10_000_000))
    if odd and random.random() < 0.2:
        base = random.choice((-1, -1, 0, *LONG_EDGES))
    timestamps = [0, *(random.choice((0, 1, 5, -3, 100_000)) for _ in range(count - 1))]
    if odd and random.random() < 0.3:
        timestamps[random.randrange(count)] = random.choice((-base - 1, 1 << 40, -(1 << 40), (1 << 63) - 1))
    deltas = list(range(count))
    if odd and random.random() < 0.2:
        deltas[random.randrange(count)] = random.choice((0, count, 7, -1))
    timestamps = [(delta + (1 << 63)) % (1 << 64) - (1 << 63) for delta in timestamps]
    records = [
        random_record(random, delta, offset, odd and random.random() < 0.3)
        for delta, offset in zip(timestamps, deltas, strict=True)
    ]
    most = max((base + delta + (1 << 63)) % (1 << 64) - (1 << 63) for delta in timestamps)
    parts = Parts(records, base_timestamp=base, max_timestamp=most, count=count, last_offset_delta=count - 1)
    parts.codec = random.choice((0, 0, 0, 1, 2, 3, 4))
    if random.random() < 0.4:
        parts.producer_id, parts.producer_epoch, parts.base_sequence = 1000, 3, random.choice((0, 7))
        parts.attributes |= random.choice((0, 16))
    if odd:
        for _ in range(random.choice((0, 1, 1, 2))):
            random.choice(CHANGES)(random, parts)
    return parts


def _number(name: str, edges: tuple[int, ...]) -> Callable[[Random, Parts], None]:
    def change(random: Random, parts: Parts) -> None:
        now: int = getattr(parts, name)
        more = now + 1 if now + 1 not in (1 << 63, 1 << 31, 1 << 15, 1 << 7) else 0
        setattr(parts, name, random.choice((random.choice(edges), more)))

    return change


def _attributes(random: Random, parts: Parts) -> None:
    parts.attributes ^= random.choice((8, 8, 16, 32, 64, 128, 256))


def _codec_only(random: Random, parts: Parts) -> None:
    """Another codec's bits than the records have."""
    if parts.body is None:
        parts.body = compress(parts.codec, b"".join(parts.records))
    parts.codec = random.randrange(8)


def _damaged_body(random: Random, parts: Parts) -> None:
    body = bytearray(compress(parts.codec, b"".join(parts.records)) if parts.body is None else parts.body)
    if body:
        body[random.randrange(len(body))] ^= 1 << random.randrange(8)
        parts.body = bytes(body)


def _cut_body(random: Random, parts: Parts) -> None:
    body = compress(parts.codec, b"".join(parts.records)) if parts.body is None else parts.body
    parts.body = body[: random.randrange(len(body) + 1)]


def _behind(random: Random, parts: Parts) -> None:
    parts.behind = random.choice((b"x", bytes(12), bytes(17), parts.encoded(), b"\xff" * 30))


def _more_records(random: Random, parts: Parts) -> None:
    parts.records.append(random.choice((b"\x00", b"\x0c" + bytes(6), parts.records[0])))


CHANGES = (
    _number("base_offset", (5, -1)), _number("magic", (0, 1, 3, -1, 127)), _attributes, _attributes,
    _codec_only, _number("last_offset_delta", EDGES), _number("base_timestamp", LONG_EDGES),
    _number("max_timestamp", LONG_EDGES), _number("producer_id", LONG_EDGES),
    _number("producer_epoch", (-1, 0, 32767, -5)), _number("base_sequence", EDGES), _number("count", EDGES),
    _damaged_body, _cut_body, _behind, _more_records, _number("crc_change", (1,)),
    _number("length_change", (1, -1, -40, 1000)),
)  # fmt: skip
