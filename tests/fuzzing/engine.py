"""Gives hostile bytes and values to the C engine and to the Python engine: equal outcomes, no report.

``python -m tests.fuzzing.engine BUILD SECONDS [SEED]``, where BUILD is one with sanitizers (`sanitized.py`).
"""

from __future__ import annotations

import gc
import sys
import threading
import zlib
from itertools import repeat
from random import Random
from typing import Any

from kraftd.messages import registry
from kraftd.redaction import batches
from kraftd.wire import batch, python_codec, record_frame, rewriting
from kraftd.wire.api import message_class
from kraftd.wire.batch import CorruptBatch
from kraftd.wire.engine import Repeated
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord
from kraftd.wire.table import FieldRow, MessageTable, table_of, within
from testkit.random_messages import damaged, make, one
from tests.fuzzing.hostile import ODD, exact, fuzz, outcome, plain, without_memory

NAMES = sorted(registry.MODULES)
RECORDS = [name for name in NAMES if table_of(message_class(name)).type == "metadata"]
WITH_ARRAYS = [name for name in NAMES if any(row.array for row in table_of(message_class(name)).root.fields)]


def fuzz_reading(random: Random, c: Any) -> None:
    name = random.choice(NAMES)
    cls = message_class(name)
    table = table_of(cls)
    version = random.randint(*table.valid)
    message = make(random, cls, table, table.root, version)
    data = python_codec.encode_bytes(message, version)
    assert c.encode_bytes(message, version) == b"".join(c.encode(message, version)) == data
    for _ in range(4):
        expected = outcome(python_codec.decode, cls, version, data)
        found = outcome(c.decode, cls, version, exact(data))
        assert plain(found) == plain(expected), (name, version, data, found, expected)
        without_memory(random, c.decode, cls, version, data)
        limit = random.randrange(1, 12)
        expected = outcome(python_codec.decode_prefix, cls, version, data, 0, limit)
        found = outcome(c.decode_prefix, cls, version, exact(data), 0, limit)
        assert plain(found) == plain(expected), (name, version, data, limit, found, expected)
        data = damaged(random, data)


def fuzz_unread(random: Random, c: Any) -> None:
    """What is not decoded is a message that can be, with as many elements."""
    cls = message_class(random.choice(WITH_ARRAYS))
    table = table_of(cls)
    version = random.randint(*table.valid)
    data = python_codec.encode_bytes(make(random, cls, table, table.root, version), version)
    array = random.choice([row for row in table.root.fields if row.array])
    fields = [row.attribute for row in table.structs[array.type].fields] if not array.is_primitive() else []
    of_structs = [row.attribute for row in table.root.fields if row.array and not row.is_primitive()]
    fields.append("")
    copied, checked = random.choice(fields), random.choice(("", random.choice(fields)))
    elements = random.choice(((array.attribute,), (), tuple(of_structs)))
    inner, inner_copied = random.choice((("", ""), *inner_fields(table, array)))
    for _ in range(6):
        prefix, suffix = random.randbytes(random.randrange(3)), random.randbytes(random.randrange(3))
        rest = (elements, copied, checked, random.choice((b"", b"\0", b"\2")), random.randrange(3))
        limit, last = random.choice((12, 5_000)), random.randbytes(random.randrange(3))
        more = prefix, suffix, inner, inner_copied, last, limit
        found = outcome(c.rows_of_unread, cls, version, exact(data), 0, *rest, *more)
        if isinstance(found, tuple):
            count, rows, inner_count = found
            message, _ = python_codec.decode_prefix(cls, version, data, 0, limit)
            expected = sum(len(getattr(message, name)) for name in elements)
            is_right = count <= expected if rest[-1] == Repeated.DROPPED else count == expected
            assert is_right, (cls, version, data, rest)
            if inner and count:
                of_elements = [getattr(one, inner) for one in getattr(message, elements[0])]
                assert inner_count == sum(map(len, of_elements)), (cls, version, data, rest)
            assert len(rows) <= count * len(prefix + suffix) + inner_count * len(last) + len(data)
        else:
            assert found is None or "Unsupported" in repr(found), found
        without_memory(random, c.rows_of_unread, cls, version, data, 0, *rest, *more)
        data = damaged(random, data)


def inner_fields(table: MessageTable, array: FieldRow) -> list[tuple[str, str]]:
    """The arrays within the elements of an array, each with a field of its elements, empty for primitives."""
    if array.is_primitive():
        return []
    found = []
    for row in table.structs[array.type].fields:
        if row.array:
            fields = [""] if row.is_primitive() else [one.attribute for one in table.structs[row.type].fields]
            found += [(row.attribute, field) for field in fields]
    return found


def long_message(random: Random, name: str) -> tuple[int, bytes]:
    """A version and the bytes of a message for which the C engine lets other threads run."""
    cls = message_class(name)
    table = table_of(cls)
    version = random.randint(*table.valid)
    message = make(random, cls, table, table.root, version)
    arrays = [row for row in table.root.fields if row.array and within(version, row.versions)]
    for row in arrays:
        rows = [one(random, cls, table, row, version) for _ in range(5)]
        some = random.choices(rows, k=random.randrange(400, 2000))
        setattr(message, row.attribute, tuple(some) if row.is_primitive() else some)
    return version, python_codec.encode_bytes(message, version)


