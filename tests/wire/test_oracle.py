"""kraftd's codecs compared with Kafka's generated ones, for every message in every valid version."""

from __future__ import annotations

import math
import os
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftd.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntryData, OpData
from kraftd.wire.codec import decode, encode_bytes
from tests.wire.checks import check_same_bytes_and_value, check_same_in_other_version
from tests.wire.oracle import Oracle
from tests.wire.strategies import ALL_MESSAGES, for_all, messages, versions

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("engine")]

EXAMPLES = int(os.environ.get("KRAFTD_WIRE_EXAMPLES", "12"))
quick = settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", ALL_MESSAGES)
def test_every_version_has_kafkas_bytes_and_value(oracle: Oracle, name: str) -> None:
    for version in versions(name):
        for_all(messages(name, version), partial(check_same_bytes_and_value, oracle, version), EXAMPLES)


@pytest.mark.parametrize("name", [name for name in ALL_MESSAGES if len(versions(name)) > 1])
def test_a_value_unknown_to_a_version_is_dropped_or_refused_as_by_kafka(oracle: Oracle, name: str) -> None:
    @quick
    @given(st.data())
    def check(data: st.DataObject) -> None:
        version, other = data.draw(st.permutations(versions(name)))[:2]
        check_same_in_other_version(oracle, version, other, data.draw(messages(name, version)))

    check()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0, 5e-324])
def test_a_float_without_a_json_form_has_kafkas_bytes(oracle: Oracle, value: float) -> None:
    request = AlterClientQuotasRequest([EntryData([], [OpData("rate", value)])])
    data = encode_bytes(request, 1)
    assert oracle.transcode("AlterClientQuotasRequest", 1, 1, data) == data
    assert repr(decode(AlterClientQuotasRequest, 1, data)) == repr(request)
