"""Requests that share a kept answer, the number of kept ones, and how the boundary answers from them."""

from __future__ import annotations

import struct

import pytest
from msgspec.structs import asdict

from kraftd.messages.unregister_broker_response import UnregisterBrokerResponse
from kraftd.requests import answer_memo
from kraftd.requests.answer_memo import MAX_REQUEST_BYTES, AnswerMemo, Place
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call
from kraftd.requests.effects import Answer
from kraftd.requests.events import FramesReceived
from kraftd.requests.outbox import Outbox
from kraftd.requests.registry import Registry, Route
from kraftd.security.principals import Principal
from kraftd.wire.api import ApiKey
from kraftd.wire.primitives import Buffer

LISTENER = "CONTROLLER"


def frame(
    client_id: bytes | None = b"c",
    rest: bytes = b"\0same",
    version: int = 12,
    correlation_id: int = 7,
    key: int = ApiKey.METADATA,
) -> bytes:
    length = -1 if client_id is None else len(client_id)
    return struct.pack(">hhih", key, version, correlation_id, length) + (client_id or b"") + rest


def call(place: Place | None, envelope: Call | None = None) -> Call:
    return Call(1, 0, LISTENER, "h", ApiKey.METADATA, 12, 7, "c", None, envelope=envelope, place=place)


def kept_keys(memo: AnswerMemo, *sizes: int) -> list[object]:
    """Keep answers of these sizes under the keys 0, 1 and so on; return the remaining keys."""
    for key, size_bytes in enumerate(sizes):
        memo.keep(call(Place(memo.answers, key)), [bytes(8), bytes(size_bytes - 8)])
    return list(memo.answers)


def test_requests_with_a_full_header_up_to_a_kilobyte_have_a_key() -> None:
    memo = AnswerMemo([ApiKey.METADATA])
    whole = frame(b"", bytes(MAX_REQUEST_BYTES))
    sizes = (9, 10, 1024, 1025)
    assert [memo.key(9, LISTENER, whole[:size]) is None for size in sizes] == [True, False, False, True]


@pytest.mark.parametrize("client_id", [None, b"", b"c", b"another"])
def test_requests_that_differ_only_in_client_and_correlation_id_share_a_key(client_id: bytes | None) -> None:
    memo = AnswerMemo([ApiKey.METADATA])
    key = memo.key(9, LISTENER, frame(b"one"))
    assert memo.key(1, LISTENER, frame(client_id)) == key
    assert memo.key(1, LISTENER, frame(client_id, correlation_id=-(1 << 31))) == key
    assert memo.key(2, LISTENER, frame(client_id)) != key
    assert memo.key(9, "EXTERNAL", frame(client_id)) != key
    assert memo.key(9, LISTENER, frame(client_id, version=11)) != key
    assert memo.key(9, LISTENER, frame(client_id, b"\1same")) != key
    assert memo.key(9, LISTENER, frame(client_id, b"\0other")) != key


@pytest.mark.parametrize(
    ("client_id", "same"), [(None, False), (b"", False), (b"log", True), (b"log-1", True), (b"lo", False)]
)
def test_a_client_id_counts_as_far_as_it_begins_with_a_prefix(client_id: bytes | None, same: bool) -> None:
    memo = AnswerMemo([ApiKey.METADATA], b"log")
    key = memo.key(9, LISTENER, frame(client_id, b"g-and-more"))
    assert (key == memo.key(9, LISTENER, frame(b"log", b"g-and-more"))) is same


@pytest.mark.parametrize(
    ("sizes", "remaining"),
    [
        ((100,), [0]),
        ((101,), []),
        ((60, 40), [0, 1]),
        ((60, 41), [1]),
        ((60, 41, 59), [1, 2]),
        ((8,) * 4, [0, 1, 2, 3]),
        ((8,) * 5, [4]),
    ],
)
def test_kept_answers_are_bounded_by_bytes_and_number(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], remaining: list[int]
) -> None:
    monkeypatch.setattr(answer_memo, "MAX_BYTES", 100)
    monkeypatch.setattr(answer_memo, "MAX_ANSWERS", 4)
    memo = AnswerMemo([ApiKey.METADATA])
    assert kept_keys(memo, *sizes) == remaining
    memo.forget()
    assert kept_keys(memo, *sizes) == remaining


