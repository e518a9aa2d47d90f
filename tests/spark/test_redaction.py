"""Rows of the log show no secret, whatever columns are read and however they are decoded."""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.redaction.records import hidden_fields
from kraftd.spark.decoding.decode import BUILDER
from kraftd.spark.decoding.fields import source_schema
from kraftd.spark.inputs.layout import find_replicas
from kraftd.spark.inputs.replicas import committed_log
from kraftd.spark.source.reading import Wanted, read_split
from kraftd.wire.batch import build_batch
from kraftd.wire.record_frame import VersionedRecord, encode_record
from tests.redaction.secrets import records_with_secrets, shown_secrets
from tests.spark.logs import LogDirectory

pytestmark = pytest.mark.spark


def rows_of(directory: LogDirectory, *columns: str, by_columns: bool = True, show: bool = False) -> pa.Table:
    schema = pa.schema([source_schema().field(name) for name in columns or source_schema().names])
    log = committed_log(find_replicas([str(directory.path)]), permissive=True)
    found = [
        rows
        for split in log.log.splits
        for rows in read_split(
            split, schema, Wanted(), permissive=True, columns=by_columns, show_secrets=show
        )
    ]
    assert all(rows.schema.equals(schema) for rows in found)
    return pa.Table.from_batches(found, schema=schema)


def output_of(table: pa.Table) -> bytes:
    return msgspec.json.encode(table.to_pylist()) + repr(table.to_pydict()).encode()


@pytest.mark.parametrize("by_columns", [True, False] if BUILDER is not None else [False])
@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=8, deadline=None)
def test_no_row_shows_a_secret(tmp_path_factory: pytest.TempPathFactory, by_columns: bool, seed: int) -> None:
    directory = LogDirectory(tmp_path_factory.mktemp("log"))
    messages, secrets = records_with_secrets(Random(seed), 40)
    directory.append(messages)
    for columns in ((), ("value",), ("name", "value"), ("offset", "unknown_tagged_fields")):
        table = rows_of(directory, *columns, by_columns=by_columns)
        assert len(table) == len(messages)
        assert shown_secrets(output_of(table), secrets) == []
    expected = [
        None if value is None else "[redacted]" if hidden_fields(message) else value
        for message in messages
        for value in [getattr(message, "value", None)]
    ]
    assert rows_of(directory, "value", by_columns=by_columns)["value"].to_pylist() == expected
    shown = rows_of(directory, "value", by_columns=by_columns, show=True)["value"].to_pylist()
    assert shown == [getattr(message, "value", None) for message in messages]


def test_bytes_of_damage_and_unknown_fields_of_credentials_are_hidden(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path / "a")
    secret = b"a secret of another version"
    credential = UserScramCredentialRecord("alice", 1, secret, secret, secret, 4096, ((9, secret),))
    directory.append([credential])
    later = bytearray(encode_record(VersionedRecord(credential, 0)))
    later[2] = 9  # a version that is not known
    directory.write(build_batch([bytes(later)], directory.end_offset, 0, directory.timestamp_ms()))
    with directory.log.open("ab") as file:
        file.write(secret)
    table = rows_of(directory)
    assert len(table) == 3 and sum(row is not None for row in table["damage"].to_pylist()) == 2
    assert secret not in output_of(table)
    assert secret in output_of(rows_of(directory, show=True))
