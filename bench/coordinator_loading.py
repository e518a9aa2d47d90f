"""Committed offsets loaded by a broker that becomes their coordinator, and does nothing else meanwhile.

A stock broker holds the commits. The other one is of either kind. It starts, follows until it is in sync and
at rest, and is elected. Its CPU from there until it answers for all partitions is that of the loading.
"""

from __future__ import annotations

import statistics
import time

from bench.coordinator_client import COMMIT_VERSION, Member, commit_of, until_served
from bench.figures import Figures
from bench.replica_cluster import GIVE_UP_S, ReplicaCluster, replica_cluster
from kraftd.ground.java_hashes import partition_for
from kraftd.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from testkit.client import Client
from testkit.node import Kind
from testkit.process import HOST, wait_until

ELECT_VERSION, FETCH_OFFSETS_VERSION = 2, 9
COMMITS_TOPIC, COORDINATORS = "__consumer_offsets", 3  # partitions
TOPIC, PARTITIONS = "orders", 100  # a commit has all of them
HOLDER, LOADER = 1, 2
POLL_S = 0.05
STAYING = {"auto.leader.rebalance.enable": "false"}
SMALL_TOPIC = {"offsets.topic.num.partitions": COORDINATORS}


def loading(kind: Kind, count: int, loads: int, settle_s: float) -> Figures:
    """CPU of a broker from its election until the commits of all partitions are served; a median."""
    took_s = []
    with replica_cluster({HOLDER: "apache", LOADER: kind}, STAYING, SMALL_TOPIC) as cluster:
        cluster.create(COMMITS_TOPIC, [[LOADER, HOLDER]] * COORDINATORS)
        cluster.create(TOPIC, [[HOLDER]] * PARTITIONS)
        _stop_loader(cluster)
        with cluster.client_of(HOLDER) as client:
            for number in range(count // PARTITIONS):
                member = Member(f"simple-{number}", -1, "")
                until_served(client, commit_of(member, TOPIC, range(PARTITIONS)), COMMIT_VERSION)
        for _ in range(loads):
            cluster.broker(LOADER).start()
            in_sync = lambda: cluster.is_in_sync(HOLDER, COMMITS_TOPIC, COORDINATORS)  # noqa: E731
            wait_until(in_sync, "the commits are in sync", GIVE_UP_S, 0.1)
            time.sleep(settle_s)
            took_s.append(_load_cpu_s(cluster))
            _stop_loader(cluster)
    return {"coordinators_load_cpu_s": statistics.median(took_s)}


def _stop_loader(cluster: ReplicaCluster) -> None:
    """Stop the broker; the other one leads all partitions then."""
    cluster.broker(LOADER).stop()

    def leads() -> bool:
        states = [cluster.partition_state(HOLDER, COMMITS_TOPIC, index) for index in range(COORDINATORS)]
        return all(one.leader_id == HOLDER for one in states)

    wait_until(leads, "the other broker leads", GIVE_UP_S, 0.1)


def _load_cpu_s(cluster: ReplicaCluster) -> float:
    """Have the broker elected, and wait until it serves a group of each partition."""
    elect = ElectLeadersRequest(0, [TopicPartitions(COMMITS_TOPIC, tuple(range(COORDINATORS)))], 60_000)
    by_partition = {partition_for(name, COORDINATORS): name for name in (f"simple-{n}" for n in range(50))}
    asked = [OffsetFetchRequestTopics(TOPIC, partition_indexes=(0,))]
    groups = [OffsetFetchRequestGroup(name, topics=asked) for name in by_partition.values()]
    node = cluster.broker(LOADER)
    with (
        Client(HOST, cluster.controller.port, client_id="bench", timeout_s=GIVE_UP_S) as admin,
        cluster.client_of(LOADER) as client,
    ):
        before_s = node.cpu_s()
        if (answer := admin.call(elect, ELECT_VERSION)).error_code:
            raise RuntimeError(f"no election: {answer!r}")

        def is_served() -> bool:
            answered = client.call(OffsetFetchRequest(groups=groups), FETCH_OFFSETS_VERSION).groups
            if any(one.error_code for one in answered):
                return False
            offsets = [row.committed_offset for one in answered for row in one.topics[0].partitions]
            if offsets != [1] * COORDINATORS:
                raise RuntimeError(f"other offsets are served than were committed: {offsets}")
            return True

        wait_until(is_served, "commits are served", GIVE_UP_S, POLL_S)
        return node.cpu_s() - before_s
