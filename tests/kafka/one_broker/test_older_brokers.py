"""Brokers of Kafka 3.9 to 4.2 on kraftd, side by side, upgraded one by one to the newest release.

There are three controllers, so that the brokers, two of which use Fetch v17, also see leader changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from testkit.client import Client
from testkit.fetch import KAFKA_VERSION
from testkit.node import Broker
from testkit.process import HOST
from testkit.quorum import Quorum
from tests.kafka.one_broker.test_controller_failures import round_trip

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]

ALL = ("3.9.1", "4.0.0", "4.1.1", "4.2.0")


@pytest.fixture(
    scope="module",
    params=[ALL],
)
def releases(request: pytest.FixtureRequest) -> dict[int, str]:
    """The release of each broker, from the oldest."""
    return dict(enumerate(request.param, 1))


@pytest.fixture(scope="module")
def cluster(releases: dict[int, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    """Three kraftd controllers with the metadata.version of 3.9, and a broker of each release."""
    kinds = dict.fromkeys((100, 101, 102), "kraftd")
    with Quorum(tmp_path_factory.mktemp("older"), kinds) as cluster:
        voters = ("--initial-controllers", cluster.initial)
        for controller in cluster.controllers.values():
            controller.format(cluster.cluster_id, *voters, "--release-version", "3.9")
        cluster.start_controllers()
        cluster.start_brokers(*releases, releases=releases)
        yield cluster


def change_the_leader(cluster: Quorum) -> None:
    """Kill the leader, wait for the next one, and start the first again."""
    leader, epoch = cluster.wait_for_leader(), cluster.epoch()
    cluster.controllers[leader].kill()
    cluster.wait_for_leader(after_epoch=epoch)
    cluster.start_controllers(leader)


def metadata_version(cluster: Quorum) -> str:
    output = cluster.tool("features", "describe").out
    found = re.search(r"Feature: metadata.version\b.*FinalizedVersionLevel: (\S+)", output)
    assert found, output
    return found[1]


def shows(broker: Broker, topic: str) -> bool:
    request = MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    with Client(HOST, broker.port) as client:
        return bool(client.call(request, 12).topics[0].error_code == 0)


def use(cluster: Quorum, topic: str) -> None:
    """Create a topic with a replica on every broker; each must list it, and records must pass through it."""
    cluster.create_topic(topic, partitions=4, replication_factor=len(cluster.brokers))
    for broker in cluster.brokers.values():
        cluster.wait_until(lambda broker=broker: shows(broker, topic), f"{broker!r} shows {topic}")
    round_trip(cluster, topic, topic.encode())
    isrs = [set(partition.isrs) for partition in cluster.partitions(topic).values()]
    assert isrs == [set(cluster.brokers)] * 4


def test_brokers_of_older_releases_serve_and_are_rolled_to_the_newest(
    cluster: Quorum, releases: dict[int, str]
) -> None:
    assert metadata_version(cluster) == "3.9-IV0"
    use(cluster, "with-3.9")
    change_the_leader(cluster)
    use(cluster, "after-a-change")
    following = [*(release.rpartition(".")[0] for release in releases.values()), "4.3"][1:]
    for (node_id, release), upgraded in zip(releases.items(), following, strict=True):
        refused = cluster.try_tool("features", "upgrade", "--release-version", upgraded)
        assert refused.code != 0, f"broker {node_id} of {release} cannot have {upgraded}"
        broker = cluster.brokers[node_id]
        change_the_leader(cluster)
        broker.stop()
        broker.release = KAFKA_VERSION
        broker.start()
        broker.wait_ready()
        cluster.wait_for_live_brokers(*releases)
        cluster.tool("features", "upgrade", "--release-version", upgraded)
        assert metadata_version(cluster).startswith(upgraded)
        use(cluster, f"with-{upgraded}")
