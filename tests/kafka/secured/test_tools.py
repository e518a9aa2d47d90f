"""Kafka's own tools on a secured cluster: through a broker by PLAIN, at the controller by SASL_SSL and SCRAM.

Each verb is run once. With ``--controller=apache`` Apache Kafka's controller must give the same output.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from testkit.cluster import status_fields
from testkit.process import wait_until
from tests.kafka.secured.nodes import OverSasl, can_log_in
from tests.security.secured_daemon import SCRAM_MODULE

pytestmark = pytest.mark.kafka


# Some of these texts by Kafka's controllers contain the whole request.
WITHOUT_RIGHTS = (
    "ClusterAuthorizationException|Cluster authorization failed|Not authorized|needs ALTER permission"
)


def run_at_broker(cluster: OverSasl, name: str, *arguments: object, user: str = "admin") -> str:
    """Run a tool through the broker, which must succeed; return its output."""
    return cluster.tool(name, *arguments, user=user).check().out


def run_at_controller(cluster: OverSasl, name: str, *arguments: object) -> str:
    """Run a tool directly at the controller, which must succeed; return its output."""
    return cluster.controller_tool(name, *arguments).check().out


def test_topics_tool_creates_alters_describes_and_deletes(over_sasl: OverSasl) -> None:
    topics = ("topics", "--topic", "tool-topics")
    assert "Created topic tool-topics" in run_at_broker(over_sasl, *topics, "--create", "--partitions", 2)
    run_at_broker(over_sasl, *topics, "--alter", "--partitions", 3)
    wait_until(
        lambda: "PartitionCount: 3" in run_at_broker(over_sasl, *topics, "--describe"), "the broker has three"
    )
    assert "tool-topics" in run_at_broker(over_sasl, "topics", "--list")
    run_at_broker(over_sasl, *topics, "--delete")
    refused = over_sasl.tool(*topics, "--create", user="alice")
    assert refused.code == 1
    assert "Authorization failed." in refused.out


@pytest.mark.parametrize("through", ["broker", "controller"])
def test_acls_tool_adds_lists_and_removes(over_sasl: OverSasl, through: str) -> None:
    run = run_at_broker if through == "broker" else run_at_controller
    name = f"tool-acls-{through}"
    rule = ("--allow-principal", "User:bob", "--operation", "Read", "--allow-host", "10.0.0.1")
    pattern = ("--topic", name, "--resource-pattern-type", "prefixed")
    added = run(over_sasl, "acls", "--add", *rule, *pattern)
    acl = "(principal=User:bob, host=10.0.0.1, operation=READ, permissionType=ALLOW)"
    assert f"resourceType=TOPIC, name={name}, patternType=PREFIXED" in added and acl in added

    def listed() -> str:
        return run(over_sasl, "acls", "--list", "--topic", f"{name}.x", "--resource-pattern-type", "match")

    wait_until(lambda: acl in listed(), "the ACL is listed")
    run(over_sasl, "acls", "--remove", *rule, *pattern, "--force")
    wait_until(lambda: acl not in listed(), "the ACL is gone")


def test_tools_of_a_client_without_permissions_print_the_denial(over_sasl: OverSasl) -> None:
    for command in (
        ("acls", "--list"),
        ("acls", "--add", "--allow-principal", "User:bob", "--operation", "Read", "--topic", "x"),
        ("features", "upgrade", "--feature", "group.version=1"),
        ("metadata-quorum", "describe", "--status"),
        (
            "configs",
            "--alter",
            "--entity-type",
            "brokers",
            "--entity-name",
            "1",
            "--add-config",
            "num.io.threads=5",
        ),
        (
            "configs",
            "--alter",
            "--entity-type",
            "users",
            "--entity-name",
            "x",
            "--add-config",
            "request_percentage=1",
        ),
        ("reassign", "--list"),
    ):
        refused = over_sasl.tool(*command, user="alice")
        text = refused.out + refused.err
        assert refused.code == 1, command
        assert re.search(WITHOUT_RIGHTS, text), (command, text)


def test_configs_tool_keeps_scram_users_and_quotas(over_sasl: OverSasl) -> None:
    user = ("configs", "--entity-type", "users", "--entity-name", "dora")
    run_at_broker(
        over_sasl, *user, "--alter", "--add-config", "SCRAM-SHA-512=[iterations=8192,password=dora-secret]"
    )
    wait_until(lambda: can_log_in(over_sasl, "dora", "dora-secret"), "the new user may log in")
    assert "SCRAM-SHA-512=iterations=8192" in run_at_broker(over_sasl, *user, "--describe")
    assert "dora-secret" not in over_sasl.controller.log.read_text()
    run_at_broker(over_sasl, *user, "--alter", "--delete-config", "SCRAM-SHA-512")
    wait_until(lambda: not can_log_in(over_sasl, "dora", "dora-secret"), "the user is gone")
    for entity, quota in (
        (("--entity-type", "users", "--entity-name", "dora"), "producer_byte_rate=1000.0"),
        (("--entity-type", "users", "--entity-default"), "controller_mutation_rate=5000.0"),
        (("--entity-type", "ips", "--entity-name", "10.1.2.3"), "connection_creation_rate=10.0"),
    ):
        run_at_broker(over_sasl, "configs", *entity, "--alter", "--add-config", quota.removesuffix(".0"))
        describe = ("configs", *entity, "--describe")
        wait_until(lambda: quota in run_at_broker(over_sasl, *describe), f"{quota} is known")  # noqa: B023
        run_at_broker(over_sasl, "configs", *entity, "--alter", "--delete-config", quota.partition("=")[0])


def test_configs_tool_changes_nodes_and_topics(over_sasl: OverSasl) -> None:
    run_at_broker(over_sasl, "topics", "--topic", "tool-configs", "--create")
    topic = ("configs", "--entity-type", "topics", "--entity-name", "tool-configs")
    run_at_broker(over_sasl, *topic, "--alter", "--add-config", "retention.ms=3600000")
    wait_until(
        lambda: "retention.ms=3600000" in run_at_broker(over_sasl, *topic, "--describe"), "it is described"
    )
    broker = ("configs", "--entity-type", "brokers", "--entity-name", "1")
    run_at_broker(over_sasl, *broker, "--alter", "--add-config", "log.cleaner.threads=2")
    node = ("configs", "--entity-type", "brokers", "--entity-name", "100")
    run_at_controller(over_sasl, *node, "--alter", "--add-config", "max.connections=1000")
    shown = run_at_controller(over_sasl, *node, "--describe")
    assert "max.connections=1000" in shown
    assert "controller-secret" not in run_at_controller(over_sasl, *node, "--describe", "--all")
    run_at_controller(over_sasl, *node, "--alter", "--delete-config", "max.connections")


def test_features_quorum_and_cluster_tools_work_at_broker_and_controller(over_sasl: OverSasl) -> None:
    for run in (run_at_broker, run_at_controller):
        assert "Feature: metadata.version" in run(over_sasl, "features", "describe")
        assert status_fields(run(over_sasl, "metadata-quorum", "describe", "--status"))["LeaderId"] == "100"
        table = run(over_sasl, "metadata-quorum", "describe", "--replication")
        assert re.search(r"^100\b.*Leader", table, re.MULTILINE)
        assert "Cluster ID: " in run(over_sasl, "cluster", "cluster-id")
        run(over_sasl, "features", "upgrade", "--feature", "streams.version=1", "--dry-run")
        assert (
            re.search(r"^1 ", run(over_sasl, "cluster", "list-endpoints"), re.MULTILINE)
            or run is run_at_controller
        )


def test_partitions_are_reassigned_and_elected_and_their_directories_shown(
    over_sasl: OverSasl, tmp_path: Path
) -> None:
    run_at_broker(over_sasl, "topics", "--topic", "tool-moves", "--create")
    plan, impossible, election = (
        tmp_path / name for name in ("plan.json", "impossible.json", "election.json")
    )
    for file, replicas in ((plan, [1]), (impossible, [1, 2])):
        partition = {"topic": "tool-moves", "partition": 0, "replicas": replicas}
        file.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    election.write_text(json.dumps({"partitions": [{"topic": "tool-moves", "partition": 0}]}))
    for run in (run_at_broker, run_at_controller):
        assert "No partition reassignments found." in run(over_sasl, "reassign", "--list")
    started = run_at_broker(over_sasl, "reassign", "--execute", "--reassignment-json-file", plan)
    assert "Successfully started partition reassignment for tool-moves-0" in started
    verified = run_at_broker(over_sasl, "reassign", "--verify", "--reassignment-json-file", plan)
    assert "Reassignment of partition tool-moves-0 is completed." in verified
    refused = over_sasl.tool("reassign", "--execute", "--reassignment-json-file", impossible)
    assert refused.code == 1
    elected = run_at_broker(
        over_sasl, "leader-election", "--election-type", "PREFERRED", "--path-to-json-file", election
    )
    assert "Valid replica already elected for partitions tool-moves-0" in elected
    assert '"partition":"tool-moves-0"' in run_at_broker(
        over_sasl, "log-dirs", "--describe", "--topic-list", "tool-moves"
    )


def test_delegation_tokens_are_made_used_renewed_and_expired(over_sasl: OverSasl) -> None:
    lasting = ("--max-life-time-period", -1, "--renewer-principal", "User:alice")
    created = run_at_broker(over_sasl, "delegation-tokens", "--create", *lasting, user="alice")
    token_id, hmac = re.findall(r"^(\S+)\s+(\S+==)\s+User:alice", created, re.MULTILINE)[0]
    by_token = with_token(over_sasl, token_id, hmac)
    wait_until(lambda: by_token.tool("topics", "--list").code == 0, "the token lets its owner in")
    described = ("delegation-tokens", "--describe", "--owner-principal", "User:alice")
    wait_until(
        lambda: token_id in run_at_broker(over_sasl, *described, user="alice"), "the token is described"
    )
    change = ("delegation-tokens", "--hmac", hmac)
    run_at_broker(over_sasl, *change, "--renew", "--renew-time-period", -1, user="alice")
    stranger = over_sasl.tool(*change, "--renew", "--renew-time-period", -1)
    assert "DelegationTokenOwnerMismatchException" in stranger.out + stranger.err
    another = by_token.tool("delegation-tokens", "--create", *lasting)
    assert "Delegation Token requests are not allowed" in another.out + another.err
    run_at_broker(over_sasl, *change, "--expire", "--expiry-time-period", -1, user="alice")
    wait_until(lambda: by_token.tool("topics", "--list").code == 1, "the token is refused")


def with_token(cluster: OverSasl, token_id: str, hmac: str) -> OverSasl:
    """The cluster for clients that log in with a delegation token."""
    file = cluster.client_files["admin"].with_name("token.properties")
    options = f'username="{token_id}" password="{hmac}" tokenauth="true"'
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        f"sasl.jaas.config={SCRAM_MODULE} required {options};\n"
    )
    return cluster._replace(client_files={"admin": file})
