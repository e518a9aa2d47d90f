"""Stock brokers on kraftd over SASL_SSL and mTLS, with the StandardAuthorizer on everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.create_topics_response import CreateTopicsResponse
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from testkit.certificates import Authority
from testkit.cluster import random_uuid
from testkit.java import tools
from testkit.java_stores import store_keys, write_key_store
from testkit.node import Broker, Kind
from testkit.process import free_port, wait_until
from tests.kafka.secured.nodes import (
    OF_CONTROLLER,
    PROTOCOLS,
    OverSasl,
    SecuredController,
    admin,
    broker,
    can_log_in,
    controller,
)
from tests.security.secured_daemon import connect, scram, tls_of

pytestmark = pytest.mark.kafka

STORES = {100: "PKCS12", 101: "JKS"}  # types of stores, by the kraftd controllers with them
ACL_FIELDS = (
    "restype",
    "name",
    "resource_pattern_type",
    "principal",
    "host",
    "operation",
    "permission_type",
)


def creation_error(client: AdminClient, name: str) -> str | None:
    """Create a topic; return the error's name, or None."""
    try:
        client.create_topics([NewTopic(name, 1, 1)])[name].result(20)
    except KafkaException as error:
        return str(error.args[0].name())
    return None


def may_create(principal: str, prefix: str) -> AclBinding:
    """An ACL that lets a principal create topics with that prefix."""
    return AclBinding(
        ResourceType.TOPIC,
        prefix,
        ResourcePatternType.PREFIXED,
        principal,
        "*",
        AclOperation.CREATE,
        AclPermissionType.ALLOW,
    )


def test_changes_of_acls_take_effect_at_broker_and_controller(
    over_sasl: OverSasl,
) -> None:
    port = over_sasl.clients_port
    root, alice = admin(port, "admin"), admin(port, "alice")
    assert creation_error(alice, "orders-1") == "TOPIC_AUTHORIZATION_FAILED"
    rule = may_create("User:alice", "orders-")
    root.create_acls([rule])[rule].result(20)
    wait_until(lambda: creation_error(alice, "orders-1") is None, "alice may create")
    assert creation_error(alice, "payments") == "TOPIC_AUTHORIZATION_FAILED"
    assert creation_error(root, "payments") is None


def test_a_broker_whose_password_is_wrong_never_registers(
    over_sasl: OverSasl,
) -> None:
    first = over_sasl.controller
    with pytest.raises(Exception, match="invalid credentials"):
        first.login = scram("broker", "wrong")
        try:
            first.active_controller()
        finally:
            first.login = scram("admin", "admin-secret")
    assert "wrong password" in first.log.read_text()
    assert "broker-secret" not in first.log.read_text()


def test_a_secured_cluster_changes_the_kind_of_its_controller_and_back(over_sasl: OverSasl) -> None:
    cluster, port = over_sasl, over_sasl.clients_port
    root, alice = admin(port, "admin"), admin(port, "alice")
    rule = may_create("User:alice", "moved-")
    root.create_acls([rule])[rule].result(20)
    secret = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    mover = UserScramCredentialUpsertion("mover", secret, b"mover-secret")
    root.alter_user_scram_credentials([mover])["mover"].result(20)
    began_as: Kind = cluster.controller.kind
    other: Kind = "kraftd" if began_as == "apache" else "apache"
    for kind in (other, began_as):
        cluster.controller.stop()
        cluster.controller.kind = kind
        cluster.controller.start()
        cluster.controller.wait_ready()
        allowed = (None, "TOPIC_ALREADY_EXISTS")
        wait_until(lambda: creation_error(alice, f"moved-{kind}") in allowed, "alice may create")  # noqa: B023
        assert creation_error(alice, f"payments-{kind}") == "TOPIC_AUTHORIZATION_FAILED"
        assert can_log_in(cluster, "mover", "mover-secret")