def test_an_answer_in_pieces_is_kept_whole_without_its_correlation_id() -> None:
    memo = AnswerMemo([ApiKey.METADATA])
    memo.keep(call(Place(memo.answers, "key")), [b"size", b"idid", b"ab", b"cd"])
    assert memo.answers == {"key": (ApiKey.METADATA, 12, b"size", b"abcd")}
    assert repr(memo) == "<AnswerMemo, 1 answers of 12 bytes>"


def test_the_same_request_on_another_listener_is_answered_anew() -> None:
    key = ApiKey.UNREGISTER_BROKER
    memo, outbox = AnswerMemo([key]), Outbox()
    places: list[Place | None] = []
    route = Route(key, None, None, lambda: lambda call: places.append(call.place))
    boundary = Boundary(Registry([route]), outbox, memo=memo)
    whole = frame(b"one", b"\0" + bytes(4) + b"\0", 0, 7, key)
    for listener in (LISTENER, "EXTERNAL"):
        boundary.take_in(FramesReceived(1, 0, [memoryview(whole)], listener, "h"))
    assert [one and one.key for one in places] == [memo.key(1, one, whole) for one in (LISTENER, "EXTERNAL")]
    assert all(one is not None and one.answers is memo.answers for one in places)


def test_an_outdated_answer_or_one_to_an_envelope_is_not_kept() -> None:
    memo = AnswerMemo([ApiKey.METADATA])
    before = memo.answers
    memo.forget()
    memo.keep(call(Place(before, "old")), [bytes(8)])
    memo.keep(call(None), [bytes(8)])
    memo.keep(call(Place(memo.answers, "inner"), envelope=call(None)), [bytes(8)])
    assert memo.answers == before == {}


def test_a_kept_answer_has_the_requests_correlation_id_and_is_counted() -> None:
    key, principal = ApiKey.UNREGISTER_BROKER, Principal("User", "alice")
    memo, outbox = AnswerMemo([key]), Outbox()

    def handle(call: Call) -> None:
        parts: list[Buffer] = call.frame(UnregisterBrokerResponse())
        memo.keep(call, parts)
        boundary.send(call, parts)

    registry = Registry([Route(key, None, None, lambda: handle)])
    boundary = Boundary(registry, outbox, memo=memo)

    def send(connection_id: int, slot: int, *frames: bytes) -> list[Answer]:
        views = [memoryview(one) for one in frames]
        boundary.take_in(FramesReceived(connection_id, slot, views, LISTENER, "10.0.0.1", 5, principal))
        return outbox.take()  # type: ignore[return-value]

    request = b"\0" + bytes(4) + b"\0"  # no tags in the header, the broker id, no tags in the body
    (first,) = send(1, 0, frame(b"one", request, 0, 7, key))
    again = send(
        9, 3, *[frame(name, request, 0, 8 + at, key) for at, name in enumerate((b"another", None, b"c"))]
    )
    assert len(again) == 3
    for at, answer in enumerate(again):
        expected = b"".join(first.parts)
        assert b"".join(answer.parts) == expected[:4] + struct.pack(">i", 8 + at) + expected[8:]
        assert (answer.connection_id, answer.slot) == (9, 3 + at)
        assert answer.call is not None
        assert asdict(answer.call) == {
            "connection_id": 9,
            "slot": 3 + at,
            "listener": LISTENER,
            "host": "10.0.0.1",
            "key": key,
            "version": 0,
            "correlation_id": 0,
            "client_id": "",
            "message": None,
            "principal": principal,
            "envelope": None,
            "arrived_ns": 5,
            "size_bytes": [23, 16, 17][at],
            "is_large": False,
            "settled": True,
            "place": None,
            "throttle_ms": 0,
            "mute_ms": 0,
            "again": None,
            "varied": None,
            "by_broker": False,
            "refused_rows": (),
        }
