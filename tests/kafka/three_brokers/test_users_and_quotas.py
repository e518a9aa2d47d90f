"""Client quotas and SCRAM users, set with Kafka's configs tool through a broker, reach all brokers."""

from __future__ import annotations

import pytest

from testkit.cluster import Cluster

pytestmark = pytest.mark.kafka


def test_configs_tool_sets_and_deletes_quotas_of_users_clients_and_addresses(three_brokers: Cluster) -> None:
    cluster = three_brokers
    quotas = (
        (("users", "alice"), "producer_byte_rate", "1000.0"),
        (("clients", "batch"), "controller_mutation_rate", "5000.0"),
        (("ips", "127.0.0.9"), "connection_creation_rate", "10.0"),
    )
    for (kind, name), key, value in quotas:
        entity = ("--entity-type", kind, "--entity-name", name)
        added = value.removesuffix(".0")
        cluster.tool("configs", "--alter", *entity, "--add-config", f"{key}={added}")
        quota = f"{key}={value}"

        def described(entity: tuple[str, ...] = entity) -> str:
            return cluster.tool("configs", "--describe", *entity).out

        cluster.wait_until(lambda quota=quota: quota in described(), "the quota is known")
        cluster.tool("configs", "--alter", *entity, "--delete-config", key)
        cluster.wait_until(lambda quota=quota: quota not in described(), "the quota is gone")


def test_configs_tool_sets_and_deletes_scram_users(three_brokers: Cluster) -> None:
    cluster = three_brokers
    user = ("--entity-type", "users", "--entity-name", "bob")

    def described() -> str:
        return cluster.tool("configs", "--describe", *user).out

    cluster.tool("configs", "--alter", *user, "--add-config", "SCRAM-SHA-512=[iterations=8192,password=x]")
    cluster.wait_until(lambda: "SCRAM-SHA-512=iterations=8192" in described(), "the user is known")
    cluster.tool("configs", "--alter", *user, "--delete-config", "SCRAM-SHA-512")
    cluster.wait_until(lambda: "SCRAM-SHA-512" not in described(), "the user is gone")
