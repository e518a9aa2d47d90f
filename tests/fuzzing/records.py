"""Gives hostile batches of data partitions to the record engine in C and to the one in Python: equal
outcomes.

``python -m tests.fuzzing.records BUILD SECONDS [SEED]``, where BUILD is one with sanitizers (`sanitized.py`).
"""

from __future__ import annotations

import ctypes
import sys
import threading
from random import Random
from typing import Any

from kraftd.groups.consumer.metadata_hash import partition_bytes
from kraftd.groups.consumer.xxh3 import add_blocks
from kraftd.messages.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraftd.wire import python_records
from kraftd.wire.compression import DecompressionError, decompress
from kraftd.wire.frames import encode_response
from kraftd.wire.records import Options, Outcome
from testkit.keyed_batches import keyed_batch
from testkit.random_batches import LONG_EDGES, NOW_MS, Parts, random_parts
from testkit.random_messages import damaged
from tests.fuzzing.hostile import exact, fuzz, outcome, without_memory

MOST_BODY_BYTES = 1 << 20


def writable(data: bytes) -> memoryview:
    """The bytes in memory that ends right behind them, and may be changed."""
    return memoryview((ctypes.c_ubyte * len(data)).from_buffer_copy(data)).cast("B")


def rules(random: Random) -> tuple[int, ...]:
    """The numbers behind data and body."""
    return (
        NOW_MS,
        random.choice((0, 1, 1 << 40)),
        random.choice((0, 7)),
        random.choice((1 << 20, 1 << 20, 100)),
        random.choice(((1 << 63) - 1, 3_600_000, 0)),
        random.choice((3_600_000, 0, (1 << 63) - 1)),
        random.choice((-1, -1, 0, 1, 4)),
        random.choice((1, 1, 3, 5, 9, random.randrange(64))),
    )


def hostile(random: Random) -> bytes:
    data = random_parts(random).encoded()
    return damaged(random, data) if random.random() < 0.2 else data


def fuzz_judging(random: Random, c: Any) -> None:
    data, numbers = hostile(random), rules(random)
    mine, twin = writable(data), bytearray(data)
    found, expected = (
        outcome(c.judge, mine, None, *numbers),
        outcome(python_records.judge, twin, None, *numbers),
    )
    assert found == expected and bytes(mine) == twin, (data, numbers, found, expected)
    without_memory(random, c.judge, writable(data), None, *numbers)
    codec = data[22] & 7 if len(data) > 22 else 0
    try:
        body = bytes(decompress(codec, memoryview(data)[61:], MOST_BODY_BYTES)) if codec else data[61:]
    except DecompressionError:
        body = data[61:]
    if random.random() < 0.3:
        body = damaged(random, body)
    options = numbers[-1] & ~Options.KEEP | random.choice((0, Options.LENIENT, Options.KEEP))
    numbers = (*numbers[:-1], options)
    mine, twin = writable(data), bytearray(data)
    found = outcome(c.judge, mine, exact(body), *numbers)
    expected = outcome(python_records.judge, twin, body, *numbers)
    assert found == expected and bytes(mine) == twin, (data, body, numbers, found, expected)
    without_memory(random, c.judge, writable(data), body, *numbers)


def fuzz_reading(random: Random, c: Any) -> None:
    parts = random_parts(random, 0.3)
    parts.codec = 0
    data = parts.encoded()
    if random.random() < 0.3:
        data = damaged(random, data)
    view = exact(data)
    for name in ("decode_records", "rewrite"):
        found, expected = outcome(getattr(c, name), view), outcome(getattr(python_records, name), data)
        assert found == expected, (name, data, found, expected)
        without_memory(random, getattr(c, name), view)
    target = NOW_MS + random.choice((-10_000_000, 0, 1, 100_000, 1 << 60))
    for asked in (
        (target, 0, False),
        (target, random.choice((0, 3)), True),
        (*random.choices(LONG_EDGES, k=2), False),
    ):
        found, expected = (outcome(one.find_timestamp, data, *asked) for one in (c, python_records))
        assert found == expected, (data, asked, found, expected)
        outcome(c.find_timestamp, view, *asked)


