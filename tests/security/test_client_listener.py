"""A client listener with client certificates, at an observer of a quorum under mTLS: two real daemons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.create_acls_response import CreateAclsResponse
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.create_topics_response import CreateTopicsResponse
from kraftd.messages.fetch_response import FetchResponse
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from testkit.certificates import Authority
from testkit.process import free_port, wait_until
from testkit.secured_client import Client, Unreachable
from tests.metadata_topic_node.clients import consuming
from tests.runtime.daemon_process import CLUSTER_ID, DaemonProcess
from tests.security.secured_daemon import STANDARD_AUTHORIZER, connect, tls_keys, tls_of

AUTHORITY = Authority()


class Nodes(NamedTuple):
    """A quorum's only voter, an observer, and the port of the observer's client listener."""

    leader: DaemonProcess
    observer: DaemonProcess
    port: int

    def connect(self, name: str) -> Client:
        return connect(self.port, tls_of(AUTHORITY, AUTHORITY.issue(f"CN={name}")))


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    homes = [tmp_path_factory.mktemp(name) for name in ("leader", "observer")]
    common = {
        "listener.security.protocol.map": "CONTROLLER:SSL,CLIENT:SSL",
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/L,DEFAULT",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:node;User:admin",
    }
    settings = [
        {**common, **tls_keys(home, AUTHORITY, "CN=node"), "kraftd.audit.log": str(home / "audit")}
        for home in homes
    ]
    leader = DaemonProcess(homes[0], **{key.replace(".", "__"): value for key, value in settings[0].items()})
    ports = free_port(), free_port()
    settings[1] |= {
        "node.id": "300",
        "listeners": f"CONTROLLER://127.0.0.1:{ports[0]},CLIENT://127.0.0.1:{ports[1]}",
        "kraftd.client.listener.names": "CLIENT",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{leader.port}",
    }
    observer = DaemonProcess(
        homes[1], ports[0], **{key.replace(".", "__"): value for key, value in settings[1].items()}
    )
    observer.kraftd(
        *("format", "--config", str(observer.properties), "--cluster-id", CLUSTER_ID),
        "--no-initial-controllers",
    )
    leader.format().begin()
    observer.begin()
    started = Nodes(leader, observer, ports[1])

    def serves() -> bool:
        try:
            with started.connect("admin") as admin:
                return fetch_error(admin) == 0
        except Unreachable:
            return False

    try:
        wait_until(serves, "the observer shows the log")
        yield started
    finally:
        observer.stop()
        leader.stop()


def fetch_error(client: Client) -> int:
    answer = client.ask(ApiKey.FETCH, consuming(0), FetchResponse)
    return int(answer.responses[0].partitions[0].error_code) if answer.responses else int(answer.error_code)


def creation_error(client: Client, topic: str) -> int:
    request = CreateTopicsRequest(topics=[CreatableTopic(topic, 1, 1)], validate_only=True)
    return int(client.ask(ApiKey.CREATE_TOPICS, request, CreateTopicsResponse).topics[0].error_code)


def test_active_controller_authorizes_the_client_of_a_passed_on_request(nodes: Nodes) -> None:
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    may_create = AclCreation(
        resource_type=2,
        resource_name="orders",
        resource_pattern_type=3,
        principal="User:alice",
        host="127.0.0.1",
        operation=5,
        permission_type=3,
    )
    request = CreateAclsRequest([may_create])
    with nodes.connect("alice") as alice, nodes.connect("admin") as admin:
        assert creation_error(alice, "orders") == denied
        refused = alice.ask(ApiKey.CREATE_ACLS, request, CreateAclsResponse)
        assert [one.error_code for one in refused.results] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
        created = admin.ask(ApiKey.CREATE_ACLS, request, CreateAclsResponse)
        assert [one.error_code for one in created.results] == [0]
        assert creation_error(alice, "orders") != denied
        assert creation_error(alice, "payments") == denied
    events = [json.loads(line) for line in (nodes.leader.home / "audit").read_text().splitlines()]
    audited = [one for one in events if one.get("resource") == "TOPIC:LITERAL:payments"]
    assert [(one["principal"], one["host"]) for one in audited] == [("User:alice", "127.0.0.1")]


def test_only_an_authorized_client_can_read_the_metadata_log(nodes: Nodes) -> None:
    with nodes.connect("alice") as alice, nodes.connect("admin") as admin:
        assert fetch_error(alice) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert fetch_error(admin) == 0


def test_client_without_a_certificate_cannot_connect(nodes: Nodes) -> None:
    with pytest.raises(Unreachable):
        connect(nodes.port, tls_of(AUTHORITY))
