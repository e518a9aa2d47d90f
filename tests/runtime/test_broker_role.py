"""The broker role of a real process: with the controller in one process, and alone."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from kraftd.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.metadata_request import MetadataRequest
from testkit.process import free_port, wait_until
from tests.runtime.daemon_process import CLUSTER_ID, Client, DaemonProcess


def combined(home: Path, port: int, controller_port: int, **settings: Any) -> DaemonProcess:
    listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}"
    roles = "broker,controller"
    return DaemonProcess(home, controller_port, process__roles=roles, listeners=listeners, **settings)


def brokers(port: int) -> list[tuple[int, int]]:
    """The brokers in Metadata, by id, with their ports."""
    client = Client(port)
    try:
        answer: Any = client.call(MetadataRequest(None), 12)
    finally:
        client.close()
    return sorted((one.node_id, one.port) for one in answer.brokers)


def states(daemon: DaemonProcess) -> list[str]:
    return [line["state"] for line in daemon.lines() if line["event"] == "broker state"]


def test_one_process_is_controller_and_broker(tmp_path: Path) -> None:
    port, controller_port = free_port(), free_port()
    daemon = combined(tmp_path, port, controller_port).format().start()
    wait_until(lambda: brokers(port) == [(100, port)], "the broker is in Metadata")
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    assert admin.create_topics([NewTopic("t", 2, 1)])["t"].result(10) is None
    partitions = admin.list_topics("t", timeout=10).topics["t"].partitions
    assert [one.leader for one in partitions.values()] == [100, 100]
    daemon.kraftd("transactions", "open", "--bootstrap-server", f"127.0.0.1:{port}")  # all leaders answer
    assert daemon.stop() == 0
    assert states(daemon) == [
        "STARTING",
        "RECOVERY",
        "RUNNING",
        "PENDING_CONTROLLED_SHUTDOWN",
        "SHUTTING_DOWN",
    ]
    again = daemon.start()  # the same directory, another incarnation
    wait_until(lambda: brokers(port) == [(100, port)], "the broker is in Metadata again")
    assert again.stop() == 0


def test_answers_have_as_many_partitions_as_the_file_allows__kip966(tmp_path: Path) -> None:
    port, controller_port = free_port(), free_port()
    daemon = combined(tmp_path, port, controller_port, max__request__partition__size__limit=2)
    daemon.format().start()
    wait_until(lambda: brokers(port) == [(100, port)], "the broker is in Metadata")
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    admin.create_topics([NewTopic("t", 3, 1)])["t"].result(10)
    assert first_page(port) == [("t", [0, 1])]
    assert daemon.stop() == 0


def test_a_client_that_its_controller_or_broker_throttles_is_muted__kip599_kip124(tmp_path: Path) -> None:
    port, controller_port = free_port(), free_port()
    daemon = combined(tmp_path, port, controller_port).format().start()
    wait_until(lambda: brokers(port) == [(100, port)], "the broker is in Metadata")
    for key, value in (("controller_mutation_rate", 10.0), ("request_percentage", 0.00001)):
        for at in (port, controller_port) if key == "controller_mutation_rate" else (port,):
            entry = EntryData([EntityData("client-id", f"{key}-{at}")], [OpData(key, value)])
            ask(port, AlterClientQuotasRequest([entry], False), 1)
            client = Client(at, client_id=f"{key}-{at}")
            for number in range(3):
                topic = CreatableTopic(f"{key}-{at}-{number}", 114 if "mutation" in key else 1, 1)
                # Version 5 is served, and answered with the wait.
                asked_s = time.monotonic()
                throttle_ms = client.call(CreateTopicsRequest([topic], 10_000), 5).throttle_time_ms
                if throttle_ms:
                    break
            assert 0 < throttle_ms <= 1_000, (key, at)
            client.call(ApiVersionsRequest(), 0)
            assert time.monotonic() - asked_s > throttle_ms / 1_000 - 0.005, (key, at)
            client.close()
    assert daemon.stop() == 0


def ask(port: int, request: Any, version: int) -> Any:
    client = Client(port)
    try:
        return client.call(request, version)
    finally:
        client.close()


def topics(port: int) -> set[str]:
    return set(AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"}).list_topics(timeout=10).topics)


def first_page(port: int) -> list[tuple[str, list[int]]]:
    """The partitions of a first DescribeTopicPartitions; the next page begins behind them."""
    client = Client(port)
    try:
        answer: Any = client.call(DescribeTopicPartitionsRequest(), 0)
    finally:
        client.close()
    pages = [(topic.name, [one.partition_index for one in topic.partitions]) for topic in answer.topics]
    name, shown = pages[-1]
    assert (answer.next_cursor.topic_name, answer.next_cursor.partition_index) == (name, shown[-1] + 1)
    return pages


def test_a_broker_alone_joins_and_leaves_a_cluster(tmp_path: Path) -> None:
    port, controller_port, other_port = free_port(), free_port(), free_port()
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    first = combined(tmp_path / "first", port, controller_port).format().start()
    second = DaemonProcess(
        tmp_path / "second",
        process__roles="broker",
        node__id=2,
        listeners=f"PLAINTEXT://127.0.0.1:{other_port}",
        controller__quorum__bootstrap__servers=f"127.0.0.1:{controller_port}",
        max__request__partition__size__limit=2,
    )
    second.kraftd("format", "--config", str(second.properties), "--cluster-id", CLUSTER_ID)
    second.begin()
    both = [(2, other_port), (100, port)]
    wait_until(lambda: brokers(port) == brokers(other_port) == both, "both brokers know both")
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    admin.create_topics([NewTopic("t", 3, 1)])["t"].result(10)
    wait_until(lambda: "t" in topics(other_port), "the broker alone knows the topic")
    assert first_page(other_port) == [("t", [0, 1])], "its own file limits it"
    assert second.stop() == 0
    assert states(second)[-1] == "SHUTTING_DOWN"
    wait_until(lambda: brokers(port) == [(100, port)], "the broker that left is fenced")
    assert first.stop() == 0


def test_a_broker_that_no_controller_registers_ends_with_1(tmp_path: Path) -> None:
    daemon = DaemonProcess(
        tmp_path,
        process__roles="broker",
        node__id=2,
        listeners=f"PLAINTEXT://127.0.0.1:{free_port()}",
        controller__quorum__bootstrap__servers=f"127.0.0.1:{free_port()}",
        initial__broker__registration__timeout__ms=500,
    )
    daemon.kraftd("format", "--config", str(daemon.properties), "--cluster-id", CLUSTER_ID)
    daemon.begin()
    assert daemon.process is not None and daemon.process.wait(60) == 1
    assert "initial.broker.registration.timeout.ms" in daemon.log.read_text()


def test_the_file_limits_the_fetch_sessions__kip227(tmp_path: Path) -> None:
    port, controller_port = free_port(), free_port()
    slots = {"max__incremental__fetch__session__cache__slots": 1}
    daemon = combined(tmp_path, port, controller_port, **slots).format().start()
    wait_until(lambda: brokers(port) == [(100, port)], "the broker is in Metadata")
    fetch = FetchRequest(session_epoch=0, topics=[FetchTopic("t", partitions=[FetchPartition(0)])])
    client = Client(port)
    try:
        answers: list[Any] = [client.call(fetch, 12) for _ in range(2)]
    finally:
        client.close()
        assert daemon.stop() == 0
    assert [bool(one.session_id) for one in answers] == [True, False]
