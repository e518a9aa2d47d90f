"""Every invalid request gets an answer, leaves the leader, causes no fault, and changes nothing in part.

A real daemon gets requests of every API of its listener in every version, with bodies drawn from the field
tables. KRAFTD_WILD_SEED and KRAFTD_WILD_ROUNDS draw others, and more of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraftd.controller_node.routes import ROWS
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from kraftd.messages.controller_registration_request import ControllerRegistrationRequest
from kraftd.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kraftd.messages.default_principal_data import DefaultPrincipalData
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kraftd.messages.envelope_request import EnvelopeRequest
from kraftd.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraftd.metadata.features import supported_features
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey, valid_versions
from kraftd.wire.codec import encode_bytes
from kraftd.wire.frames import encode_request, parse_response
from kraftd.wire.message import Message
from tests.runtime.daemon_process import CLUSTER_ID, Client, DaemonProcess
from tests.runtime.wild_requests import WildRequests

SEED = int(os.environ.get("KRAFTD_WILD_SEED", "1"))
ROUNDS = int(os.environ.get("KRAFTD_WILD_ROUNDS", "4"))
BROKERS = (1, 2, 3)
# The field for an error of the whole request; the codes of partitions are raft's answers.
_WHOLE = "error_code"
_DESCRIBE = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(0)])])


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[DaemonProcess]:
    """A daemon that writes no records by itself, with brokers and topics."""
    quiet: dict[str, Any] = {
        "metadata__max__idle__interval__ms": 0,
        "broker__session__timeout__ms": 3_600_000,
        "auto__leader__rebalance__enable": "false",
    }
    running = DaemonProcess(tmp_path, **quiet).format().start()
    yield running
    running.stop()


def furnish(client: Client) -> tuple[bytes, ...]:
    """Register brokers and create topics; return the topics' ids."""
    features = [Feature(name, *span) for name, span in supported_features().items()]
    for broker_id in BROKERS:
        registration = BrokerRegistrationRequest(
            broker_id,
            CLUSTER_ID,
            bytes(15) + bytes([broker_id]),
            [Listener("PLAINTEXT", "localhost", 9092)],
            features,
            log_dirs=(b"\x31" * 15 + bytes([broker_id]),),
        )
        epoch = client.call(registration, 4).broker_epoch
        client.call(BrokerHeartbeatRequest(broker_id, epoch, 10**6), 2)
    rows = [CreatableReplicaAssignment(index, BROKERS) for index in range(3)]
    topics = [CreatableTopic(name, -1, -1, rows) for name in ("a", "b")]
    answer = client.call(CreateTopicsRequest(topics, 1_000), 7)
    assert [one.error_code for one in answer.topics] == [0, 0]
    return tuple(one.topic_id for one in answer.topics)


def leadership(client: Client) -> tuple[int, int, int]:
    """Leader, epoch and log end, as the leader describes them."""
    answer = client.call(_DESCRIBE, 2)
    assert answer.error_code == 0, answer
    (topic,) = answer.topics
    (partition,) = topic.partitions
    assert partition.error_code == 0, answer
    (voter,) = partition.current_voters
    return partition.leader_id, partition.leader_epoch, voter.log_end_offset


def codes(answer: Any) -> Iterator[int]:
    """Every error code of an answer."""
    for name in answer.__struct_fields__:
        value = getattr(answer, name)
        if name == "error_code":
            yield value
        elif isinstance(value, Message):
            yield from codes(value)
        elif isinstance(value, list):
            for each in value:
                yield from codes(each)


def of_others(request: Any) -> Message:
    """Change the request to concern another controller: a controller corrects its own registration."""
    match request:
        case ControllerRegistrationRequest(controller_id=100):
            request.controller_id = 101
        case UpdateRaftVoterRequest(voter_id=100):
            request.voter_id = 101
    changed: Message = request
    return changed


def ask_in_envelope(
    client: Client, key: ApiKey, version: int, request: Message, before: tuple[int, int, int]
) -> tuple[int, int, int]:
    """Send the same as a broker that forwards it; return the leadership afterwards."""
    principal = b"\0\0" + encode_bytes(DefaultPrincipalData("User", "alice", False), 0)
    frame = b"".join(encode_request(key, version, 7, "client", request))[4:]
    outer = client.call(EnvelopeRequest(frame, principal, bytes([127, 0, 0, 1])), 0)
    after = leadership(client)
    assert after[:2] == before[:2], f"{key.name} v{version} {request!r} in an Envelope moved the leadership"
    refused = bool(outer.error_code)
    if not refused:
        header, answer = parse_response(key, version, bytes(outer.response_data))
        assert header.correlation_id == 7
        found = list(codes(answer))
        refused = bool(getattr(answer, _WHOLE, 0) or (found and all(found)))
    assert after == before or not refused, f"{key.name} v{version} {request!r} was refused and wrote"
    return after


def test_wild_requests_are_answered_and_refused_ones_change_nothing(daemon: DaemonProcess) -> None:
    client = daemon.client()
    ids = furnish(client)
    before = leadership(client)
    wild = WildRequests(SEED, (CLUSTER_ID,), ids, before[1])
    changed = refused = 0
    for _ in range(ROUNDS):
        for key in (row[0] for row in ROWS):
            first, last = valid_versions(key)
            for version in range(first, last + 1):
                request = of_others(wild.request(key, version))
                sent = f"seed {SEED}: {key.name} v{version} {request!r}"
                try:
                    answer = client.call(request, version)
                except ConnectionError:
                    raise AssertionError(f"{sent} cost its connection") from None
                after = leadership(client)
                assert after[:2] == before[:2], f"{sent} moved the leadership to {after}: {answer!r}"
                found = list(codes(answer))
                if getattr(answer, _WHOLE, 0) or (found and all(found)):
                    assert after == before, f"{sent} was refused and wrote: {answer!r}"
                    refused += 1
                changed += after != before
                before = ask_in_envelope(client, key, version, request, after)
    failures = [line for line in daemon.lines() if line["level"] in ("error", "critical")]
    assert not failures, failures[0]
    assert refused > ROUNDS * 40 and changed, (refused, changed)
