"""``kraftd doctor`` distinguishes a follower with a slow link from one with a slow disk, each a real one."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kraftd.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.metrics.state.slow_fetches import DISK, LINK
from kraftd.wire.records import build_records_batch
from testkit.client import Client
from testkit.process import Process, free_port, wait_until
from tests.cli.run import command, run, started, write_config
from tests.faults.disks import faulty_files, fsync_lacking, preload_faults
from tests.faults.namespaces import Hosts, NotPermitted

CLUSTER_ID = "J2-XQFCPQPqlsMLqSD6K7g"
RECORD_BYTES = 20_000  # more than the slow link takes in a second
WRITE_US = -700_000  # a delay
RECORDS = 300  # minutes over that link, and with that delay

Around = Callable[[Callable[[], Sequence[str]]], Callable[[], Sequence[str]]]


class Pair:
    """A leader, which is a whole Kafka, and a follower; `around` changes the follower's commands."""

    def __init__(
        self, home: Path, leader_host: str, follower_host: str, around: Around = lambda command: command
    ) -> None:
        controller, leader = free_port(), free_port()
        self.boot, self._around = f"{leader_host}:{leader}", around
        quorum = f"{leader_host}:{controller}"
        common = {"controller__quorum__bootstrap__servers": quorum}
        self.config = write_config(
            home,
            process__roles="broker,controller",
            replica__lag__time__max__ms="3000",
            listeners=f"PLAINTEXT://{self.boot},CONTROLLER://{quorum}",
            **common,
        )
        folder = home / "follower"
        folder.mkdir()
        self._of_follower = write_config(
            folder,
            node__id="2",
            process__roles="broker",
            listeners=f"PLAINTEXT://{follower_host}:{free_port()}",
            replica__fetch__max__bytes="1000",
            kraftd__metrics__listener=f"127.0.0.1:{free_port()}",
            **common,
        )
        assert run("format", "-c", self.config, "-t", CLUSTER_ID, "--standalone").code == 0
        assert run("format", "-c", self._of_follower, "-t", CLUSTER_ID).code == 0
        self.follower = Process("follower", folder, around(lambda: command("start", self._of_follower)))

    def is_made(self) -> bool:
        """Make the topic, if it is missing; return whether both replicas are in sync."""
        places = [CreatableReplicaAssignment(0, (1, 2))]
        request = CreateTopicsRequest([CreatableTopic("t", -1, -1, places)], 60_000)
        with self._client() as client:
            client.call(request, 7)
            (topic,) = client.call(MetadataRequest([MetadataRequestTopic(name="t")], False), 12).topics
        return any(set(one.isr_nodes) == {1, 2} for one in topic.partitions)

    def _client(self) -> Client:
        host, _, port = self.boot.partition(":")
        return Client(host, int(port), timeout_s=60)

    def takes(self, acks: int) -> bool:
        """Return whether a record is taken."""
        batch = bytes(build_records_batch([(int(time.time() * 1000), None, bytes(RECORD_BYTES), ())]))
        data = [TopicProduceData("t", partition_data=[PartitionProduceData(0, batch)])]
        with self._client() as client:
            answer = client.call(ProduceRequest(None, acks, 60_000, data), 12)
        return not answer.responses[0].partition_responses[0].error_code

    def lack_records(self) -> None:
        """Let the follower be away while batches are written, each larger than what it fetches at a time."""
        self.follower.start()
        wait_until(self.is_made, "the topic is made")
        wait_until(lambda: self.takes(acks=-1), "a record is on both")
        self.follower.stop()
        assert all(self.takes(acks=1) for _ in range(RECORDS))

    def doctors(self) -> list[str]:
        """What the doctor says of replicas, on the follower's machine."""
        words = self._around(lambda: command("doctor", "--config", self._of_follower, "--json"))()
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        findings = [json.loads(line) for line in done.stdout.splitlines()]
        return [one["text"] for one in findings if (one["area"], one["subject"]) == ("replicas", "node 2")]

    def names(self, slow: str) -> bool:
        return any("it is behind: an answer" in text and text.endswith(slow) for text in self.doctors())


@contextmanager
def running(pair: Pair) -> Iterator[None]:
    with started(pair.config):
        try:
            yield
        finally:
            pair.follower.kill()


def test_a_slow_link_is_named(tmp_path: Path) -> None:
    with ExitStack() as stack:
        try:
            hosts = stack.enter_context(_closing(Hosts([2])))
        except NotPermitted as error:
            pytest.skip(f"not run: {error}")

        def on_its_host(command: Callable[[], Sequence[str]]) -> Callable[[], Sequence[str]]:
            return hosts.within(2, command)

        pair = Pair(tmp_path, hosts.gateway, hosts.address(2), on_its_host)
        stack.enter_context(running(pair))
        pair.lack_records()
        pair.follower.start()
        hosts.slow(2)
        wait_until(lambda: pair.names(LINK), "the doctor names the link", 180, 1)


@contextmanager
def _closing(hosts: Hosts) -> Iterator[Hosts]:
    try:
        yield hosts
    finally:
        hosts.close()


def test_a_slow_disk_is_named(tmp_path: Path) -> None:
    if lack := fsync_lacking("preload"):
        pytest.skip(f"not run: {lack}")
    pair = Pair(tmp_path, "127.0.0.1", "127.0.0.1")
    preload_faults(pair.follower, tmp_path)
    with running(pair):
        pair.lack_records()
        with faulty_files(pair.follower, WRITE_US, "write", "t-0/00000000000000000000.log"):
            pair.follower.start()
            wait_until(lambda: pair.names(DISK), "the doctor names the disk", 180, 1)