@pytest.fixture(scope="module")
def over_tls(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[list[SecuredController], Broker, int]]:
    """Two controllers of kraftd with stores of the JDK's keytool, one of Apache Kafka, and broker 1.

    All of them log in by certificates.
    """
    home, authority = tmp_path_factory.mktemp("tls"), Authority()
    ids = (100, 101, 102)
    ports = {node_id: free_port() for node_id in ids}
    nodes = ";".join(
        f"User:{name}" for name in ("controller-100", "controller-101", "controller-102", "broker-1")
    )
    common: dict[str, object] = {
        "listener.security.protocol.map": PROTOCOLS.format("SSL"),
        "controller.quorum.voters": ",".join(f"{one}@127.0.0.1:{ports[one]}" for one in ids),
        "super.users": f"{nodes};User:admin;User:ANONYMOUS",
        f"{OF_CONTROLLER}ssl.client.auth": "required",
        f"{OF_CONTROLLER}ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
    }
    kinds = {100: "kraftd", 101: "kraftd", 102: "apache"}
    own: dict[int, dict[str, str]] = {
        **{
            one: store_keys(home / str(one), authority, f"CN=controller-{one}", form, OF_CONTROLLER)
            for one, form in STORES.items()
        },
        102: {},
    }
    controllers = [
        controller(one, home / str(one), ports[one], authority, {**common, **own[one]}, kind=kinds[one])
        for one in ids
    ]
    outer = free_port()
    stock = broker(1, home / "broker", (free_port(), outer), authority, common)
    cluster_id = random_uuid()
    for node in (*controllers, stock):
        node.format(cluster_id)
    try:
        for node in (*controllers, stock):
            node.start()
        for one in controllers:
            one.wait_ready()
        stock.wait_ready()
        yield controllers, stock, outer
    finally:
        for node in (stock, *controllers):
            node.kill()


def test_acls_change_at_every_controller_of_a_mixed_quorum_while_it_runs(
    over_tls: tuple[list[SecuredController], Broker, int],
) -> None:
    controllers, _, port = over_tls
    root = admin(port, "admin")
    eve = tls_of(controllers[0].authority, controllers[0].authority.issue("CN=eve"))

    def denied() -> set[bool]:
        """Ask each controller; true means that eve may not create a topic."""
        request = CreateTopicsRequest([CreatableTopic("eves-1", 1, 1)], validate_only=True)
        codes = []
        for one in controllers:
            with connect(one.port, eve) as client:
                codes.append(
                    client.ask(ApiKey.CREATE_TOPICS, request, CreateTopicsResponse).topics[0].error_code
                )
        return {code == ErrorCode.TOPIC_AUTHORIZATION_FAILED for code in codes}

    rule = may_create("User:eve", "eves-")
    for _ in range(2):
        assert denied() == {True}
        root.create_acls([rule])[rule].result(20)
        wait_until(lambda: denied() == {False}, "eve is denied nowhere")
        exactly = AclBindingFilter(*(getattr(rule, name) for name in ACL_FIELDS))
        assert root.delete_acls([exactly])[exactly].result(20) == [rule]
        wait_until(lambda: denied() == {True}, "eve is denied everywhere")


def test_a_mixed_quorum_under_mtls_fails_over(
    over_tls: tuple[list[SecuredController], Broker, int],
) -> None:
    controllers, _, port = over_tls
    root = admin(port, "admin")
    assert creation_error(root, "before") is None
    led = controllers[0].active_controller()
    leader = next(one for one in controllers if one.node_id == led)
    others = [one for one in controllers if one is not leader]
    leader.kill()
    wait_until(lambda: others[0].active_controller() not in (-1, led), "another controller leads")
    wait_until(lambda: creation_error(root, "after") in (None, "TOPIC_ALREADY_EXISTS"), "a topic is created")
    leader.start()
    leader.wait_ready()


@pytest.mark.parametrize("node_id", STORES)
def test_javas_client_and_a_listener_work_with_the_same_kinds_of_stores(
    over_tls: tuple[list[SecuredController], Broker, int], tmp_path: Path, node_id: int
) -> None:
    one = next(one for one in over_tls[0] if one.node_id == node_id)
    keys = {
        "security.protocol": "SSL",
        **store_keys(tmp_path, one.authority, "CN=admin", STORES[node_id]),
    }
    file = tmp_path / "admin.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    options = ("--bootstrap-controller", one.address, "--command-config", file)
    assert "LeaderId:" in tools().run("metadata-quorum", *options, "describe", "--status").check().out


def test_certificates_are_renewed_one_by_one_while_topics_are_created(
    over_tls: tuple[list[SecuredController], Broker, int],
) -> None:
    controllers, _, port = over_tls
    root = admin(port, "admin")
    for number, one in enumerate(controllers):
        if one.kind == "kraftd":
            before = one.log.read_text().count("new certificates are used")
            renewed = one.authority.issue(f"CN=controller-{one.node_id},OU=Renewed")
            write_key_store(one.properties_file.parent, renewed, STORES[one.node_id])
            wait_until(
                lambda: one.log.read_text().count("new certificates are used") >= before + 1,  # noqa: B023
                "the certificate is in use",
            )
        assert creation_error(root, f"renewed-{number}") is None
