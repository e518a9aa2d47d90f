"""``kraftd topics``, ``show``, ``history`` and ``watch`` over a cluster of stock brokers in use."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from testkit.cluster import Cluster
from tests.cli.run import Run, run
from tests.cli.watching import Watch
from tests.kafka.shell import metadata_shell

pytestmark = pytest.mark.kafka


def rows(done: Run) -> list[dict[str, Any]]:
    assert done.code == 0, done
    return [json.loads(line) for line in done.out.splitlines()]


def set_config(cluster: Cluster, topic: str, key: str, value: str) -> None:
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for future in cluster.admin.incremental_alter_configs([resource]).values():
        future.result(30)


def test_watch_and_history_show_the_same_life_of_a_topic(three_brokers: Cluster) -> None:
    cluster, topic = three_brokers, "watched"
    watch = Watch("--bootstrap", cluster.controller.address, "--topic", topic)
    try:
        watch.wait_until_it_follows()
        cluster.create_topic(topic, 2, 3)
        created = watch.line()
        assert created["text"].startswith("topic watched created with 2 partitions, replication factor 3")
        set_config(cluster, topic, "retention.ms", "60000")
        assert watch.line()["text"] == "config retention.ms of topic watched set to 60000"
        leader = cluster.partition(topic).leader
        cluster.brokers[leader].stop()
        moved = watch.line()
        while moved["kind"] != "leader-moved" or moved["details"]["before"]["leader"] != leader:
            moved = watch.line()
        assert f"leader moved from broker {leader} to broker" in moved["text"]
        cluster.heal()
        for future in cluster.admin.delete_topics([topic]).values():
            future.result(30)
        event = watch.line()
        while event["kind"] != "topic-deleted":
            event = watch.line()
    finally:
        watch.stop()
    events = rows(run("history", "--topic", topic, "--bootstrap", cluster.controller.address, "--json"))
    assert events[0] == created and events[-1] == event
    by_files = rows(run("history", "--topic", topic, "-d", cluster.controller.data, "--json"))
    assert by_files == events
    before = str(moved["offset"] - 1)
    path = f"/topics/byName/{topic}/{moved['partition']}"
    (row,) = rows(run("show", path, "--as-of", before, "-d", cluster.controller.data, "--json"))
    assert row["value"]["leader"] == leader


def test_commands_that_bootstrap_from_brokers_find_the_controllers(three_brokers: Cluster) -> None:
    cluster = three_brokers
    cluster.create_topic("listed", 3, 2)
    by_broker = rows(run("topics", "listed", "--bootstrap-server", cluster.bootstrap, "--json"))
    assert by_broker == rows(run("topics", "listed", "-d", cluster.controller.data, "--json"))
    assert (by_broker[0]["partitions"], by_broker[0]["replication_factor"]) == (3, 2)
    # A broker's own copy of the log gives the same output.
    own = cluster.brokers[1].data
    assert rows(run("topics", "listed", "-d", own, "--json")) == by_broker


def test_the_tree_equals_that_of_kafkas_metadata_shell(three_brokers: Cluster, tmp_path: Path) -> None:
    cluster = three_brokers
    cluster.create_topic("shown", 1, 2)
    segment = max(cluster.controller.metadata_dir.glob("*.log"))
    copy = Path(shutil.copy(segment, tmp_path / segment.name))
    for path in ("/topics/byName/shown/0", "/cluster/brokers/1", "/features/metadataVersion"):
        words: list[str] = run("show", path, "-d", copy).out.split()
        metadata_shell(
            copy, tmp_path, "cat", f"/image{path}", expected=lambda found, words=words: found == words
        )
