"""Ordinary clients over SASL_SSL that bootstrap from kraftd: each may do what its own principal may."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from subprocess import CompletedProcess

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from kraftd.types import METADATA_TOPIC
from testkit.java import ToolRun, tools
from testkit.node import Kind, kraftd_command
from testkit.process import wait_until
from tests.kafka.secured.serving import Serving

pytestmark = pytest.mark.kafka

# At the controller that leads, and at an observer, which forwards requests to it.
NODES = pytest.mark.parametrize("node_id", [100, 300])


@pytest.fixture(scope="module")
def serving(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    if kind != "kraftd":
        pytest.skip("Apache Kafka's controllers serve no clients")
    cluster = Serving(tmp_path_factory.mktemp("serving"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def allow(cluster: Serving, name: str, *rules: tuple[ResourceType, str, AclOperation]) -> None:
    """Add ACLs for a user, through the observer."""
    literal, permission = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    acls = [AclBinding(type, what, literal, f"User:{name}", "*", op, permission) for type, what, op in rules]
    client = AdminClient(cluster.client("admin", 300))
    for future in client.create_acls(acls).values():
        future.result(30)


def run(cluster: Serving, node_id: int, user: str, name: str, *arguments: object, stdin: str = "") -> ToolRun:
    file = ("--command-config", cluster.client_file(user))
    return tools().run(name, "--bootstrap-server", cluster.bootstrap(node_id), *file, *arguments, stdin=stdin)


@NODES
def test_admin_clients_are_authorized_as_themselves_at_any_node(serving: Serving, node_id: int) -> None:
    topic = f"created-by-{node_id}"

    def creation_error(name: str) -> str | None:
        client = AdminClient(serving.client(name, node_id))
        try:
            client.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
        except KafkaException as error:
            return str(error.args[0].name())
        return None

    assert creation_error("eve") == "TOPIC_AUTHORIZATION_FAILED"
    allow(serving, "alice", (ResourceType.TOPIC, topic, AclOperation.CREATE))
    wait_until(lambda: creation_error("alice") is None, "alice may create")
    assert creation_error("eve") == "TOPIC_AUTHORIZATION_FAILED"


@NODES
def test_librdkafka_produces_and_consumes_in_a_group_with_its_acls(serving: Serving, node_id: int) -> None:
    topic, group = f"rd-{node_id}", f"rd-group-{node_id}"
    admin = AdminClient(serving.client("admin", node_id))
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    allow(
        serving,
        "alice",
        (ResourceType.TOPIC, topic, AclOperation.ALL),
        (ResourceType.GROUP, group, AclOperation.READ),
    )
    failed: list[object] = []
    producer = Producer({**serving.client("alice", node_id), "enable.idempotence": True})
    producer.produce(topic, b"value", on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(60) == 0 and failed == [None]
    settings = {"group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**serving.client("alice", node_id), **settings})
    consumer.subscribe([topic])
    message = consumer.poll(60)
    assert message is not None and message.value() == b"value", message and message.error()
    consumer.commit(asynchronous=False)
    consumer.close()
    stranger = Consumer({**serving.client("eve", node_id), **settings})
    stranger.subscribe([topic])
    refused = stranger.poll(60)
    assert refused is not None and refused.error() is not None
    assert refused.error().name() in ("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED")
    stranger.close()


@NODES
def test_only_an_authorized_client_can_read_the_metadata_log_of_a_quorum(
    serving: Serving, node_id: int
) -> None:
    def consumer_of(name: str) -> Consumer:
        return Consumer({**serving.client(name, node_id), "group.id": "none"})

    refused = consumer_of("eve").list_topics(METADATA_TOPIC, timeout=30).topics[METADATA_TOPIC]
    assert refused.error is not None and refused.error.name() == "TOPIC_AUTHORIZATION_FAILED"
    consumer = consumer_of("admin")
    consumer.assign([TopicPartition(METADATA_TOPIC, 0, 0)])
    message = consumer.poll(60)
    assert message is not None and message.error() is None and message.value()
    consumer.close()
    assert "authorization denied" in (serving.home / str(node_id) / "audit.log").read_text()


def test_kraftds_commands_read_a_secured_client_listener_and_name_refused_users(serving: Serving) -> None:
    def topics(name: str) -> CompletedProcess[str]:
        file = ("--command-config", serving.client_file(name))
        command = kraftd_command("topics", "--bootstrap", serving.bootstrap(300), *file)
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert topics("admin").returncode == 0
    refused = topics("eve")
    assert refused.returncode == 1
    assert "TOPIC_AUTHORIZATION_FAILED: this user needs READ on the topic" in refused.stderr


@NODES
def test_javas_tools_are_authorized_by_their_user(serving: Serving, node_id: int) -> None:
    topic, group = f"java-{node_id}", f"java-group-{node_id}"
    run(serving, node_id, "admin", "topics", "--create", "--topic", topic).check()
    allow(
        serving,
        "alice",
        (ResourceType.TOPIC, topic, AclOperation.ALL),
        (ResourceType.GROUP, group, AclOperation.READ),
        (ResourceType.TOPIC, METADATA_TOPIC, AclOperation.READ),
    )
    run(serving, node_id, "alice", "console-producer", "--topic", topic, stdin="a\nb\n").check()
    arguments = ("--from-beginning", "--timeout-ms", 60_000, "--topic")
    consumed = run(
        serving,
        node_id,
        "alice",
        "console-consumer",
        "--group",
        group,
        "--max-messages",
        2,
        *arguments,
        topic,
    ).check()
    assert consumed.out.split() == ["a", "b"]
    log = ("--partition", 0, "--max-messages", 5, *arguments, METADATA_TOPIC)
    show = ("--formatter-property", "print.offset=true")
    shown = run(serving, node_id, "alice", "console-consumer", *show, *log).check()
    assert "Offset:" in shown.out
    refused = run(serving, node_id, "eve", "console-consumer", *log)
    assert "Not authorized to access topics" in refused.out + refused.err
    listed = run(serving, node_id, "eve", "topics", "--list").check()
    assert listed.out.split() == []
