"""The table of a broker's APIs in docs/conformance.md is what the node lists."""

from __future__ import annotations

import re
from pathlib import Path

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.wire.api import ApiKey
from tests.broker_node.harness import BrokerHarness
from tests.kafka.conformance.seen import api_name

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROW = re.compile(r"^\| (\w+) \((\d+)\) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.M)
OF_KAFKA = 75  # that a stock node lists
NOT_SERVED = {ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE}


def rows() -> list[tuple[str, ...]]:
    part = (DOCS / "conformance.md").read_text().partition("\n## A broker's listener\n")[2]
    return ROW.findall(part)


def test_the_published_table_has_the_apis_and_versions_that_a_broker_lists(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    answer = harness.client_ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1"))
    listed = {
        one.api_key: f"{one.min_version}–{one.max_version}"
        if one.min_version < one.max_version
        else str(one.min_version)
        for one in answer.api_keys
    }
    published = {int(key): versions for _, key, versions, _, _ in rows()}
    assert len(published) == len(rows()) == OF_KAFKA
    assert published == listed | dict.fromkeys(NOT_SERVED, "not served")
    assert all(name == api_name(int(key)) for name, key, *_ in rows())


def test_differences_and_comparisons_of_the_published_table_are_known() -> None:
    entries = " ".join((DOCS / "divergence.md").read_text().split())
    page = (DOCS / "conformance.md").read_text()
    for name, _, versions, differences, compared in rows():
        for one in differences.split("; "):
            assert one == "–" or f"- **{one}" in entries, f"{name}: {one}"
        assert (compared == "–") == (versions == "not served"), name
        for one in compared.split(", "):
            assert one == "–" or f"\n| {one} | " in page, f"{name}: {one}"
