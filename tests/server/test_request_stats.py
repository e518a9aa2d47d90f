"""What is counted of requests: by version, error, time and size."""

from __future__ import annotations

from kraftd.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftd.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kraftd.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraftd.server.call import Call
from kraftd.server.request_stats import RequestStats, error_codes
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode


def call(key: int, version: int = 0, arrived_ns: int = 0, envelope: Call | None = None) -> Call:
    made = Call(1, 0, "CONTROLLER", "127.0.0.1", key, version, 1, "c", None, envelope=envelope)
    made.arrived_ns, made.size_bytes = arrived_ns, 100
    return made


def test_errors_are_found_wherever_they_stand_in_a_response() -> None:
    exists = CreatableTopicResult("a", error_code=ErrorCode.TOPIC_ALREADY_EXISTS)
    topics = [exists, CreatableTopicResult("b"), exists]
    assert error_codes(CreateTopicsResponse(topics=topics)) == [36, 36]
    assert error_codes(BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)) == [77]
    fenced = PartitionData(error_code=ErrorCode.FENCED_LEADER_EPOCH)
    fetched = FetchResponse(responses=[FetchableTopicResponse(partitions=[fenced])])
    assert error_codes(fetched) == [74]
    assert error_codes(FetchResponse(error_code=ErrorCode.INVALID_REQUEST)) == [42]
    assert error_codes(CreateTopicsResponse(topics=[CreatableTopicResult("b")])) == []


def test_errors_are_counted_by_api_and_an_answer_without_any_leaves_no_trace() -> None:
    stats = RequestStats()
    stats.count_errors(ApiKey.BROKER_HEARTBEAT, BrokerHeartbeatResponse())
    assert stats.by_key == {}
    for _ in range(2):
        stats.count_errors(ApiKey.BROKER_HEARTBEAT, BrokerHeartbeatResponse(error_code=77))
    assert stats.by_key[ApiKey.BROKER_HEARTBEAT].errors == {77: 2}


def test_a_request_counts_by_version_with_its_time_and_size() -> None:
    stats = RequestStats()
    stats.answered(call(ApiKey.FETCH, 17, arrived_ns=1_000), True, 61_000)
    stats.answered(call(ApiKey.FETCH, 17, arrived_ns=1_000), False, 500_001_000)
    stats.answered(call(ApiKey.FETCH, 12), True, 10)
    fetch = stats.by_key[ApiKey.FETCH]
    assert fetch.versions == {17: 2, 12: 1}
    assert (fetch.at_once.count, fetch.at_once.total) == (2, 60_010)
    assert (fetch.parked.count, fetch.parked.total) == (1, 500_000_000)
    assert (fetch.size_bytes.count, fetch.size_bytes.total) == (3, 300)


def test_a_request_in_an_envelope_counts_and_so_does_its_envelope() -> None:
    stats = RequestStats()
    outer = call(ApiKey.ENVELOPE)
    stats.answered(call(ApiKey.CREATE_TOPICS, 7, envelope=outer), True, 1)
    assert {key: one.versions for key, one in stats.by_key.items()} == {
        ApiKey.CREATE_TOPICS: {7: 1},
        ApiKey.ENVELOPE: {0: 1},
    }
