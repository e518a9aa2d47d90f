"""The registry's contents: APIs, records and error codes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from codegen.names import snake
from kraftd.messages import registry
from kraftd.wire import api
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.table import table_of
from tests.wire.oracle import Oracle


def test_every_api_of_the_schemas_has_a_name() -> None:
    assert {key.value: key.name for key in ApiKey} == {
        key: snake(row[0]).upper() for key, row in registry.APIS.items()
    }


@pytest.mark.parametrize("key", list(ApiKey))
def test_request_and_response_classes_belong_to_their_api(key: ApiKey) -> None:
    for cls, kind in ((api.request_class(key), "request"), (api.response_class(key), "response")):
        table = table_of(cls)
        assert (table.key, table.type, table.valid) == (key, kind, api.valid_versions(key))


@pytest.mark.kafka
def test_the_apis_have_kafkas_versions_headers_and_listeners(oracle: Oracle) -> None:
    ours = {
        key.name: {
            "key": key.value,
            "headers": [
                [version, api.request_header_version(key, version), api.response_header_version(key, version)]
                for version in range(api.valid_versions(key)[0], api.valid_versions(key)[1] + 1)
            ],
            "listeners": sorted(api.listeners(key)),
            "latestVersionUnstable": api.latest_version_unstable(key),
        }
        for key in ApiKey
    }
    theirs = oracle.facts()["apis"]
    for row in theirs.values():
        row["listeners"].sort()
    assert ours == theirs


@pytest.mark.kafka
def test_the_error_codes_are_those_of_kafka(oracle: Oracle) -> None:
    assert {code.name: code.value for code in ErrorCode} == oracle.facts()["errors"]


@pytest.mark.kafka
def test_the_records_have_the_keys_and_versions_of_kafka(oracle: Oracle) -> None:
    facts = oracle.facts()
    ours = {
        snake(name).upper(): [key, first, last]
        for key, (_, name, first, last) in registry.METADATA_RECORDS.items()
    }
    assert ours == facts["records"]
    assert set(registry.CONTROL_RECORDS) == set(facts["controls"].values())


def test_an_error_code_has_a_text() -> None:
    assert all(code.message.endswith(".") for code in ErrorCode)
    assert ErrorCode(41) is ErrorCode.NOT_CONTROLLER


def test_records_are_found_by_their_keys() -> None:
    assert api.metadata_record_class(3).__name__ == "PartitionRecord"
    assert api.control_record_class(6).__name__ == "VotersRecord"
    assert api.message_class("QuorumStateData").__name__ == "QuorumStateData"
    with pytest.raises(KeyError):
        api.metadata_record_class(99)


def test_an_unknown_api_is_never_flexible_or_valid() -> None:
    assert not api.is_known(4)
    assert not api.is_valid(4, 0)
    assert api.request_header_version(4, 99) == 1
    assert api.is_valid(ApiKey.FETCH, 18)
    assert not api.is_valid(ApiKey.FETCH, 19)


def test_api_versions_of_an_unknown_version_is_answered_in_version_0__kip511() -> None:
    assert api.response_version(ApiKey.API_VERSIONS, 99) == 0
    assert api.response_version(ApiKey.API_VERSIONS, 4) == 4
    assert api.response_header_version(ApiKey.API_VERSIONS, 4) == 0
    assert api.request_header_version(ApiKey.API_VERSIONS, 99) == 2


def test_messages_are_imported_on_first_use_except_headers() -> None:
    program = (
        "import sys, kraftd.wire.frames; print(*[m for m in sys.modules if m.startswith('kraftd.messages.')])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert set(loaded.split()) == {
        "kraftd.messages.registry",
        "kraftd.messages.request_header",
        "kraftd.messages.response_header",
    }
