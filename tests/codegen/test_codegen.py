"""The committed schemas and modules equal those from Kafka's jars and the generator."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from codegen import extract, generate
from codegen.jars import KAFKA_VERSION, resolve
from codegen.model import LAST_VERSION, Message, build, load, parse_range
from codegen.names import snake
from kraftd.messages import registry


@pytest.fixture(scope="module")
def messages() -> dict[str, Message]:
    return {message.name: message for message in load(extract.SCHEMAS)}


def test_the_committed_messages_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--check"]) == 0, capsys.readouterr().out


def test_an_outdated_module_is_named(tmp_path: Path) -> None:
    files = generate.generate(extract.SCHEMAS)
    generate.write(files, tmp_path)
    assert generate.differences(files, tmp_path) == []
    (tmp_path / "vote_request.py").write_text("")
    (tmp_path / "zombie_request.py").write_text("")
    (tmp_path / "registry.py").unlink()
    wrong = ["registry.py", "vote_request.py", "zombie_request.py"]
    assert generate.differences(files, tmp_path) == wrong
    generate.write(files, tmp_path)
    assert generate.differences(files, tmp_path) == []


def test_the_manifest_has_the_digest_of_every_schema() -> None:
    manifest = json.loads((extract.SCHEMAS / extract.MANIFEST).read_text())
    names = sorted(path.name for path in extract.SCHEMAS.glob("*.json") if path.name != extract.MANIFEST)
    assert sorted(manifest["files"]) == names
    assert manifest["count"] == len(names)
    assert manifest["kafkaVersion"] == KAFKA_VERSION
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((extract.SCHEMAS / name).read_bytes()).hexdigest() == digest


@pytest.mark.kafka
def test_the_schemas_are_those_of_the_jars() -> None:
    for name, text in extract.extract(resolve()).items():
        assert (extract.SCHEMAS / name).read_text() == text, name


def test_extraction_drops_prose_and_refuses_unknown_keys() -> None:
    schema = {
        "name": "A",
        "type": "data",
        "validVersions": "0",
        "fields": [{"name": "B", "type": "int8", "versions": "0+", "about": "Prose."}],
    }
    assert "Prose" not in extract.render(extract.message_facts(schema))
    schema["fields"][0]["colour"] = "red"  # type: ignore[index]
    with pytest.raises(ValueError, match=r"A\.B: unknown keys \['colour'\]"):
        extract.message_facts(schema)


def test_no_schema_contains_prose() -> None:
    for path in extract.SCHEMAS.glob("*.json"):
        assert '"about"' not in path.read_text(), path.name


def test_messages_without_a_valid_version_have_no_module(messages: dict[str, Message]) -> None:
    assert messages["LeaderAndIsrRequest"].valid is None
    assert "leader_and_isr_request.py" not in generate.generate(extract.SCHEMAS)


def test_a_common_struct_has_the_versions_of_its_message(messages: dict[str, Message]) -> None:
    """Messages with different versions use it; it must not be clipped to the versions of the first."""
    response = messages["DescribeQuorumResponse"]
    replica_id = response.structs["ReplicaState"].fields[0]
    assert replica_id.versions == response.valid


def test_fields_of_a_nested_struct_are_clipped_to_the_versions_of_its_field(
    messages: dict[str, Message],
) -> None:
    fields = {field.name: field for field in messages["FetchRequest"].structs["ForgottenTopic"].fields}
    assert fields["Topic"].versions == (7, 12)


@pytest.mark.parametrize(
    ("message", "struct", "field", "default"),
    [
        ("FetchRequest", "FetchRequest", "MaxBytes", 0x7FFFFFFF),
        ("FetchRequest", "FetchPartition", "HighWatermark", 2**63 - 1),
        ("FetchRequest", "FetchRequest", "ClusterId", None),
        ("FetchResponse", "PartitionData", "Records", None),
        ("PartitionChangeRecord", "PartitionChangeRecord", "Isr", None),
        ("PartitionRecord", "PartitionRecord", "Isr", ""),
        ("CreateTopicsRequest", "CreateTopicsRequest", "timeoutMs", 60000),
        (
            "AlterPartitionReassignmentsRequest",
            "AlterPartitionReassignmentsRequest",
            "AllowReplicationFactorChange",
            1,
        ),
    ],
)
def test_defaults_of_the_schemas_become_python_values(
    messages: dict[str, Message], message: str, struct: str, field: str, default: object
) -> None:
    fields = {found.name: found for found in messages[message].structs[struct].fields}
    assert fields[field].default == default


def test_a_field_with_only_tagged_versions_exists_in_those(messages: dict[str, Message]) -> None:
    fields = {field.name: field for field in messages["TransactionLogValue"].root.fields}
    assert fields["NextProducerId"].versions == (1, 1)
    assert fields["NextProducerId"].tagged == (1, LAST_VERSION)


def test_records_of_coordinators_are_found_by_key() -> None:
    assert registry.GROUP_RECORDS[1][1:] == (
        "OffsetCommitKey",
        "offset_commit_value",
        "OffsetCommitValue",
        0,
        4,
    )
    assert sorted(registry.GROUP_RECORDS) == [*range(9), *range(10, 18), *range(19, 24)]
    assert registry.TRANSACTION_RECORDS[0][3] == "TransactionLogValue"
    assert [row[3] for row in registry.SHARE_RECORDS.values()] == ["ShareSnapshotValue", "ShareUpdateValue"]


def test_version_ranges_are_parsed() -> None:
    assert parse_range("4+") == (4, LAST_VERSION)
    assert parse_range("1-3") == (1, 3)
    assert parse_range("2") == (2, 2)
    assert parse_range("none") is parse_range(None) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("PartitionMaxBytes", "partition_max_bytes"),
        ("KRaftVersionRecord", "kraft_version_record"),
        ("ISRChange", "isr_change"),
        ("SetACLs", "set_ac_ls"),
        ("From", "from_"),
        ("timeoutMs", "timeout_ms"),
    ],
)
def test_names_become_snake_case(name: str, expected: str) -> None:
    assert snake(name) == expected


def test_a_default_for_an_array_is_refused() -> None:
    field = {"name": "B", "type": "[]int8", "versions": "0+", "default": "7"}
    with pytest.raises(ValueError, match="a default of '7'"):
        build({"name": "A", "type": "data", "validVersions": "0", "fields": [field]})