def fuzz_threads(random: Random, c: Any) -> None:
    """Two threads decode at once, while a third looks at all that the garbage collector knows."""
    name = random.choice(WITH_ARRAYS)
    cls = message_class(name)
    version, data = long_message(random, name)
    frames = [data, damaged(random, data), data[: random.randrange(len(data) + 1)], data + b"x"]
    limits = [0, 0, 0, random.randrange(1, 5000)]
    expected = [
        outcome(python_codec.decode, cls, version, *job)
        for job in zip(frames, repeat(0), limits, strict=False)
    ]
    found: list[Any] = []
    done = threading.Event()

    def decode_all() -> None:
        found.append(
            [
                outcome(c.decode, cls, version, exact(frame), 0, limit)
                for frame, limit in zip(frames, limits, strict=True)
            ]
        )

    def look() -> None:
        while not done.is_set():
            for array in gc.get_objects(0):
                if type(array) in (list, tuple):
                    list(array)

    readers, looker = [threading.Thread(target=decode_all) for _ in range(2)], threading.Thread(target=look)
    for thread in (looker, *readers):
        thread.start()
    for thread in readers:
        thread.join()
    done.set()
    looker.join()
    assert [plain(one) for one in found] == [plain(expected)] * 2, (name, version)


def fuzz_writing(random: Random, c: Any) -> None:
    name = random.choice(NAMES)
    cls = message_class(name)
    table = table_of(cls)
    version = random.randint(*table.valid)
    message = make(random, cls, table, table.root, random.choice((version, random.randint(*table.valid))))
    without_memory(random, c.encode, message, version)
    for _ in range(random.randrange(3)):
        target: Any = message
        while random.random() < 0.5:
            inner = [getattr(target, name) for name in target.__struct_fields__]
            inner = [item[0] if isinstance(item, list) and item else item for item in inner]
            inner = [item for item in inner if isinstance(item, Message)]
            if not inner:
                break
            target = random.choice(inner)
        if target.__struct_fields__:
            setattr(target, random.choice(target.__struct_fields__), random.choice(ODD))
    expected = outcome(python_codec.encode_bytes, message, version)
    found = outcome(c.encode_bytes, message, version)
    # Only one engine may accept a value of a wrong type; if both accept it, their bytes are equal.
    if isinstance(found, bytes) and isinstance(expected, bytes):
        assert found == expected, (message, version)
    without_memory(random, c.encode_bytes, message, version)


def some_at_a_time(c: Any, view: memoryview) -> list[Message] | None:
    """Decode all messages of a batch; None if the engine leaves the batch to Python."""
    messages: list[Message] = []
    at, count = 0, int.from_bytes(view[57:61], "big")
    if count == 0:
        return None
    while len(messages) < count:
        found = c.batch_messages(view, at, len(messages), 30)
        if found is None:
            return None
        more, at = found
        messages += more
    return messages


def fuzz_batches(random: Random, c: Any) -> None:
    records, values = [], []
    for _ in range(random.choice((1, 2, 70))):
        cls = message_class(random.choice(RECORDS))
        table = table_of(cls)
        version = random.randint(*table.valid)
        record = VersionedRecord(make(random, cls, table, table.root, version), version)
        records.append(record)
        values.append(record_frame.python_encode_record(record))
        assert c.encode_record(record) == values[-1]
        without_memory(random, c.encode_record, record)
    assert c.encode_records(records) == values
    without_memory(random, c.encode_records, records)
    data = batch.build_batch(values, 7, 3, 1_700_000_000_000)
    assert c.build_batch(values, 7, 3, 1_700_000_000_000, batch.crc32c) == data
    without_memory(random, c.build_batch, values, 7, 3, 1_700_000_000_000, zlib.crc32)
    for _ in range(4):
        try:
            whole = batch.read_batch(data, verify=False)
        except CorruptBatch:
            return
        view = exact(bytes(whole.view))
        found = c.batch_values(view)
        if found is not None:
            assert plain(found) == plain(batch.values(whole))
        assert plain(some_at_a_time(c, view)) in (
            None,
            plain(outcome(list, record_frame.decode_batch(whole))),
        )
        without_memory(random, c.batch_values, view)
        without_memory(random, c.batch_messages, view, 0, 0, 30)
        outcome(c.batch_messages, view, *random.choices((-1, 0, 1, 60, 61, 62, 100, 1 << 40), k=3))
        fuzz_suspects(random, c, bytes(whole.view))
        data = damaged(random, data)


def fuzz_suspects(random: Random, c: Any, data: bytes) -> None:
    """No record with a secret is missed, and each place is that of a record."""
    kinds, harmless = batches._kinds(), batches._harmless_configs()
    whole = exact(data + data)
    found = c.suspect_records(whole, kinds, harmless)
    for position, numbers in found:
        if numbers is not None:
            places = {
                numbers[at : at + 6][0]: tuple(numbers[at : at + 6]) for at in range(0, len(numbers), 6)
            }
            plain_batch = batch.read_batch(whole, position, verify=False)
            for place in rewriting.places_of(plain_batch):
                if batches.redacted_value(plain_batch.view[place[3] : place[4]]) is not None:
                    assert places[place[0]] == place
    without_memory(random, c.suspect_records, whole, kinds, harmless)
    cut = exact(data[: random.randrange(len(data) + 1)])
    without_memory(random, c.suspect_records, cut, random.randbytes(256), frozenset())


def fuzz_threads_rarely(random: Random, c: Any) -> None:
    """One round of twenty uses threads, as these are slow."""
    if random.randrange(20) == 0:
        fuzz_threads(random, c)


TARGETS = (fuzz_reading, fuzz_unread, fuzz_writing, fuzz_batches, fuzz_threads_rarely)

if __name__ == "__main__":
    sys.exit(fuzz("kraftd.wire._engine", TARGETS, *sys.argv[1:]))
