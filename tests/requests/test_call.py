"""The framing of answers: alone, in an Envelope, and in several callbacks."""

from __future__ import annotations

from collections.abc import Generator
from copy import deepcopy
from typing import Any

import pytest

from kraftd.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kraftd.messages.describe_quorum_response import DescribeQuorumResponse
from kraftd.messages.envelope_response import EnvelopeResponse
from kraftd.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraftd.messages.unregister_broker_response import UnregisterBrokerResponse
from kraftd.requests import call as call_module
from kraftd.requests.call import Call, FrameMemo
from kraftd.requests.effects import AnswerRecords, RecordsOf
from kraftd.wire.api import ApiKey, response_version
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_response, parse_response
from kraftd.wire.message import Message
from kraftd.wire.slices import MAX_STRUCTS_PER_SLICE, EncodedRows

OUTER_ID, INNER_ID = 5, 7
RECORDS = bytes(range(256)) * 40


def fetched(records: bytes | memoryview) -> FetchResponse:
    return FetchResponse(responses=[FetchableTopicResponse("t", partitions=[PartitionData(records=records)])])


ANSWERS: list[tuple[int, int, Message]] = [
    (ApiKey.UNREGISTER_BROKER, 0, UnregisterBrokerResponse(0, 42, "no")),
    (
        ApiKey.CREATE_TOPICS,
        7,
        CreateTopicsResponse(3, [CreatableTopicResult("a")] * 2 * MAX_STRUCTS_PER_SLICE),
    ),
    (ApiKey.FETCH, 12, fetched(RECORDS)),
]


def call(key: int, version: int, *, carried: bool) -> Call:
    outer = Call(1, 0, "C", "h", ApiKey.ENVELOPE, 0, OUTER_ID, "broker", None) if carried else None
    return Call(1, 0, "C", "h", key, version, INNER_ID, "c", None, envelope=outer)


def opened(whole: bytes) -> EnvelopeResponse:
    assert int.from_bytes(whole[:4], "big") == len(whole) - 4
    header, message = parse_response(ApiKey.ENVELOPE, response_version(ApiKey.ENVELOPE, 0), whole[4:])
    assert header.correlation_id == OUTER_ID
    assert isinstance(message, EnvelopeResponse)
    return message


def last(slices: Generator[None, None, Any]) -> Any:
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize("in_slices", [False, True])
@pytest.mark.parametrize(("key", "version", "answer"), ANSWERS, ids=["short", "long", "records"])
def test_an_answer_in_an_envelope_equals_the_plain_one_but_for_its_size__kip590(
    key: int, version: int, answer: Any, in_slices: bool
) -> None:
    expected = b"".join(encode_response(key, version, INNER_ID, answer))
    framed = []
    for carried in (False, True):
        pending = call(key, version, carried=carried)
        if in_slices:
            framed.append(b"".join(last(pending.frame_in_slices(deepcopy(answer)))))
        else:
            framed.append(b"".join(pending.frame(answer)))
    assert framed[0] == expected
    message = opened(framed[1])
    assert (message.error_code, bytes(message.response_data or b"")) == (0, expected[4:])


@pytest.mark.parametrize(
    ("key", "code", "wrong"),
    [
        (ApiKey.CREATE_TOPICS, ErrorCode.NOT_CONTROLLER, True),
        (ApiKey.CREATE_TOPICS, ErrorCode.NOT_LEADER_OR_FOLLOWER, False),
        (ApiKey.DESCRIBE_QUORUM, ErrorCode.NOT_LEADER_OR_FOLLOWER, True),
        (ApiKey.DESCRIBE_QUORUM, ErrorCode.NOT_CONTROLLER, False),
    ],
)
@pytest.mark.parametrize("carried", [True, False])
def test_an_envelope_at_the_wrong_controller_is_refused_as_a_whole__kip590(
    key: ApiKey, code: ErrorCode, wrong: bool, carried: bool
) -> None:
    answer = DescribeQuorumResponse() if key == ApiKey.DESCRIBE_QUORUM else CreateTopicsResponse()
    pending = call(key, 0 if key == ApiKey.DESCRIBE_QUORUM else 7, carried=carried)
    whole = b"".join(pending.frame_with(answer, [ErrorCode.INVALID_REQUEST, code]))
    if not carried:
        assert whole == b"".join(pending.frame(answer))
        return
    message = opened(whole)
    if wrong:
        assert (message.error_code, message.response_data) == (ErrorCode.NOT_CONTROLLER, None)
    else:
        assert message.error_code == 0 and message.response_data


