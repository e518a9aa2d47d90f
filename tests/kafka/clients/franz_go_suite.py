"""Go's franz-go, and all clients over restarts of each node. ``make clients-test``.

It is not among the tests of ``make test``, since it takes minutes and needs Go 1.26. KGO_TEST_RECORDS and
KGO_TEST_RUN choose how many records and which tests; franz-go's own default is 500,000 records. With
KGO_TEST_AT=brokers its tests bootstrap from the brokers: a fault that remains is not kraftd's.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from testkit.cluster import random_uuid
from testkit.node import CombinedNode, Kind
from testkit.quorum import Quorum
from tests.kafka.clients.conftest import Served
from tests.kafka.clients.listeners import records_on_disk, serve_clients
from tests.kafka.clients.steady_readers import (
    DECLARED,
    AiokafkaReader,
    GoReader,
    JavaReader,
    KafkaPythonReader,
    LibrdkafkaReader,
    Reader,
    wait_for_all,
)
from tests.kafka.clients.test_metadata_log import create
from tests.kafka.replication.mixed import MixedCluster

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(3600)]

HERE = Path(__file__).parent / "franz_go"
PACKAGE = "github.com/twmb/franz-go/pkg/kgo"
RECORDS = "100000"
# Its tests of one consumer, of one group, and of producers without transactions.
AT_ONE_NODE = (
    "^(TestGroupETL|TestGroupSimple|TestPing|TestConsume.*|TestIssue.*|TestPause.*|TestAddRemove.*)$"
)
# Beside them, those of share groups and of transactions.
AT_A_WHOLE_KAFKA = AT_ONE_NODE.replace("^(", "^(TestShareGroup.*|TestTxnEtl|")
# As by default: members on a busy machine are not removed.
PATIENT = {
    "group.min.session.timeout.ms": 100,
    "group.consumer.session.timeout.ms": 45_000,
    "group.consumer.heartbeat.interval.ms": 5_000,
}
# The lines of franz-go's log that matter: each test's end, the reason of its failure, and a panic.
RELEVANT = re.compile(
    r"^\s*--- |^(ok|FAIL|panic:)\s|testConsumer sendErr|^\s+\w+_test\.go:\d+: (?!deleting )"
)
REPLICATED = {
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "group.initial.rebalance.delay.ms": 0,
}


def go(seeds: str, log: Path, *arguments: str, **variables: str) -> None:
    """Run Go on the program's module, with its output in `log`; AssertionError with the failures."""
    command = shutil.which("go") or "/usr/local/go/bin/go"
    environment = {"KGO_TEST_RECORDS": RECORDS, **os.environ, **variables, "KGO_SEEDS": seeds}
    with open(log, "w") as output:
        done = subprocess.run(
            [command, *arguments],
            cwd=HERE,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    lines = log.read_text(errors="replace").splitlines()
    relevant = [one for one in lines if RELEVANT.search(one)] or lines[-20:]
    print("", *relevant, sep="\n")
    assert done.returncode == 0, "\n".join([*relevant, f"all that was logged is in {log}"])


@pytest.fixture(scope="module")
def cluster(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Three kraftd controllers that serve clients, and three stock brokers."""
    if kind != "kraftd":
        pytest.skip("Apache Kafka's controllers serve no clients")
    home = tmp_path_factory.mktemp("franz-go")
    with Served(home, dict.fromkeys((100, 101, 102), "kraftd"), broker_properties=REPLICATED) as quorum:
        quorum.addresses = {one.node_id: serve_clients(one) for one in quorum.controllers.values()}
        quorum.start_controllers()
        quorum.start_brokers(1, 2, 3)
        yield quorum


def test_franz_go_administers_produces_consumes_and_reads_the_log(cluster: Served, tmp_path: Path) -> None:
    go(cluster.bootstrap, tmp_path / "go.log", "run", ".")


def test_franz_go_works_at_an_observer_of_kafkas_controllers(tmp_path: Path) -> None:
    with Quorum(tmp_path, {200: "apache"}) as quorum:
        quorum.start_controllers()
        quorum.start_brokers(1)
        observer = quorum.plan_observer(300, "kraftd")
        addresses = serve_clients(observer)
        observer.format(quorum.cluster_id, "--no-initial-controllers")
        observer.start()
        observer.wait_ready()
        go(addresses.clients, tmp_path / "go.log", "run", ".")


# At the listener that names no broker, and at the one that names them to clients without such an id.
WAYS = pytest.mark.parametrize(
    ("listener", "client_id"), [("log", "reader"), ("clients", DECLARED)], ids=["log", "declared"]
)


@WAYS
def test_all_clients_read_on_while_each_node_is_restarted(
    cluster: Served, tmp_path: Path, listener: str, client_id: str
) -> None:
    """Three kraftd controllers and three brokers."""
    bootstrap = cluster.log_bootstrap if listener == "log" else cluster.bootstrap
    read_on_over_restarts(cluster, bootstrap, client_id, tmp_path)


@WAYS
def test_all_clients_read_on_at_observers_while_each_node_is_restarted(
    tmp_path: Path, listener: str, client_id: str
) -> None:
    """Apache Kafka's controller, two kraftd observers and a broker."""
    with Quorum(tmp_path, {200: "apache"}) as quorum:
        quorum.start_controllers()
        quorum.start_brokers(1)
        logs = []
        for node_id in (300, 301):
            observer = quorum.plan_observer(node_id, "kraftd")
            logs.append(getattr(serve_clients(observer), listener))
            observer.format(quorum.cluster_id, "--no-initial-controllers")
            observer.start()
            observer.wait_ready()
        read_on_over_restarts(quorum, ",".join(logs), client_id, tmp_path)


def read_on_over_restarts(quorum: Quorum, bootstrap: str, client_id: str, home: Path) -> None:
    """Kill and start each node in turn; every client then reads the next records."""
    GoReader.build(home)
    readers: list[Reader] = [
        GoReader(home, bootstrap, client_id),
        JavaReader(home, bootstrap, client_id),
        KafkaPythonReader(bootstrap, client_id),
        AiokafkaReader(bootstrap, client_id),
        LibrdkafkaReader(bootstrap, client_id),
    ]
    for reader in readers:
        reader.start()
    for node in [None, *quorum.nodes]:
        if node is not None:
            node.kill()
            node.start()
            node.wait_ready()
        create(bootstrap, f"after-{'start' if node is None else node.name}")
        described = quorum.described()
        assert described is not None
        wait_for_all(readers, described.high_watermark - 3)
        print(f"{node or 'start'}: all have read {described.high_watermark - 3}", flush=True)
    for reader in readers:
        seen = reader.seen()
        assert seen == records_on_disk(quorum.controller, seen[-1][0] + 1), reader
        reader.kill()


def test_franz_gos_own_tests_of_groups_and_transactions_pass(cluster: Served, tmp_path: Path) -> None:
    run = os.environ.get("KGO_TEST_RUN", "^(TestGroupETL|TestTxnEtl)$")
    seeds = cluster.bootstrap
    if os.environ.get("KGO_TEST_AT") == "brokers":
        seeds = ",".join(one.address for one in cluster.brokers.values())
    go(seeds, tmp_path / "go.log", *suite(run))


def test_franz_gos_own_tests_of_groups_and_consumers_pass_at_a_whole_kafka(tmp_path: Path) -> None:
    """One kraftd process is all there is."""
    with whole_kafka(tmp_path, {"group.min.session.timeout.ms": 100}) as node:
        run = os.environ.get("KGO_TEST_RUN", AT_A_WHOLE_KAFKA)
        go(node.bootstrap, tmp_path / "go.log", *suite(run), KGO_TEST_RF="1")


def test_franz_go_reads_on_after_it_acknowledged_too_late(tmp_path: Path) -> None:
    """Not so at Apache Kafka, if no broker has the id 0."""
    locks = {"group.share.min.record.lock.duration.ms": 1_000, "group.share.record.lock.duration.ms": 2_000}
    with whole_kafka(tmp_path, locks) as node:
        go(node.bootstrap, tmp_path / "go.log", "run", ".", "late")


@contextmanager
def whole_kafka(home: Path, settings: Mapping[str, object]) -> Iterator[CombinedNode]:
    """One kraftd process, which must not log an error."""
    alone = {
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
    }
    node = CombinedNode("kraftd", home / "node", alone | settings)
    node.format(random_uuid(), "--standalone")
    node.start()
    try:
        node.wait_ready()
        yield node
        assert '"level":"error"' not in node.log_text()
    finally:
        node.kill()


@pytest.mark.parametrize("controller", ["kraftd", "apache"])
def test_franz_gos_own_tests_of_groups_and_consumers_pass_at_a_mixed_cluster(
    controller: Kind, tmp_path: Path
) -> None:
    """A stock broker between two of kraftd, and three replicas of each partition."""
    kinds: dict[int, Kind] = {1: "kraftd", 2: "apache", 3: "kraftd"}
    with MixedCluster(tmp_path, kinds, controller, settings=PATIENT) as cluster:
        run = os.environ.get("KGO_TEST_RUN", AT_ONE_NODE)
        go(cluster.bootstrap, tmp_path / "go.log", *suite(run), KGO_TEST_RF="3")
        for node in cluster.ours.values():
            assert '"level":"error"' not in node.log_text()


def suite(run: str) -> tuple[str, ...]:
    """What `go` runs of franz-go's tests: those that an expression names."""
    return "test", "-vet=off", "-count=1", "-v", "-timeout=50m", f"-run={run}", PACKAGE
