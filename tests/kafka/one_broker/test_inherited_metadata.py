"""Directories with snapshots, ACLs, quotas and credentials of Kafka's: nothing of it is lost under kraftd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.log.disk import RealDisk
from kraftd.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraftd.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.describe_acls_request import DescribeAclsRequest
from kraftd.metadata_dir.files.checkpoint import list_checkpoints
from kraftd.wire.message import Message
from testkit.client import Client
from testkit.cluster import Cluster
from testkit.node import Kind
from testkit.process import HOST
from tests.kafka.one_broker.test_controller_failures import round_trip

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]
# A snapshot every few records; the log below it is deleted at once.
_SNAPSHOTS = {
    "metadata.log.max.record.bytes.between.snapshots": 1000,
    "metadata.log.max.snapshot.interval.ms": 0,
    "internal.metadata.log.segment.bytes": 10000,
    "metadata.max.retention.bytes": 20000,
    "metadata.max.idle.interval.ms": 0,
}
_AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def ask(cluster: Cluster, request: Message, version: int) -> Any:
    with Client(HOST, cluster.controller.port) as client:
        return client.call(request, version)


def described(cluster: Cluster) -> tuple[Any, ...]:
    """ACLs as described by Kafka's controller, quotas and SCRAM credentials as described by its broker."""
    acls = ask(cluster, DescribeAclsRequest(1, None, 1, None, None, 1, 1), 3)
    users = cluster.tool("configs", "--describe", "--entity-type", "users").out
    return (sorted(map(repr, acls.resources)), sorted(users.splitlines()))


def run_as(cluster: Cluster, kind: Kind) -> None:
    """Start that kind on the same directory. kraftd then has no authorizer: it stores ACLs without effect."""
    if cluster.controller.alive:
        cluster.controller.stop()
    controller = cluster.controller
    controller.kind = kind
    for key, value in _AUTHORIZER.items():
        controller.properties.pop(key, None)
        if kind == "apache":
            controller.properties[key] = value
    controller.write_properties()
    cluster.start_controller()


@pytest.mark.parametrize(
    "static",
    [pytest.param(False, id="dynamic"), pytest.param(True, id="static")],
)
def test_metadata_of_kafka_survives_a_period_under_kraftd(kind: Kind, static: bool, tmp_path: Path) -> None:
    with Cluster(tmp_path, "apache", static=static, controller_properties=_SNAPSHOTS) as cluster:
        run_as(cluster, "apache")
        cluster.start_brokers(1)
        creations = [AclCreation(2, f"t{n}", 3, f"User:u{n}", "*", 3, 3) for n in range(20)]
        assert not any(r.error_code for r in ask(cluster, CreateAclsRequest(creations), 3).results)
        entries = [
            EntryData([EntityData("user", f"u{n}")], [OpData("producer_byte_rate", 1000.0 + n, False)])
            for n in range(10)
        ]
        assert not any(e.error_code for e in ask(cluster, AlterClientQuotasRequest(entries), 1).entries)
        credentials = [ScramCredentialUpsertion(f"u{n}", 1, 4096, b"salt", b"p" * 32) for n in range(3)]
        request = AlterUserScramCredentialsRequest([], credentials)
        assert not any(r.error_code for r in ask(cluster, request, 0).results)
        for number in range(6):
            cluster.create_topic(f"early-{number}", partitions=5)
        round_trip(cluster, "early-0", b"1")
        before = described(cluster)
        assert "producer_byte_rate=1009.0" in str(before) and "SCRAM-SHA-256" in str(before)
        disk, directory = RealDisk(), str(cluster.controller.metadata_dir)
        assert list_checkpoints(disk, directory), "Kafka took snapshots"

        run_as(cluster, kind)
        cluster.create_topic("late", partitions=5)
        round_trip(cluster, "late", b"2")
        round_trip(cluster, "early-0", b"3")
        cluster.brokers[1].stop()
        cluster.brokers[1].start()  # it reads all metadata anew, from a snapshot if the log begins late
        cluster.brokers[1].wait_ready()
        assert len(cluster.partitions("early-5")) == 5

        run_as(cluster, "apache")
        round_trip(cluster, "late", b"4")
        assert described(cluster) == before
