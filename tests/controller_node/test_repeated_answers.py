"""An answer that many clients get is encoded once."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraftd.requests.call import ANONYMOUS, Call, FrameMemo
from kraftd.types import METADATA_TOPIC_ID
from kraftd.wire.api import ApiKey


def call(version: int, correlation_id: int) -> Call:
    return Call(1, 0, "CONTROLLER", "127.0.0.1", ApiKey.FETCH, version, correlation_id, "c", None, ANONYMOUS)


def answer(high_watermark: int) -> FetchResponse:
    partition = PartitionData(partition_index=0, high_watermark=high_watermark, records=b"")
    topic = FetchableTopicResponse("", METADATA_TOPIC_ID, [partition])
    return FetchResponse(responses=[topic])


@pytest.mark.parametrize("same_object", [True, False])
def test_remembered_answer_is_the_one_that_would_be_encoded(same_object: bool) -> None:
    memo, shared = FrameMemo(), answer(7)
    for version in (13, 17, 18, 13, 17):
        for correlation_id in (0, 1, -1, 2**31 - 1, -(2**31)):
            repeated = call(version, correlation_id)
            response = shared if same_object else answer(7)
            assert repeated.frame_repeated(response, memo) == [b"".join(repeated.frame(response))]


def test_a_different_answer_is_encoded_anew() -> None:
    memo = FrameMemo()
    frames: list[Any] = []
    for high_watermark in (7, 8, 7):
        repeated = call(17, 5)
        frames.append(repeated.frame_repeated(answer(high_watermark), memo))
        assert frames[-1] == [b"".join(repeated.frame(answer(high_watermark)))]
    assert frames[0] == frames[2] != frames[1]
