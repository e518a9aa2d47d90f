"""The comparison with Kafka notices a single wrong cell of a table."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, find, settings
from hypothesis.errors import NoSuchExample
from msgspec.structs import astuple, replace

from kraftd.wire.api import message_class
from kraftd.wire.message import Message
from kraftd.wire.python_engine import DECODERS, ENCODERS, Versions
from kraftd.wire.table import FieldRow, MessageTable, StructTable, table_of
from tests.wire.checks import check_same_bytes_and_value
from tests.wire.engines import c_engine
from tests.wire.oracle import Oracle
from tests.wire.strategies import messages

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("engine")]

SEARCH = settings(max_examples=200, phases=[Phase.generate], deadline=None, database=None)

# (message, version, struct, field -> changed cells of its row)
FAULTS: dict[str, tuple[str, int, str, dict[str, dict[str, Any]]]] = {
    "two tags are swapped": (
        "FetchRequest",
        18,
        "FetchPartition",
        {"replica_directory_id": {"tag": 1}, "high_watermark": {"tag": 0}},
    ),
    "a default is another one": ("FetchRequest", 18, "FetchPartition", {"high_watermark": {"default": -1}}),
    "a field begins a version later": ("VoteRequest", 2, "PartitionData", {"pre_vote": {"versions": (3, 3)}}),
    "a field is signed": ("BrokerRegistrationRequest", 4, "Listener", {"port": {"type": "int16"}}),
    "a field is wider": (
        "BrokerHeartbeatRequest",
        1,
        "BrokerHeartbeatRequest",
        {"broker_id": {"type": "int64"}},
    ),
    "a string has a compact length": ("RequestHeader", 2, "RequestHeader", {"client_id": {"flexible": None}}),
    "null is an empty array": (
        "PartitionChangeRecord",
        2,
        "PartitionChangeRecord",
        {"isr": {"default": "", "nullable": None}},
    ),
}


def plant(table: MessageTable, struct: str, changes: dict[str, dict[str, Any]]) -> MessageTable:
    """A table with some changed cells in the rows of a struct."""
    rows: tuple[FieldRow, ...] = tuple(
        replace(row, **changes.get(row.attribute, {})) for row in table.structs[struct].fields
    )
    return replace(table, structs=table.structs | {struct: StructTable(struct, rows)})


def use_table(patch: pytest.MonkeyPatch, engine: str, cls: type[Message], table: MessageTable) -> None:
    """Make an engine use another table of a message."""
    if engine == "c":
        structs = tuple(
            (struct.name, tuple(map(astuple, struct.fields))) for struct in table.structs.values()
        )
        rows = (table.name, table.key, table.type, table.valid, table.flexible, structs)
        patch.setitem(c_engine().CODECS, cls, c_engine().Codec(cls, rows))
        return
    for functions in (ENCODERS, DECODERS):
        versions: Versions[Any] = Versions(cls, functions.build)  # type: ignore[arg-type]
        versions.table = table
        patch.setitem(functions, cls, versions)  # type: ignore[arg-type]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_of_a_table_is_detected(
    oracle: Oracle, monkeypatch: pytest.MonkeyPatch, engine: str, fault: str
) -> None:
    name, version, struct, changes = FAULTS[fault]
    cls = message_class(name)
    wrong = plant(table_of(cls), struct, changes)
    assert wrong != table_of(cls)
    use_table(monkeypatch, engine, cls, wrong)

    def differs(message: object) -> bool:
        try:
            check_same_bytes_and_value(oracle, version, message)  # type: ignore[arg-type]
        except Exception:
            # A wrong table may break the encoder in any way; a crashed oracle proves nothing.
            return oracle.process.poll() is None
        return False

    try:
        find(messages(name, version), differs, settings=SEARCH)
    except NoSuchExample:
        pytest.fail("Kafka and the wrong table agree")
