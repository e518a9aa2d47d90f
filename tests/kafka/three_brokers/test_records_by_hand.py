"""``kraftd produce``, ``consume`` and ``groups`` at stock brokers, beside another client."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer

from testkit.cluster import Cluster
from testkit.process import wait_until
from tests.cli.run import command, run_apart

pytestmark = pytest.mark.kafka


def bootstrap(cluster: Cluster) -> tuple[str, str]:
    return "--bootstrap", ",".join(broker.address for broker in cluster.brokers.values())


def produce(cluster: Cluster, lines: str, *arguments: object) -> str:
    done = subprocess.run(
        command("produce", *arguments, *bootstrap(cluster)),
        input=lines,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done
    return done.stdout


def consume(cluster: Cluster, *arguments: object) -> list[str]:
    done = run_apart("consume", *arguments, *bootstrap(cluster))
    assert done.code == 0, done
    return done.out.splitlines()


def describe(cluster: Cluster, group: str) -> dict[str, Any]:
    done = run_apart("groups", "describe", group, "--json", *bootstrap(cluster))
    assert done.code == 0, done
    described: dict[str, Any] = json.loads(done.out)
    return described


def test_records_go_round_with_keys_headers_and_other_clients(three_brokers: Cluster) -> None:
    cluster, topic = three_brokers, "by-hand"
    cluster.create_topic(topic, 3, 3)
    produce(cluster, "a=1\nb=2\na=3\n", topic, "--key-separator", "=", "--header", "from=hand")
    writer = Producer({"bootstrap.servers": bootstrap(cluster)[1], "partitioner": "murmur2_random"})
    writer.produce(topic, b"4", b"a")
    writer.flush(30)
    found = consume(cluster, topic, "--from-beginning", "--max-messages", 4, "--json")
    rows = [json.loads(line) for line in found]
    assert sorted((row["key"], row["value"]) for row in rows) == [
        ("a", "1"),
        ("a", "3"),
        ("a", "4"),
        ("b", "2"),
    ]
    assert len({row["partition"] for row in rows if row["key"] == "a"}) == 1
    assert [row["value"] for row in rows if row["key"] == "a"] == ["1", "3", "4"]
    assert {tuple(map(tuple, row["headers"])) for row in rows if row["value"] != "4"} == {(("from", "hand"),)}
    copy = "by-hand-copy"
    cluster.create_topic(copy, 3, 3)
    written = produce(cluster, "\n".join(found), copy, "--json")
    assert sum(json.loads(line)["record_count"] for line in written.splitlines()) == 4
    copied = consume(cluster, copy, "--from-beginning", "--max-messages", 4, "--json")
    assert sorted(copied) == sorted(line.replace(f'"{topic}"', f'"{copy}"') for line in found)


def test_two_members_share_a_topic_and_its_group_is_described(three_brokers: Cluster) -> None:
    cluster, topic, group = three_brokers, "shared-by-hand", "by-hand"
    cluster.create_topic(topic, 4, 3)
    other = Consumer(
        {
            "bootstrap.servers": bootstrap(cluster)[1],
            "group.id": group,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "range",
        }
    )
    mine = subprocess.Popen(
        command("consume", topic, "--group", group, "--from-beginning", *bootstrap(cluster)),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        other.subscribe([topic])
        wait_until(lambda: other.poll(0.1) is None and len(other.assignment()) == 2, "two partitions", 60)
        state = describe(cluster, group)
        assert (state["state"], len(state["members"])) == ("Stable", 2)
        assert sorted(len(one["partitions"]) for one in state["members"]) == [2, 2]
    finally:
        other.close()
        mine.terminate()
        mine.communicate(timeout=30)
    produce(cluster, "".join(f"{number}\n" for number in range(40)), topic)
    read = consume(
        cluster, topic, "--group", group, "--from-beginning", "--max-messages", 40, "--timeout", 60
    )
    assert sorted(map(int, read)) == list(range(40))
    assert describe(cluster, group)["lag"] == 0
    produce(cluster, "one more\n", topic)
    assert describe(cluster, group)["lag"] == 1
    assert consume(cluster, topic, "--group", group, "--max-messages", 1) == ["one more"]
    listed = run_apart("groups", "list", *bootstrap(cluster))
    assert group in listed.out and "Empty" in listed.out
    assert run_apart("groups", "delete", group, *bootstrap(cluster)).code == 0
    gone = run_apart("groups", "describe", group, *bootstrap(cluster))
    assert (gone.code, gone.err) == (1, f"There is no group {group}.\n")


def test_what_cannot_be_written_is_explained(three_brokers: Cluster) -> None:
    cluster, topic = three_brokers, "by-hand-refused"
    cluster.create_topic(topic, 1, 3)
    for arguments, text in (
        ((topic, "--partition", 7), "by-hand-refused has no partition 7"),
        (("no/topic",), "no/topic: INVALID_TOPIC_EXCEPTION"),
        ((topic, "--json"), "Line 1: no JSON"),
    ):
        done = subprocess.run(
            command("produce", *arguments, *bootstrap(cluster)),
            input="x\n",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode != 0 and text in done.stderr, done


def test_a_group_of_the_new_protocol_is_described_and_its_offsets_are_reset(three_brokers: Cluster) -> None:
    cluster, topic, group = three_brokers, "reset-by-hand", "reset"
    cluster.create_topic(topic, 2, 3)
    lines = "".join(f"{number % 2}={number}\n" for number in range(10))
    produce(cluster, lines, topic, "--key-separator", "=")
    settings = {
        "bootstrap.servers": bootstrap(cluster)[1],
        "group.id": group,
        "auto.offset.reset": "earliest",
    }
    reader = Consumer({**settings, "group.protocol": "consumer"})
    try:
        reader.subscribe([topic])
        read: list[Message] = []
        wait_until(lambda: read.extend(reader.consume(10, 0.1)) or len(read) == 10, "all records", 60)
        state = describe(cluster, group)
        assert (state["type"], state["state"], state["protocol"]) == ("consumer", "Stable", "uniform")
        assert [sorted(one["partitions"]) for one in state["members"]] == [[[topic, 0], [topic, 1]]]
        refused = run_apart("groups", "reset", group, "--to-earliest", "--execute", *bootstrap(cluster))
        assert refused.code == 1 and "has members (1): stop them first" in refused.err
    finally:
        reader.close()
    before = {one["partition"]: one["committed"] for one in describe(cluster, group)["partitions"]}
    assert sum(before.values()) == 10
    # Shown, but not changed.
    planned = moved(cluster, group, "--by-shift", -1)
    assert [(one["committed"], one["offset"]) for one in planned] == [
        (end, end - 1) for end in before.values()
    ]
    assert describe(cluster, group)["lag"] == 0
    moved(cluster, group, "--by-shift", -1, "--execute")
    assert describe(cluster, group)["lag"] == 2
    beyond = moved(cluster, group, "--topic", f"{topic}:1", "--to-offset", 4711, "--execute")
    assert [(one["partition"], one["wanted"], one["offset"]) for one in beyond] == [(1, 4711, before[1])]
    assert describe(cluster, group)["lag"] == 1
    assert {one["offset"] for one in moved(cluster, group, "--to-time", "1h")} == {0}
    assert {one["offset"] for one in moved(cluster, "new", "--topic", topic, "--to-earliest")} == {0}


def test_offsets_come_from_a_file(three_brokers: Cluster, tmp_path: Path) -> None:
    cluster, topic, group = three_brokers, "reset-by-file", "by-file"
    cluster.create_topic(topic, 1, 3)
    produce(cluster, "1\n2\n3\n", topic)
    offsets = tmp_path / "offsets.csv"
    offsets.write_text(f"{topic},0,2\n")
    moved(cluster, group, "--from-file", offsets, "--execute")
    assert consume(cluster, topic, "--group", group, "--max-messages", 1) == ["3"]
    offsets.write_text(f"{topic},0,2\n{topic},zero,2\n")
    refused = run_apart("groups", "reset", group, "--from-file", offsets, *bootstrap(cluster))
    said = f"{offsets}, line 2: {topic},zero,2 is not topic,partition,offset"
    assert refused.code == 2 and said in refused.err


def moved(cluster: Cluster, group: str, *arguments: object) -> list[dict[str, Any]]:
    """The moves of a reset."""
    done = run_apart("groups", "reset", group, *arguments, "--json", *bootstrap(cluster))
    assert done.code == 0, done
    return [json.loads(line) for line in done.out.splitlines()]
