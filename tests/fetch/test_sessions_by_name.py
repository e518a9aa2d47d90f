"""Fetch sessions below Fetch v13, whose requests have the names of topics."""

from __future__ import annotations

from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kraftd.messages.fetch_response import FetchResponse, PartitionData
from kraftd.wire.error_code import ErrorCode
from tests.fetch.test_sessions import ALL_BYTES, Server, fetch_request

BY_NAME = 12


def by_name(
    session_id: int, epoch: int, names: tuple[str, ...], *, forgotten: tuple[str, ...] = ()
) -> FetchRequest:
    """A fetch of partition 0 of each of these topics."""
    return FetchRequest(
        max_bytes=ALL_BYTES,
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(name, partitions=[FetchPartition(partition_max_bytes=1000)]) for name in names],
        forgotten_topics_data=[ForgottenTopic(name, partitions=(0,)) for name in forgotten],
    )


def ask(server: Server, request: FetchRequest, version: int = BY_NAME) -> FetchResponse:
    return server.sessions.answer(server.sessions.begin(request, version, server.now_ms), server.now_ms)


def partitions_of(response: FetchResponse) -> dict[str, PartitionData]:
    return {topic.topic: topic.partitions[0] for topic in response.responses}


def server_with_records() -> Server:
    """Sessions over three topics with one record each."""
    server = Server()
    for _, partitions in server.world.source.topics.values():
        partitions[0].append(100)
        partitions[0].high_watermark = 1
    return server


def test_topics_are_answered_under_their_names_and_forgotten_by_them() -> None:
    server = server_with_records()
    first = ask(server, by_name(0, 0, ("a", "b", "c")))
    assert {name: len(data.records or b"") for name, data in partitions_of(first).items()} == dict.fromkeys(
        "abc", 100
    )
    assert all(topic.topic_id == bytes(16) for topic in first.responses)
    second = ask(server, by_name(first.session_id, 1, (), forgotten=("a", "c")))
    assert {name: len(data.records or b"") for name, data in partitions_of(second).items()} == {"b": 100}
    assert server.sessions.cache.partitions == 1


def test_a_topic_without_a_name_is_unknown() -> None:
    (response,) = ask(Server(), by_name(0, 0, ("",))).responses
    assert response.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_session_goes_on_with_names_or_with_ids_as_it_began() -> None:
    server = server_with_records()
    one, _ = server.world.source.topics["a"]
    named = ask(server, by_name(0, 0, ("a",)))
    assert (
        ask(server, fetch_request(named.session_id, 1, {}), 13).error_code
        == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    )
    by_id = ask(server, fetch_request(0, 0, {(one, 0): 0}), 13)
    assert not by_id.error_code and by_id.session_id
    refused = ask(server, by_name(by_id.session_id, 1, ("a",)))
    assert refused == FetchResponse(error_code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
    assert len(server.sessions.cache) == 2


def test_a_followers_id_stands_in_another_field_from_version_15_on() -> None:
    server = Server()
    for version, replica_id in ((14, 7), (15, 8)):
        request = fetch_request(0, 0, {}, replica_id=8)
        request.replica_id = 7
        assert server.sessions.begin(request, version, 0).subscription.reader.replica_id == replica_id
