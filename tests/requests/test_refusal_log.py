"""Refusals that are logged: of which node, with which remedy, and how often."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraftd.messages.begin_quorum_epoch_request import PartitionData as BegunPartition
from kraftd.messages.begin_quorum_epoch_request import TopicData as BegunTopic
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest
from kraftd.messages.controller_registration_request import ControllerRegistrationRequest
from kraftd.messages.create_topics_request import CreateTopicsRequest
from kraftd.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraftd.messages.end_quorum_epoch_request import PartitionData as EndedPartition
from kraftd.messages.end_quorum_epoch_request import TopicData as EndedTopic
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftd.messages.vote_request import PartitionData as VotePartition
from kraftd.messages.vote_request import TopicData as VoteTopic
from kraftd.messages.vote_request import VoteRequest
from kraftd.requests.call import Call
from kraftd.requests.effects import AuditLine, LogLine
from kraftd.requests.outbox import Outbox
from kraftd.requests.refusal_log import RefusalLog, node_id_of
from kraftd.requests.repeats import REPEAT_NS
from kraftd.security.principals import Principal
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode

BROKER, CONTROLLER = ApiKey.BROKER_REGISTRATION, ApiKey.CONTROLLER_REGISTRATION
NO_CLUSTER = ErrorCode.INCONSISTENT_CLUSTER_ID
OWN_ID = 100


def call(key: int, message: Any, at_ns: int = 0, host: str = "10.0.0.7") -> Call:
    principal = Principal("User", "broker")
    return Call(1, 0, "C", host, key, 0, 1, "client", message, principal, arrived_ns=at_ns)


def fetch(node_id: int) -> FetchRequest:
    return FetchRequest(replica_state=ReplicaState(node_id))


@pytest.mark.parametrize("node_id", [-1, 0, 7])
def test_the_sender_of_a_request_is_found_in_every_message_type(node_id: int) -> None:
    receiver = 100
    requests: list[tuple[int, Any]] = [
        (BROKER, BrokerRegistrationRequest(node_id)),
        (CONTROLLER, ControllerRegistrationRequest(node_id)),
        (ApiKey.REMOVE_RAFT_VOTER, RemoveRaftVoterRequest(voter_id=node_id)),
        (ApiKey.FETCH, fetch(node_id)),
        (ApiKey.FETCH, FetchRequest(replica_id=node_id)),  # before v15
        (ApiKey.VOTE, VoteRequest("c", receiver, [VoteTopic("t", [VotePartition(0, 1, node_id)])])),
        (
            ApiKey.BEGIN_QUORUM_EPOCH,
            BeginQuorumEpochRequest(
                "c", receiver, [BegunTopic("t", [BegunPartition(0, bytes(16), node_id, 1)])]
            ),
        ),
        (
            ApiKey.END_QUORUM_EPOCH,
            EndQuorumEpochRequest("c", [EndedTopic("t", [EndedPartition(0, node_id, 1)])]),
        ),
    ]
    found = [node_id_of(call(key, message)) for key, message in requests]
    assert found == [None if node_id < 0 else node_id] * len(requests)
    assert node_id_of(call(ApiKey.CREATE_TOPICS, CreateTopicsRequest())) is None
    assert node_id_of(call(ApiKey.VOTE, VoteRequest("c", receiver, []))) is None


@pytest.mark.parametrize(
    ("key", "message", "code", "noted"),
    [
        (BROKER, BrokerRegistrationRequest(7), ErrorCode.DUPLICATE_BROKER_REGISTRATION, True),
        (CONTROLLER, ControllerRegistrationRequest(7), ErrorCode.UNSUPPORTED_VERSION, True),
        (BROKER, BrokerRegistrationRequest(7), ErrorCode.NOT_CONTROLLER, False),
        (BROKER, BrokerRegistrationRequest(7), ErrorCode.REQUEST_TIMED_OUT, False),
        (BROKER, BrokerRegistrationRequest(7), ErrorCode.NONE, False),
        (ApiKey.FETCH, fetch(7), NO_CLUSTER, True),
        (ApiKey.FETCH, fetch(7), ErrorCode.INVALID_REQUEST, False),
        (ApiKey.FETCH, fetch(OWN_ID), ErrorCode.INVALID_REQUEST, True),
        (ApiKey.FETCH, fetch(-1), ErrorCode.INVALID_REQUEST, False),
        (ApiKey.CREATE_TOPICS, CreateTopicsRequest(), ErrorCode.INVALID_REQUEST, False),
        (BROKER, BrokerRegistrationRequest(OWN_ID), ErrorCode.NOT_CONTROLLER, False),
    ],
)
def test_refused_registrations_strangers_and_own_ids_are_noted(
    key: int, message: Any, code: ErrorCode, noted: bool
) -> None:
    log = RefusalLog(outbox := Outbox())
    log.own_id = OWN_ID
    log.note(call(key, message), (code,))
    assert (len(outbox.take()), len(log.lines(0))) == ((2, 1) if noted else (0, 0))


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (ErrorCode.INCONSISTENT_CLUSTER_ID, "format that node with this cluster's id"),
        (ErrorCode.DUPLICATE_BROKER_REGISTRATION, "give one of them its own"),
        (ErrorCode.UNSUPPORTED_VERSION, "upgrade it"),
        (ErrorCode.INVALID_REGISTRATION, "correct what its registration names"),
        (ErrorCode.INVALID_REQUEST, "the log of that node says more"),
    ],
)
def test_each_refusal_of_a_registration_has_a_remedy_that_fits(code: ErrorCode, remedy: str) -> None:
    log = RefusalLog(outbox := Outbox())
    log.note(call(BROKER, BrokerRegistrationRequest(7)), (code,))
    line, audited = outbox.take()
    assert remedy in line.fields["remedy"] and audited.fields["remedy"] == line.fields["remedy"]
    assert log.lines(0)[0].endswith(line.fields["remedy"])


@pytest.mark.parametrize(("leads", "directory", "noted"), [(0, b"d", 0), (1, b"d", 1), (0, b"e", 1)])
def test_a_nodes_requests_to_itself_are_not_those_of_another(
    leads: int, directory: bytes, noted: int
) -> None:
    log = RefusalLog(Outbox())
    log.own_id, log.own_directory, log.leads = OWN_ID, b"d" * 16, lambda: bool(leads)
    message = fetch(OWN_ID)
    message.topics = [FetchTopic(partitions=[FetchPartition(replica_directory_id=directory * 16)])]
    log.note(call(ApiKey.FETCH, message), (ErrorCode.NOT_LEADER_OR_FOLLOWER,))
    assert len(log.lines(0)) == noted


@pytest.mark.parametrize("node_id", [-1, 0, 1, 2])
def test_before_the_own_id_is_known_no_fetch_counts_as_its_own(node_id: int) -> None:
    log = RefusalLog(Outbox())
    log.note(call(ApiKey.FETCH, fetch(node_id)), (ErrorCode.INVALID_REQUEST,))
    assert log.lines(0) == []


def test_a_refusal_because_of_the_cluster_names_both_ids() -> None:
    log = RefusalLog(outbox := Outbox())
    log.own_cluster_id = "ours"
    for key, message in (
        (ApiKey.FETCH, FetchRequest(cluster_id="theirs")),
        (ApiKey.VOTE, VoteRequest("theirs")),
        (BROKER, BrokerRegistrationRequest(7, "theirs")),
    ):
        log.note(call(key, message), (NO_CLUSTER,))
        warning, _ = outbox.take()
        assert warning.fields["why"] == "it names cluster 'theirs', and this node is of ours"


@pytest.mark.parametrize(
    ("message", "why", "reason", "remedy"),
    [
        (fetch(7), "Another cluster.", "Another cluster", "format that node with this cluster's id, or cor"),
        (
            fetch(7),
            None,
            NO_CLUSTER.message.rstrip("."),
            "format that node with this cluster's id, or correc",
        ),
        (fetch(OWN_ID), None, "it has the id of this node", "give that node an id of its own (node.id), and"),
    ],
)
def test_a_refusal_is_logged_and_audited_with_its_remedy(
    message: FetchRequest, why: str | None, reason: str, remedy: str
) -> None:
    log = RefusalLog(outbox := Outbox())
    log.own_id = OWN_ID
    log.note(call(ApiKey.FETCH, message), (NO_CLUSTER,), why)
    warning, audited = outbox.take()
    assert isinstance(warning, LogLine) and isinstance(audited, AuditLine)
    node_id = message.replica_state.replica_id
    assert warning == LogLine("warning", "a node is refused", warning.fields)
    assert audited == AuditLine("node refused", -1, warning.fields)
    assert warning.fields["remedy"].startswith(remedy) and warning.fields["why"].rstrip(".") == reason
    others = {key: value for key, value in warning.fields.items() if key not in ("remedy", "why")}
    assert others == {
        "api": "FETCH",
        "from_node": node_id,
        "host": "10.0.0.7",
        "client_id": "client",
        "principal": "User:broker",
        "error": "INCONSISTENT_CLUSTER_ID",
        "seen": 1,
    }
    (line,) = log.lines(0)
    assert line.startswith(
        f"node {node_id} at 10.0.0.7 is refused: INCONSISTENT_CLUSTER_ID: {reason}; {remedy}"
    )


def test_a_refusal_without_a_remedy_points_to_the_log_of_that_node() -> None:
    log = RefusalLog(Outbox())
    log.note(call(BROKER, BrokerRegistrationRequest(-1)), (ErrorCode.INVALID_REQUEST,), "XX.")
    assert log.lines(0) == [
        "a node at 10.0.0.7 is refused: INVALID_REQUEST: XX; the log of that node says more"
    ]


def test_each_peer_and_error_is_logged_at_once_and_then_once_a_minute() -> None:
    log = RefusalLog(outbox := Outbox())

    def seen(at_ns: int, code: ErrorCode = NO_CLUSTER, host: str = "a", node_id: int = 7) -> list[int]:
        log.note(call(BROKER, BrokerRegistrationRequest(node_id), at_ns, host), (code,))
        return [one.fields["seen"] for one in outbox.take() if isinstance(one, LogLine)]

    assert [seen(0), seen(1), seen(2)] == [[1], [], []]
    assert seen(3, host="b") == seen(4, node_id=8) == seen(5, ErrorCode.INVALID_REGISTRATION) == [1]
    assert [seen(REPEAT_NS - 1), seen(REPEAT_NS)] == [[], [4]]
    assert len(log.lines(REPEAT_NS)) == 4
    assert len(log.lines(REPEAT_NS + 4)) == 2
