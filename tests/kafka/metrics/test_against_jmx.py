"""kraftd's metrics beside those of Apache Kafka's controller: the same names, equal values."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from pathlib import Path

import pytest

from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from kraftd.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kraftd.metadata.features import supported_features
from kraftd.metadata.image import Image
from kraftd.metrics.families.exposition import CONTROLLER_FAMILIES
from kraftd.metrics.families.quorum_metrics import STATES
from kraftd.wire.message import Message
from testkit.process import free_port, wait_until
from tests.kafka.differential.pair import GaveUp, Pair
from tests.kafka.differential.requests import RandomRequests
from tests.kafka.jmx import Attribute, read_jmx
from tests.metrics.absent import why_absent
from tests.metrics.scrape import Scrape

pytestmark = pytest.mark.kafka
RANDOM_STEPS = 300
# Requests that this test repeats until something happens, and those that a controller sends to itself.
_NOT_REQUESTED_ALIKE = {
    "ApiVersions",
    "BeginQuorumEpoch",
    "ControllerRegistration",
    "DescribeCluster",
    "Fetch",
    "FetchConsumer",
    "FetchFollower",
}

# Metrics that are equal in two controllers with the same state and history.
SAME = (
    *(
        f"kafka_controller_KafkaController_{name}"
        for name in (
            "ActiveControllerCount",
            "FencedBrokerCount",
            "ActiveBrokerCount",
            "ControlledShutdownBrokerCount",
            "BrokerRegistrationState",
            "GlobalTopicCount",
            "GlobalPartitionCount",
            "OfflinePartitionsCount",
            "PreferredReplicaImbalanceCount",
            "MetadataErrorCount",
            "LastAppliedRecordOffset",
            "LastCommittedRecordOffset",
            "TimedOutBrokerHeartbeatCount",
            "EventQueueOperationsTimedOutCount",
            "NewActiveControllersCount",
            "IgnoredStaticVoters",
        )
    ),
    *(
        f"kafka_server_raft_metrics_{name}"
        for name in (
            "current_leader",
            "current_vote",
            "current_epoch",
            "high_watermark",
            "log_end_offset",
            "log_end_epoch",
            "number_of_voters",
            "number_of_observers",
            "number_unknown_voter_connections",
            "uncommitted_voter_change",
        )
    ),
    *(
        f"kafka_server_MetadataLoader_{name}"
        for name in (
            "CurrentMetadataVersion",
            "CurrentControllerId",
            "FinalizedLevel",
            "HandleLoadSnapshotCount",
        )
    ),
    "kafka_server_SnapshotEmitter_LatestSnapshotGeneratedBytes",
    "kafka_server_node_metrics_minimum_supported_level",
    "kafka_server_node_metrics_maximum_supported_level",
    "kafka_log_Log_LogStartOffset",
    "kafka_log_Log_LogEndOffset",
    "kafka_log_Log_NumLogSegments",
)
COUNTED = (
    "kafka_controller_ControllerStats_UncleanLeaderElectionsPerSec",
    "kafka_controller_ControllerStats_ElectionFromEligibleLeaderReplicasPerSec",
)


class Watched(Pair):
    """A pair with metrics."""

    def __init__(self, home: Path, **settings: list[int]) -> None:
        super().__init__(home, **settings)
        self.port = free_port()
        kraftd = self.sides[1].controller
        kraftd.properties["kraftd.metrics.listener"] = f"127.0.0.1:{self.port}"
        kraftd.write_properties()

    def __enter__(self) -> Watched:
        return self

    def jmx(self) -> list[Attribute]:
        return read_jmx(self.apache.controller.pid)

    def differences(self) -> Iterator[str]:
        """Each metric that should be the same in both, and is not."""
        kafka, kraftd = self.jmx(), Scrape(self.port)
        compared = 0
        for one in kafka:
            if one.name in SAME:
                found = kraftd.find(one.name, one.labels)
            elif one.name in COUNTED and one.attribute == "Count":
                found = kraftd.find(f"{one.name}_total", one.labels)
            elif one.bean == "kafka.server:type=raft-metrics current-state":
                yield from self._state(one.text, kraftd)
                continue
            else:
                continue
            compared += 1
            if found is None or (found != one.value and not (isnan(found) and isnan(one.value))):
                yield f"{one.name} {sorted(one.labels)}: Kafka {one.text}, kraftd {found}"
        assert compared >= len(SAME), "Kafka does not have all of them"
        for name in SAME:
            for labels, value in kraftd.samples(name):
                if not any(one.name == name and one.labels == labels for one in kafka):
                    yield f"{name} {sorted(labels)}: kraftd {value}, Kafka nothing"

    def _state(self, text: str, kraftd: Scrape) -> Iterator[str]:
        for state in STATES:
            value = kraftd.value("kafka_server_raft_metrics_current_state", state=state)
            if value != (state == text):
                yield f"current-state: Kafka {text}, kraftd {value} for {state}"

    def settle(self) -> None:
        """Wait until the metrics of both are equal; AssertionError with the differences if they never are."""
        differences: list[str] = []

        def same() -> bool:
            differences[:] = self.differences()
            return not differences

        try:
            wait_until(same, "both have the same metrics", timeout_s=20, poll_s=0.5)
        except TimeoutError:
            raise AssertionError("\n".join(differences)) from None

    def counts(self, kind: str) -> tuple[dict[object, float], dict[object, float]]:
        """RequestsPerSec or ErrorsPerSec of both, without successes among the errors."""
        name = f"kafka_network_RequestMetrics_{kind}"
        kafka = {one.labels: one.value for one in self.jmx() if one.name == name and one.attribute == "Count"}
        kraftd = dict(Scrape(self.port).samples(f"{name}_total"))
        return _comparable(kafka), _comparable(kraftd)


def _comparable(counts: dict[frozenset[tuple[str, str]], float]) -> dict[object, float]:
    found: dict[object, float] = {}
    for labels, count in counts.items():
        named = dict(labels)
        if count and named["request"] not in _NOT_REQUESTED_ALIKE and named.get("error") != "NONE":
            found[tuple(sorted(labels))] = count
    return found


def registration(broker_id: int, cluster_id: str) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=bytes(15) + bytes([broker_id]),
        listeners=[Listener("PLAINTEXT", "127.0.0.1", 9090 + broker_id)],
        features=[Feature(name, *levels) for name, levels in supported_features().items()],
        log_dirs=(bytes(14) + bytes([1, broker_id]),),
    )


def topic(name: str, *replicas: tuple[int, ...]) -> CreatableTopic:
    assigned = [CreatableReplicaAssignment(index, ids) for index, ids in enumerate(replicas)]
    return CreatableTopic(name, -1, -1, assigned)


def test_every_metric_of_kafkas_controller_is_here_or_known_to_be_absent(tmp_path: Path) -> None:
    with Watched(tmp_path) as pair:
        pair.start()
        pair.ask(registration(1, pair.cluster_id), 4)  # a broker has some metrics of its own
        kafka = pair.jmx()
    families = {family.name.removesuffix("_total"): family for family in CONTROLLER_FAMILIES}
    missing = set()
    for one in kafka:
        family = families.get(one.name.removesuffix("_total"))
        if family is None:
            if why_absent(one.bean) is None:
                missing.add(one.bean)
        else:
            assert family.help.startswith(f"{one.bean}: ")
            assert why_absent(one.bean) is None, f"{one.bean} is here, and listed as absent"
    assert missing == set()
    names = {one.name.removesuffix("_total") for one in kafka}
    invented = {family.bean for name, family in families.items() if family.bean and name not in names}
    # KIP-630 has these metrics; Kafka now has them in another form.
    old = ("GenSnapshotLatencyMs", "LoadSnapshotLatencyMs", "SnapshotSizeBytes", "SnapshotLag")
    assert invented == {f"kafka.controller:type=KafkaController,name={name}" for name in old}


@pytest.mark.thorough
def test_values_are_kafkas_with_brokers_of_every_state_and_leaderless_partitions(
    tmp_path: Path,
) -> None:
    with Watched(tmp_path) as pair:
        pair.start()

        def ask(request: Message, version: int) -> object:
            (kafka, kraftd), _ = pair.ask(request, version)
            assert kafka == kraftd
            return kafka

        pair.settle()
        epochs = {}
        for broker_id in (1, 2, 3, 4):
            answer = ask(registration(broker_id, pair.cluster_id), 4)
            epochs[broker_id] = answer["brokerEpoch"]  # type: ignore[index]

        def beat(broker_id: int, **wants: bool) -> None:
            epoch = epochs[broker_id]
            ask(BrokerHeartbeatRequest(broker_id, epoch, current_metadata_offset=epoch, **wants), 1)

        pair.settle()  # all brokers are fenced
        for broker_id in (1, 2, 3):
            beat(broker_id)
        topics = [topic("a", (1, 2), (2, 1), (3, 1)), topic("b", (2, 3)), topic("c.d", (2,), (2,))]
        ask(CreateTopicsRequest(topics, 30_000), 7)
        ask(CreateTopicsRequest(topics[:2], 30_000), 7)  # these exist already
        pair.settle()
        beat(2, want_fence=True)
        pair.settle()
        controller = "kafka_controller_KafkaController_"
        scrape = Scrape(pair.port)
        assert scrape.value(f"{controller}FencedBrokerCount") == 2
        assert scrape.value(f"{controller}OfflinePartitionsCount") == 2
        assert scrape.value(f"{controller}PreferredReplicaImbalanceCount") == 4
        beat(3, want_shut_down=True)
        pair.settle()
        scrape = Scrape(pair.port)
        for broker_id in (1, 2, 3, 4):
            assert scrape.value(f"{controller}TimeSinceLastHeartbeatReceivedMs", broker=str(broker_id)) >= 0
        for kind in ("RequestsPerSec", "ErrorsPerSec"):
            kafka, kraftd = pair.counts(kind)
            assert kafka == kraftd
            assert kafka


@pytest.mark.thorough
def test_values_are_kafkas_after_requests_of_all_kinds(tmp_path: Path) -> None:
    with Watched(tmp_path) as pair:
        pair.start()
        image = Image()
        requests = RandomRequests(3, image, pair.cluster_id)
        parts = [side.read_log() for side in pair.sides]
        for step in range(RANDOM_STEPS):
            for offset, epoch, message in parts[0].records:
                image.apply(message, offset, epoch)
            requests.log_end = pair.apache.next_offset
            requests.batch_starts += [base_offset for base_offset, _, _ in parts[0].batches]
            request, version = requests.next()
            try:
                _, parts = pair.ask(request, version)
            except GaveUp:
                break
            if step % 100 == 99:
                pair.settle()
        assert image.topic_count > 0, f"the requests changed nothing: {image!r}"
