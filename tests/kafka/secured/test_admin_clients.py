"""Third-party admin clients on a secured cluster: the operations that the controller decides."""

from __future__ import annotations

from collections.abc import Iterator

import confluent_kafka.admin as confluent
import kafka.admin as python
import pytest
from confluent_kafka import KafkaException
from kafka.errors import KafkaError
from kafka.structs import TopicPartition

from testkit.process import HOST, wait_until
from tests.kafka.secured.nodes import USERS, OverSasl, admin

pytestmark = pytest.mark.kafka


def test_confluents_admin_client_performs_every_operation(over_sasl: OverSasl) -> None:
    root, name = admin(over_sasl.clients_port, "admin"), "confluent-admin"
    root.create_topics([confluent.NewTopic(name, 1, 1)])[name].result(20)
    root.create_partitions([confluent.NewPartitions(name, 2)])[name].result(20)
    wait_until(
        lambda: len(root.list_topics(name, 20).topics[name].partitions) == 2, "there is another partition"
    )

    topic = confluent.ConfigResource(
        confluent.ResourceType.TOPIC,
        name,
        incremental_configs=[
            confluent.ConfigEntry(
                "retention.ms", "7200000", incremental_operation=confluent.AlterConfigOpType.SET
            )
        ],
    )
    root.incremental_alter_configs([topic])[topic].result(20)
    wait_until(
        lambda: root.describe_configs([topic])[topic].result(20)["retention.ms"].value == "7200000",
        "the config is known",
    )

    rule = confluent.AclBinding(
        confluent.ResourceType.TOPIC,
        name,
        confluent.ResourcePatternType.LITERAL,
        "User:carol",
        "*",
        confluent.AclOperation.READ,
        confluent.AclPermissionType.DENY,
    )
    root.create_acls([rule])[rule].result(20)
    filter_ = confluent.AclBindingFilter(
        confluent.ResourceType.TOPIC,
        name,
        confluent.ResourcePatternType.MATCH,
        None,
        None,
        confluent.AclOperation.ANY,
        confluent.AclPermissionType.ANY,
    )
    wait_until(lambda: root.describe_acls(filter_).result(20) == [rule], "the ACL is described")
    assert root.delete_acls([filter_])[filter_].result(20) == [rule]

    secret = confluent.ScramCredentialInfo(confluent.ScramMechanism.SCRAM_SHA_256, 4096)
    root.alter_user_scram_credentials([confluent.UserScramCredentialUpsertion("carol", secret, b"x")])[
        "carol"
    ].result(20)

    def iterations() -> list[int]:
        try:
            described = root.describe_user_scram_credentials(["carol"])["carol"].result(20)
        except KafkaException:  # the broker has not learnt of the user yet
            return []
        return [one.iterations for one in described.scram_credential_infos]

    wait_until(lambda: iterations() == [4096], "the user is described")
    root.alter_user_scram_credentials(
        [confluent.UserScramCredentialDeletion("carol", confluent.ScramMechanism.SCRAM_SHA_256)]
    )["carol"].result(20)
    assert root.describe_cluster().result(20).controller is not None
    root.delete_topics([name])[name].result(20)


@pytest.fixture
def clients(over_sasl: OverSasl) -> Iterator[dict[str, python.KafkaAdminClient]]:
    """kafka-python's admin clients, by user."""
    by_user = {
        name: python.KafkaAdminClient(
            bootstrap_servers=f"{HOST}:{over_sasl.clients_port}",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username=name,
            sasl_plain_password=password,
        )
        for name, password in USERS.items()
    }
    yield by_user
    for client in by_user.values():
        client.close()


def test_kafka_pythons_admin_client_performs_every_operation(
    clients: dict[str, python.KafkaAdminClient],
) -> None:
    root, name = clients["admin"], "python-admin"
    with pytest.raises(KafkaError, match=r"(?i)authorization"):
        clients["alice"].create_topics([python.NewTopic(name, 1, 1)])
    root.create_topics([python.NewTopic(name, 1, 1)])
    root.wait_for_topics([name], timeout_ms=60_000)  # the client looks for its configs at the broker
    root.create_partitions({name: 2})
    config = python.ConfigResource(python.ConfigResourceType.TOPIC, name, {"retention.ms": "7200000"})
    root.alter_configs([config])
    rule = python.ACL(
        "User:carol",
        "*",
        python.ACLOperation.READ,
        python.ACLPermissionType.ALLOW,
        python.ResourcePattern(python.ResourceType.TOPIC, name, python.ACLResourcePatternType.PREFIXED),
    )
    root.create_acls([rule])
    filter_ = python.ACLFilter(
        "User:carol",
        None,
        python.ACLOperation.ANY,
        python.ACLPermissionType.ANY,
        python.ResourcePatternFilter(python.ResourceType.TOPIC, None, python.ACLResourcePatternType.ANY),
    )
    wait_until(lambda: root.describe_acls(filter_)[0] == [rule], "the ACL is described")
    root.delete_acls([filter_])
    wait_until(lambda: root.describe_acls(filter_)[0] == [], "the ACL is gone")
    upsertion = python.UserScramCredentialUpsertion("erin", python.ScramMechanism.SCRAM_SHA_512, "x")
    root.alter_user_scram_credentials([upsertion])
    wait_until(
        lambda: root.describe_user_scram_credentials(["erin"])["erin"]["credential_infos"],
        "the user is described",
    )
    root.alter_user_scram_credentials(
        [python.UserScramCredentialDeletion("erin", python.ScramMechanism.SCRAM_SHA_512)]
    )
    wait_until(lambda: "7200000" in str(root.describe_configs([config])), "the config is known")
    assert "metadata.version" in str(root.describe_features())
    assert "100" in str(root.describe_metadata_quorum())
    root.alter_partition_reassignments({TopicPartition(name, 0): [1]})
    root.delete_topics([name])