def test_read_records_are_filled_into_the_answer() -> None:
    pending = call(ApiKey.FETCH, 12, carried=False)
    answer = fetched(b"")
    records = RecordsOf(answer.responses[0].partitions[0], 3, 9, 1 << 20)
    effect = AnswerRecords(pending, answer, (records,))
    assert b"".join(effect.fill([memoryview(RECORDS)])) == b"".join(pending.frame(fetched(RECORDS)))


@pytest.mark.parametrize("carried", [False, True])
def test_a_shared_answer_is_framed_like_a_separate_one(carried: bool) -> None:
    pending, memo = call(ApiKey.UNREGISTER_BROKER, 0, carried=carried), FrameMemo()
    for code in (42, 42, 0):
        answer = UnregisterBrokerResponse(0, code, "no")
        assert b"".join(pending.frame_repeated(answer, memo)) == b"".join(pending.frame(answer))


def test_a_call_shows_its_api_its_client_and_the_envelope_around_it() -> None:
    inner = call(ApiKey.FETCH, 12, carried=True)
    assert inner.envelope is not None
    assert repr(inner) == "<Call FETCH v12 in Envelope of 'c' at h, User:ANONYMOUS>"
    assert repr(inner.envelope) == "<Call ENVELOPE v0 of 'broker' at h, User:ANONYMOUS>"
    assert repr(call(999, 3, carried=False)) == "<Call API 999 v3 of 'c' at h, User:ANONYMOUS>"


def test_an_answer_that_many_get_is_encoded_once_for_each_version(monkeypatch: pytest.MonkeyPatch) -> None:
    memo = FrameMemo()
    encoded: list[int] = []

    def encode(key: int, version: int, correlation_id: int, response: Message) -> Any:
        encoded.append(version)
        return encode_response(key, version, correlation_id, response)

    monkeypatch.setattr(call_module, "encode_response", encode)
    first, equal, other = fetched(RECORDS), fetched(bytes(RECORDS)), fetched(b"cd")
    for version, response in ((12, first), (12, first), (12, equal), (11, first), (12, equal), (12, other)):
        whole = memo.frame(ApiKey.FETCH, version, 5, response)
        assert whole == b"".join(encode_response(ApiKey.FETCH, version, 5, response))
    assert encoded == [12, 11, 12]


def test_an_envelope_around_an_answer_in_slices_has_no_error__kip590() -> None:
    pending = call(ApiKey.UNREGISTER_BROKER, 0, carried=True)
    whole = b"".join(last(pending.frame_in_slices(UnregisterBrokerResponse(0, 42, "no"))))
    assert opened(whole).error_code == ErrorCode.NONE


def test_a_large_answer_is_not_copied_into_its_envelope__kip590() -> None:
    row = CreatableTopicResult("a", bytes(16), ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    refused = EncodedRows(CreateTopicsResponse, "topics", 7)
    rows = refused.encode(row) * 40_000
    refused.add_encoded(rows, 40_000)
    pending = call(ApiKey.CREATE_TOPICS, 7, carried=True)
    parts = last(pending.frame_in_slices(CreateTopicsResponse(), refused))
    assert any(part is rows for part in parts)
    message = opened(b"".join(parts))
    _, carried = parse_response(ApiKey.CREATE_TOPICS, 7, bytes(message.response_data or b""))
    assert isinstance(carried, CreateTopicsResponse)
    assert carried.topics == [row] * 40_000