def fuzz_headers(random: Random, c: Any) -> None:
    data = b"".join(random_parts(random, 0.1).encoded() for _ in range(random.randrange(4)))
    if random.random() < 0.5:
        data = damaged(random, data)
    at, most = random.choice((0, 0, 0, random.randrange(len(data) + 2))), random.choice((1, 2, 100))
    verify = random.random() < 0.7
    found = outcome(c.batch_headers, exact(data), at, most, verify)
    expected = outcome(python_records.batch_headers, data, at, most, verify)
    assert found == expected, (data, at, most, verify, found, expected)
    without_memory(random, c.batch_headers, data, at, most, verify)
    offsets = [random.choice((0, 1, 5, 20, *LONG_EDGES)) for _ in range(3)]
    for name, asked in (
        ("verify_batches", (at, offsets[0], random.choice((-1, 0, 7)))),
        ("select_batches", (offsets[0], random.choice((0, 1, 100, 1000, 1 << 40)), *offsets[1:])),
    ):
        found, expected = (outcome(getattr(one, name), data, *asked) for one in (c, python_records))
        assert found == expected, (name, data, asked, found, expected)
        without_memory(random, getattr(c, name), exact(data), *asked)
    assert c.crc32c(exact(data)) == c.crc32c_by_tables(data) == python_records.crc32c(data)
    lanes = [random.getrandbits(64) for _ in range(random.choice((8, 8, 8, 7)))]
    blocks = data[: len(data) // 1024 * 1024 + random.choice((0, 0, 0, 1))]
    if len(lanes) == 8 and len(blocks) % 1024 == 0:
        assert c.xxh3_blocks(lanes, exact(blocks)) == add_blocks(lanes, blocks)
    else:
        outcome(c.xxh3_blocks, lanes, exact(blocks))


def fuzz_answers(random: Random, c: Any) -> None:
    """Answers to fetches, mostly with nothing but records."""
    topics = []
    for _ in range(random.choice((1, 1, 0, 2))):
        parts = []
        for _ in range(random.choice((1, 1, 0, 3))):
            end, data = random.choice((0, 5)), b""
            for _ in range(random.choice((0, 1, 1, 2))):
                attributes, epoch = random.choice((0, 0, 0, 16, 32)), random.choice((3, 3, 3, 4))
                data += keyed_batch([(None, b"value")], end, epoch, NOW_MS, attributes=attributes)
                end += random.choice((1, 1, 1, 2))
            part = PartitionData(random.randrange(3), random.choice((0, 0, 0, 0, 6)), end, end, 0)
            part.records = data or random.choice((data, None))
            part.aborted_transactions = random.choice((None, [], None, [AbortedTransaction(1, 2)]))
            if random.random() < 0.1:
                part.diverging_epoch = EpochEndOffset(1, 2)
            parts.append(part)
        topics.append(FetchableTopicResponse(topic_id=random.randbytes(16), partitions=parts))
    session_id, error = random.choice((7, 7, 7, 8)), random.choice((0, 0, 0, 70))
    answer = FetchResponse(random.choice((0, 9)), error, session_id, topics)
    frame = b"".join(encode_response(1, random.choice((13, 17, 18)), 3, answer))[4:]
    if random.random() < 0.5:
        frame = damaged(random, frame)
    view = exact(frame)
    found, expected = outcome(c.plain_answer, view, 7), outcome(python_records.plain_answer, view, 7)
    assert found == expected, (frame, found, expected)
    without_memory(random, c.plain_answer, view, 7)


def fuzz_racks(random: Random, c: Any) -> None:
    """Ids without a rack, racks without an id, and ranks that are too high."""
    replicas = tuple(
        tuple(random.choices(range(9), k=random.randrange(5))) for _ in range(random.randrange(9))
    )
    texts = tuple(random.randbytes(random.randrange(9)) for _ in range(random.randrange(6)))
    rank_of = {id: random.randrange(6) for id in random.sample(range(9), 5)}
    first = random.choice((0, 1, 70_000))
    if max(rank_of.values()) < len(texts):
        assert c.partition_bytes(first, replicas, rank_of, texts) == partition_bytes(
            first, replicas, rank_of, texts
        )
    else:
        outcome(c.partition_bytes, first, replicas, rank_of, texts)
    without_memory(random, c.partition_bytes, first, replicas, rank_of, texts)


def fuzz_compaction(random: Random, c: Any) -> None:
    parts = random_parts(random, 0.3)
    parts.codec = 0
    data = parts.encoded()
    if random.random() < 0.3:
        data = damaged(random, data)
    secret, slots = random.randbytes(16), 24 * random.choice((0, 1, 2, 5, 40))
    mine, twin = writable(bytes(slots)), bytearray(slots)
    noted = random.choice((0, *LONG_EDGES)), random.choice((0, 1, 3, 1 << 40))
    found = outcome(c.note_keys, mine, secret, exact(data), *noted)
    expected = outcome(python_records.note_keys, twin, secret, data, *noted)
    assert found == expected, (data, slots, noted, found, expected)
    asked = random.choice((-1, 3, *LONG_EDGES)), random.random() < 0.5
    found = outcome(c.newest_records, mine, secret, exact(data), *asked)
    expected = outcome(python_records.newest_records, twin, secret, data, *asked)
    assert found == expected, (data, slots, asked, found, expected)
    count = max(0, int.from_bytes(data[57:61], "big", signed=True)) if len(data) >= 61 else 0
    kept = random.randbytes(min(count, 1000)) if random.random() < 0.9 else b""
    for base in (-1, NOW_MS, *random.choices(LONG_EDGES, k=1)):
        found = outcome(c.keep_records, exact(data), kept, base)
        expected = outcome(python_records.keep_records, data, kept, base)
        assert found == expected, (data, kept, base, found, expected)
    without_memory(random, c.keep_records, exact(data), kept, -1)
    without_memory(random, c.newest_records, mine, secret, exact(data), *asked)


def fuzz_threads_rarely(random: Random, c: Any) -> None:
    """A large batch is judged while other threads run."""
    if random.randrange(20):
        return
    count = random.randrange(3000, 5000)
    record = b"\x1e\x00\x00\x00\x02k" + b"\x10" + b"v" * 8 + b"\x00"
    data = Parts([record] * count, count=count, last_offset_delta=count - 1).encoded()
    numbers = (NOW_MS, 5, 7, 1 << 30, 1 << 62, 1 << 62, -1, random.choice((1, 3, 5)))
    expected = c.judge(writable(data), None, *numbers)
    assert expected[0] == Outcome.VALID
    found: list[Any] = []

    def run() -> None:
        found.append(c.judge(writable(data), None, *numbers))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 3


TARGETS = (
    fuzz_judging,
    fuzz_reading,
    fuzz_headers,
    fuzz_answers,
    fuzz_racks,
    fuzz_compaction,
    fuzz_threads_rarely,
)

if __name__ == "__main__":
    sys.exit(fuzz("kraftd.wire._records", TARGETS, *sys.argv[1:]))
