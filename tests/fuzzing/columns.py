"""Gives hostile batches to the column builder in C and to the decoder in Python: equal rows, no report.

``python -m tests.fuzzing.columns BUILD SECONDS [SEED]``, where BUILD is one with sanitizers (`sanitized.py`).
Plans and columns that do not fit each other must be refused, and an append without memory changes nothing.
"""

from __future__ import annotations

import sys
from random import Random
from typing import Any

import pyarrow as pa

from kraftd.messages.registry import MODULES
from kraftd.spark.decoding import decode
from kraftd.spark.decoding.decode import Decoder
from kraftd.spark.decoding.fields import ENVELOPE, record_schema
from kraftd.spark.decoding.plans import column_tree, record_plans
from kraftd.types import uuid_text
from kraftd.wire import record_frame
from kraftd.wire.api import message_class
from kraftd.wire.batch import HEADER_BYTES, Batch, build_batch, read_batch
from kraftd.wire.record_frame import VersionedRecord
from kraftd.wire.table import table_of
from testkit.random_messages import NASTY, damaged, make
from tests.fuzzing.hostile import exact, fuzz, outcome, without_memory

RECORDS = sorted(name for name in MODULES if table_of(message_class(name)).type == "metadata")
SCHEMA = record_schema()
FIELDS = [field for field in SCHEMA if field.name not in ENVELOPE.names]
TREE = tuple(column_tree(field.type) for field in FIELDS)
PLANS = record_plans(FIELDS, None, by_topic=False)
KINDS = ("bool", "int32", "int64", "float64", "uuid", "string", "bytes", "struct", "list", "int8", "no kind")
EDGES = (0, 1, -1, 100, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1, -(1 << 63))

EVERY = -(1 << 63), (1 << 63) - 1


def fuzz_rows(random: Random, c: Any) -> None:
    """Batches, sound and damaged, make the same rows in both decoders; a refused one makes none."""
    decode.BUILDER = c.Builder
    schema = SCHEMA
    if random.random() < 0.5:
        chosen = random.sample(FIELDS, random.randrange(len(FIELDS)))
        schema = pa.schema([*ENVELOPE, *(field for field in FIELDS if field in chosen)])
    wanted: dict[str, Any] = {}
    if random.random() < 0.3:
        wanted["types"] = random.sample(RECORDS, random.randrange(1, len(RECORDS)))
    if random.random() < 0.3:
        wanted["topic_ids"] = [uuid_text(bytes([value]) * 16) for value in range(random.randrange(3))]
    by_columns, by_records = (Decoder(schema, columns=columns, **wanted) for columns in (True, False))
    for _ in range(random.randrange(1, 5)):
        batch = random_batch(random)
        first, last = random.choice((EVERY, (1, 101), (101, 100)))
        found = outcome(by_columns.add, batch, first, last)
        expected = outcome(by_records.add, batch, first, last)
        if found is None and expected is not None and (wanted or (first, last) != EVERY):
            return  # the builder leaves out what is not wanted before it could be wrong
        assert (found is None) == (expected is None), (bytes(batch.view), batch.header, found, expected)
    assert rows_of(by_columns, schema) == rows_of(by_records, schema)


def random_batch(random: Random) -> Batch:
    """A batch of some records whose values, bytes or header may be damaged. Its memory ends with it."""
    values = []
    for _ in range(random.choice((1, 1, 2, 5))):
        cls = message_class(random.choice(RECORDS))
        table = table_of(cls)
        version = random.randint(*table.valid)
        value = record_frame.python_encode_record(
            VersionedRecord(make(random, cls, table, table.root, version), version)
        )
        values.append(damaged(random, value) if random.random() < 0.2 else value)
    data = build_batch(values, 100, 7, 1_700_000_000_000)
    whole = read_batch(data)
    header = whole.header
    if random.random() < 0.2:
        data = data[:HEADER_BYTES] + damaged(random, data[HEADER_BYTES:])
    if random.random() < 0.2:
        name = random.choice(("base_offset", "last_offset_delta", "base_timestamp_ms", "record_count"))
        header = header._replace(**{name: random.choice(EDGES)})
    return whole._replace(view=exact(data), header=header)


def rows_of(decoder: Decoder, schema: pa.Schema) -> str:
    """All rows as text, in which values that are no number compare equal."""
    found = decoder.take()
    for each in found:
        each.validate(full=True)
    return str(pa.Table.from_batches(found, schema=schema).to_pylist())


def fuzz_failing_memory(random: Random, c: Any) -> None:
    """An append without memory adds all rows of a batch or none, and later ones are as if it had not been."""
    failing, sound = (c.Builder(TREE, PLANS, None) for _ in range(2))
    for _ in range(random.randrange(1, 5)):
        batch = random_batch(random)
        header = batch.header
        numbers = header.base_offset, header.base_timestamp_ms, header.last_offset_delta, header.record_count
        arguments = (batch.view[HEADER_BYTES:], *numbers, *EVERY)
        more = outcome(sound.append, *arguments)
        for _ in range(3):
            without_memory(random, failing.append, *arguments)
            if failing.rows == sound.rows:
                break
        else:
            assert outcome(failing.append, *arguments) == more
        assert failing.rows == sound.rows
    before = failing.rows
    without_memory(random, failing.finish)
    assert failing.rows in (0, before)
    if failing.rows:
        assert failing.finish() == sound.finish()


def fuzz_plans(random: Random, c: Any) -> None:
    """Builders of columns and plans that need not fit: refused, or used without harm."""
    part = random.choice(list(PLANS))
    columns: Any = changed(random, TREE) if random.random() < 0.7 else TREE
    types: Any = {part: changed(random, PLANS[part]) if random.random() < 0.7 else PLANS[part]}
    topics = random.choice((None, b"", bytes(32), bytes(17)))
    try:
        builder = outcome(c.Builder, columns, types, topics)
    except OverflowError:  # a number of a plan is too large for C
        return
    if isinstance(builder, tuple):
        return
    without_memory(random, c.Builder, columns, types, topics)
    cls = next(cls for cls in map(message_class, RECORDS) if table_of(cls).key == part)
    table = table_of(cls)
    for _ in range(5):
        version = random.randint(*table.valid)
        record = VersionedRecord(make(random, cls, table, table.root, version), version)
        data = build_batch([record_frame.python_encode_record(record)], 100, 7, 5)
        numbers = random.choice(((100, 5, 0, 1, 0, 1 << 62), random.choices(EDGES, k=6)))
        outcome(builder.append, exact(data[HEADER_BYTES:]), *numbers)
        without_memory(random, builder.append, data[HEADER_BYTES:], 100, 5, 0, 1, 0, 1 << 62)
    without_memory(random, builder.finish)
    builder.finish()


def changed(random: Random, value: Any) -> Any:
    """A nested tuple in which one place has another value."""
    if isinstance(value, tuple) and value and random.random() < 0.9:
        at = random.randrange(len(value))
        return (*value[:at], changed(random, value[at]), *value[at + 1 :])
    if isinstance(value, tuple):
        return random.choice(((), (value,), value * 2, None))
    if isinstance(value, str):
        return random.choice(KINDS)
    return random.choice((None, -1, 0, 1, 2, random.randrange(200), 1 << 40, *NASTY, "x", ()))


TARGETS = (fuzz_rows, fuzz_failing_memory, fuzz_plans)

if __name__ == "__main__":
    sys.exit(fuzz("kraftd.spark._columns", TARGETS, *sys.argv[1:]))
