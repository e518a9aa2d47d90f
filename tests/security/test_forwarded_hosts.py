"""ACLs with hosts, asked over the wire by a broker that forwards for clients at addresses of every form."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.create_acls_response import CreateAclsResponse
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.create_topics_response import CreateTopicsResponse
from kraftd.messages.default_principal_data import DefaultPrincipalData
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.describe_cluster_response import DescribeClusterResponse
from kraftd.messages.envelope_request import EnvelopeRequest
from kraftd.messages.envelope_response import EnvelopeResponse
from kraftd.wire.api import ApiKey
from kraftd.wire.codec import encode_bytes
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request, parse_response
from testkit.process import wait_until
from testkit.secured_client import Client, Unreachable
from tests.runtime.daemon_process import DaemonProcess
from tests.security.secured_daemon import PLAIN_MODULE, STANDARD_AUTHORIZER, connect, plain

CREATE, ALLOW, DENY = 5, 3, 2
CLUSTER, LITERAL, VERSION = 4, 3, 7
# Hosts as operators write them in denials.
DENIED = ("2001:db8:0:0:0:0:0:7", "2001:DB8::0008", "10.0.0.7", "::ffff:10.0.0.8", "fe80:0:0:0:0:0:0:1%2")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    users = f'{PLAIN_MODULE} required username="broker" password="b" user_broker="b" user_bob="q";'
    keys = {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": users,
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:broker",
    }
    home = tmp_path_factory.mktemp("forwarding")
    found = DaemonProcess(home, **{key.replace(".", "__"): value for key, value in keys.items()})
    found.format().begin()
    wait_until(lambda: is_active(found), "the controller is active")
    rules = [("*", ALLOW), *((host, DENY) for host in DENIED)]
    creations = [
        AclCreation(CLUSTER, "kafka-cluster", LITERAL, "User:bob", host, CREATE, permission)
        for host, permission in rules
    ]
    with broker(found) as client:
        made = client.ask(ApiKey.CREATE_ACLS, CreateAclsRequest(creations), CreateAclsResponse)
        assert {one.error_code for one in made.results} == {0}
    yield found
    found.stop()


def broker(daemon: DaemonProcess) -> Client:
    return connect(daemon.port, login=plain("broker", "b"))


def is_active(daemon: DaemonProcess) -> bool:
    try:
        with broker(daemon) as client:
            request = DescribeClusterRequest(endpoint_type=2)
            answer = client.ask(ApiKey.DESCRIBE_CLUSTER, request, DescribeClusterResponse)
            return not answer.error_code and answer.controller_id >= 0
    except Unreachable:
        return False


def may_create(client: Client, user: str, address: bytes) -> bool:
    """Return whether a CreateTopics of the user is allowed that a broker forwards from an address."""
    request = CreateTopicsRequest([CreatableTopic("t", 1, 1)], 5_000, validate_only=True)
    carried = b"".join(encode_request(ApiKey.CREATE_TOPICS, VERSION, 1, "c", request))[4:]
    principal = struct.pack(">h", 0) + encode_bytes(DefaultPrincipalData("User", user, False), 0)
    envelope = EnvelopeRequest(carried, principal, address)
    answer = client.ask(ApiKey.ENVELOPE, envelope, EnvelopeResponse)
    assert answer.error_code == ErrorCode.NONE
    _, created = parse_response(ApiKey.CREATE_TOPICS, VERSION, bytes(answer.response_data))
    assert isinstance(created, CreateTopicsResponse)
    return created.topics[0].error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("address", "is_allowed"),
    [
        ("2001:db8::7", False),
        ("2001:db8::8", False),
        ("2001:db8::9", True),
        ("10.0.0.7", False),
        ("::ffff:10.0.0.7", False),
        ("10.0.0.8", False),
        ("::ffff:10.0.0.8", False),
        ("10.0.0.9", True),
        ("fe80::1", True),  # an Envelope has no zone, so this is another host than the one denied
    ],
)
def test_a_denial_of_a_host_holds_for_each_form_of_its_address__kip590(
    daemon: DaemonProcess, address: str, is_allowed: bool
) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with broker(daemon) as client:
        assert may_create(client, "bob", socket.inet_pton(family, address)) == is_allowed


def test_a_client_without_the_right_to_it_forwards_for_no_principal(daemon: DaemonProcess) -> None:
    principal = struct.pack(">h", 0) + encode_bytes(DefaultPrincipalData("User", "broker", False), 0)
    envelope = EnvelopeRequest(b"", principal, bytes((10, 0, 0, 9)))
    with connect(daemon.port, login=plain("bob", "q")) as bob:
        answer = bob.ask(ApiKey.ENVELOPE, envelope, EnvelopeResponse)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
