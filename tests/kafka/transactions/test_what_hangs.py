"""``kraftd transactions`` at a stock node and at kraftd's, with a transaction that hangs."""

from __future__ import annotations

import json
import re
import time
from functools import partial
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from testkit.client import Client
from testkit.keyed_batches import keyed_batch
from testkit.node import CombinedNode, Kind
from testkit.process import HOST, wait_until
from tests.cli.run import Run, run
from tests.groups.consumer.members import HEARTBEAT, Consumer, heartbeat, joining
from tests.groups.requests import JOIN, join

pytestmark = pytest.mark.kafka

TOPIC = "looked-at"
STRAY_PRODUCER = 4_000_000
KEPT = r"app \(one\) to give up shared-\d, which app \(two\) is to get"
NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


@pytest.fixture(scope="module", autouse=True)
def unverified(whole_kafkas: dict[Kind, CombinedNode]) -> None:
    """Let partitions take records of transactions that no coordinator knows."""
    key = "transaction.partition.verification.enable"
    kraftd, stock = whole_kafkas["kraftd"], whole_kafkas["apache"]
    kraftd.stop()
    kraftd.properties[key] = "false"
    kraftd.write_properties()
    kraftd.start()
    change = AlterConfigsResource(4, "1", [AlterableConfig(key, 0, "false")])
    with Client(HOST, stock.client_port) as client:
        answer = client.call(IncrementalAlterConfigsRequest([change]), 1)
    assert not any(one.error_code for one in answer.responses), answer
    kraftd.wait_ready()


def ask(node: CombinedNode, *arguments: object) -> Run:
    return run("transactions", *arguments, "--bootstrap", node.bootstrap)


def rows(done: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.out.splitlines()]


def begun(node: CombinedNode, id: str) -> Producer:
    """A producer with a record in an open transaction."""
    producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": id})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(TOPIC, b"open", partition=0)
    producer.flush(30)
    return producer


def hang(node: CombinedNode) -> None:
    """Write a record of a transaction of which no coordinator knows."""
    now_ms = int(time.time() * 1000)
    batch = keyed_batch([(b"key", b"value")], 0, 0, now_ms, STRAY_PRODUCER, 0, base_sequence=0)
    data = [TopicProduceData(TOPIC, partition_data=[PartitionProduceData(1, batch)])]
    with Client(HOST, node.client_port) as client:
        answer = client.call(ProduceRequest("stray", -1, 10_000, data), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0, answer


@pytest.mark.parametrize("kind", ["kraftd", "apache"])
def test_what_is_open_is_listed_what_hangs_is_named_and_both_are_aborted(
    whole_kafkas: dict[Kind, CombinedNode], kind: Kind
) -> None:
    node = whole_kafkas[kind]
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(30)
    producer = begun(node, "mine")
    hang(node)
    (listed,) = (
        row
        for row in rows(ask(node, "list", "--state", "Ongoing", "--json"))
        if row["transactional_id"] == "mine"
    )
    assert listed["coordinator"] == 1
    assert 0 <= listed["age_ms"] < 60_000
    (described,) = rows(ask(node, "describe", "mine", "--json"))
    assert described["state"] == "Ongoing" and described["producer_id"] == listed["producer_id"]
    assert described["partitions"] == [{"topic": TOPIC, "partition": 0, "leader": 1, "start_offset": 0}]
    found = ask(node, "open", TOPIC, "--json")
    sound, hanging = sorted(rows(found), key=lambda row: row["partition"])
    assert found.code == 1
    assert (sound["transactional_id"], sound["hangs"], sound["start_offset"]) == ("mine", False, 0)
    assert (hanging["transactional_id"], hanging["hangs"]) == (None, True)
    assert hanging["why"] == f"no coordinator knows producer {STRAY_PRODUCER}, so that nothing ends it"

    place = ("--topic", TOPIC, "--start-offset", 0, "--partition")
    refused = ask(node, "abort", *place, 0)
    assert refused.code == 1 and "Abort that id" in refused.err
    assert ask(node, "abort", *place, 1) == (
        0,
        f"{TOPIC}-1: aborted from offset 0 on, of producer {STRAY_PRODUCER}.\n",
        "",
    )
    done = ask(node, "abort", "mine", "nobody's")
    assert done.code == 1 and "mine: aborted" in done.out
    assert done.err == "nobody's: there is no such transactional id.\n"
    assert ask(node, "open", TOPIC) == (0, "", "No transaction is open.\n")
    (described,) = rows(ask(node, "describe", "mine", "--json"))
    assert (described["state"], described["age_ms"], described["partitions"]) == ("Empty", None, [])
    with pytest.raises(KafkaException):
        producer.commit_transaction(30)


@pytest.mark.parametrize("kind", ["kraftd", "apache"])
def test_unknown_states_ids_and_topics_are_refused(
    whole_kafkas: dict[Kind, CombinedNode], kind: Kind
) -> None:
    node = whole_kafkas[kind]
    assert ask(node, "list", "--state", "Open").err == "No transaction has a state Open.\n"
    assert ask(node, "describe", "none").err == "There is no transactional id none.\n"
    assert ask(node, "abort", "--topic", TOPIC).code == 2
    assert ask(node, "open", "no-topic", "--timeout", 1).code == 1


@pytest.mark.parametrize("kind", ["kraftd", "apache"])
def test_a_group_that_rebalances_names_what_it_waits_for(
    whole_kafkas: dict[Kind, CombinedNode], kind: Kind
) -> None:
    node = whole_kafkas[kind]

    def described(group: str) -> dict[str, Any]:
        (row,) = rows(run("groups", "describe", group, "--json", "--bootstrap", node.bootstrap))
        return row

    def ask_group(client: Client, request: Message, version: int) -> Any:
        """The answer, once the partition of the group is loaded."""
        answers: list[Any] = []

        def is_answered() -> bool:
            answers.append(client.call(request, version))
            return answers[-1].error_code not in NOT_YET

        wait_until(is_answered, "the group has a coordinator", 30)
        return answers[-1]

    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_topics([NewTopic("shared", 2, 1)])["shared"].result(30)
    with Client(HOST, node.client_port, "app") as client:
        client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=("waits",)), 4)
        known = client.call(MetadataRequest([MetadataRequestTopic(name="shared")]), 12)
        both = {known.topics[0].topic_id: [0, 1]}
        one = Consumer(partial(ask_group, client), "one", "waits", topics=("shared",))
        one.join()
        # The group may learn of the topic after its first member has joined.
        wait_until(lambda: one.beat() and one.has == both, "the member has both partitions", 30)
        kept = heartbeat("one", one.epoch, group="waits", owned=both)
        ask_group(client, joining("two", ("shared",), group="waits"), HEARTBEAT)

        def is_kept() -> bool:
            ask_group(client, kept, HEARTBEAT)
            return bool(re.fullmatch(KEPT, "; ".join(described("waits")["waits_for"])))

        wait_until(is_kept, "a member keeps what the other is to get", 30)
        assert described("waits")["wait_ends"].startswith("A member is removed if it is silent for 45 s, or")
        joined = ask_group(client, join("lacks"), JOIN)
        ask_group(client, join("lacks", joined.member_id), JOIN)
        (what,) = described("lacks")["waits_for"]
        assert what.startswith("the assignment that one of its members, the leader, computes and sends; ")
