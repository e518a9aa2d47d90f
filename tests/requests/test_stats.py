"""Counts of requests by version, error, time and size."""

from __future__ import annotations

import pytest

from kraftd.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftd.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kraftd.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraftd.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse
from kraftd.requests import stats as stats_module
from kraftd.requests.call import Call
from kraftd.requests.stats import RequestStats, error_codes
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message


def call(
    key: int, version: int = 0, *, arrived_ns: int = 0, size_bytes: int = 100, envelope: Call | None = None
) -> Call:
    pending = Call(1, 0, "CONTROLLER", "127.0.0.1", key, version, 1, "c", None, envelope=envelope)
    pending.arrived_ns, pending.size_bytes = arrived_ns, size_bytes
    return pending


def test_errors_are_found_at_any_depth_of_a_response() -> None:
    exists = CreatableTopicResult("a", error_code=ErrorCode.TOPIC_ALREADY_EXISTS)
    topics = [exists, CreatableTopicResult("b"), exists]
    assert error_codes(CreateTopicsResponse(topics=topics)) == [36, 36]
    assert error_codes(BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)) == [77]
    fenced = PartitionData(error_code=ErrorCode.FENCED_LEADER_EPOCH)
    fetched = FetchResponse(responses=[FetchableTopicResponse(partitions=[fenced])])
    assert error_codes(fetched) == [74]
    assert error_codes(FetchResponse(error_code=ErrorCode.INVALID_REQUEST)) == [42]
    assert error_codes(CreateTopicsResponse(topics=[CreatableTopicResult("b")])) == []


def test_errors_are_counted_by_api_and_answers_without_errors_are_not() -> None:
    stats = RequestStats()
    stats.count_errors(ApiKey.BROKER_HEARTBEAT, BrokerHeartbeatResponse())
    assert stats.by_key == {}
    for _ in range(2):
        stats.count_errors(ApiKey.BROKER_HEARTBEAT, BrokerHeartbeatResponse(error_code=77))
    assert stats.by_key[ApiKey.BROKER_HEARTBEAT].errors == {77: 2}


def test_a_request_counts_by_version_with_its_time_and_size() -> None:
    stats = RequestStats()
    of_turn = [call(ApiKey.FETCH, version, arrived_ns=5_000) for version in (17, 12)]
    stats.answered(of_turn, 5_000, 66_000)
    stats.answered([call(ApiKey.FETCH, 17, arrived_ns=1_000)], 500_000_000, 500_001_000)
    fetch = stats.by_key[ApiKey.FETCH]
    assert fetch.versions == {17: 2, 12: 1}
    assert (fetch.at_once.count, fetch.at_once.total, fetch.at_once.counts[:2]) == (2, 122_000, [0, 2])
    assert (fetch.parked.count, fetch.parked.total) == (1, 500_000_000)
    assert (fetch.size_bytes.count, fetch.size_bytes.total) == (3, 300)


@pytest.mark.parametrize(
    ("size_bytes", "bound"), [(1, 1), (2, 2), (3, 4), (64, 64), (65, 128), (1 << 31, 1 << 31)]
)
def test_a_size_is_in_the_count_of_the_first_bound_that_it_does_not_exceed(
    size_bytes: int, bound: int
) -> None:
    stats = RequestStats()
    stats.answered([call(ApiKey.FETCH, size_bytes=size_bytes)], 0, 0)
    sizes = stats.by_key[ApiKey.FETCH].size_bytes
    assert sizes.bounds[sizes.counts.index(1)] == bound


def test_a_request_in_an_envelope_and_its_envelope_are_both_counted() -> None:
    stats = RequestStats()
    outer = call(ApiKey.ENVELOPE, arrived_ns=5)
    stats.answered([call(ApiKey.CREATE_TOPICS, 7, arrived_ns=5, envelope=outer)], 5, 9)
    for key in (ApiKey.CREATE_TOPICS, ApiKey.ENVELOPE):
        assert (stats.by_key[key].at_once.count, stats.by_key[key].at_once.total) == (1, 4)


@pytest.mark.parametrize(
    ("took_ns", "at"), [(0, 0), (50_000, 0), (50_001, 1), (100_000, 1), (10**10 + 1, -1)]
)
@pytest.mark.parametrize("began_ns", [1_000, 999])
def test_a_time_is_in_the_count_of_the_first_bound_that_it_does_not_exceed(
    took_ns: int, at: int, began_ns: int
) -> None:
    stats = RequestStats()
    for _ in range(2):
        stats.answered([call(ApiKey.FETCH, arrived_ns=1_000)], began_ns, 1_000 + took_ns)
    fetch = stats.by_key[ApiKey.FETCH]
    times, others = (fetch.at_once, fetch.parked) if began_ns == 1_000 else (fetch.parked, fetch.at_once)
    assert (times.counts[at], times.count, times.total) == (2, 2, 2 * took_ns)
    assert (others.count, others.total) == (0, 0)


CREATED = [CreatableTopicResult("a", error_code=number % 2) for number in range(9)]


def partitions(*codes: int) -> FetchableTopicResponse:
    return FetchableTopicResponse(partitions=[PartitionData(error_code=code) for code in codes])


@pytest.mark.parametrize(
    ("response", "codes", "pauses"),
    [
        (FetchResponse(responses=[partitions(74, 0), partitions(), partitions(6, 74)]), [74, 6, 74], (2, 1)),
        (FetchResponse(error_code=70, responses=[partitions(3)]), [70, 3], (0, 0)),
        (FetchResponse(), [], (0, 0)),
        (UpdateFeaturesResponse(0, 0, "", [UpdatableFeatureResult("a", 42, "")]), [42], (0, 0)),
        (UpdateFeaturesResponse(0, 41, "", [UpdatableFeatureResult("a", 42, "")]), [41, 42], (0, 0)),
        (CreateTopicsResponse(topics=CREATED), [1] * 4, (8, 2)),
    ],
    ids=["partitions", "whole", "none", "feature", "whole and feature", "topics"],
)
@pytest.mark.parametrize("structs", [1, 4, 2_000])
def test_errors_counted_in_several_callbacks_equal_those_counted_at_once(
    monkeypatch: pytest.MonkeyPatch,
    response: Message,
    codes: list[int],
    pauses: tuple[int, int],
    structs: int,
) -> None:
    monkeypatch.setattr(stats_module, "MAX_STRUCTS_PER_SLICE", structs)
    at_once, in_slices = RequestStats(), RequestStats()
    for _ in range(2):
        assert at_once.count_errors(7, response) == codes
        steps = in_slices.count_errors_in_slices(7, response)
        paused = 0
        try:
            while True:
                next(steps)
                paused += 1
        except StopIteration as end:
            assert end.value == list(dict.fromkeys(codes))
        assert paused == {1: pauses[0], 4: pauses[1], 2_000: 0}[structs]
    counted = [{key: api.errors for key, api in stats.by_key.items()} for stats in (at_once, in_slices)]
    assert counted == [{7: {code: 2 * codes.count(code) for code in codes}} if codes else {}] * 2


def test_counts_show_how_many_requests_there_were() -> None:
    stats = RequestStats()
    stats.answered([call(ApiKey.FETCH, 17, arrived_ns=5)] * 2, 5, 9)
    stats.answered([call(ApiKey.FETCH, 12, arrived_ns=4)], 5, 9)
    stats.not_served = 4
    assert repr(stats) == "<RequestStats of 1 APIs, 4 requests not served>"
    assert repr(stats.by_key[ApiKey.FETCH]) == "<ApiStats 3 requests, 1 answered after a while>"
