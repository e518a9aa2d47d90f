"""``__transaction_state`` moves from a stock broker to kraftd and back by kills, while producers live."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from testkit.node import CombinedNode, Kind
from testkit.process import wait_until
from tests.cli.run import run
from tests.kafka.one_broker.test_transactions import values

pytestmark = pytest.mark.kafka

TOPIC = "moved"


def states(node: CombinedNode) -> dict[str, str]:
    lines = run("transactions", "list", "--json", "--bootstrap", node.bootstrap).out.splitlines()
    rows = (json.loads(line) for line in lines)
    return {
        row["transactional_id"][6:]: row["state"] for row in rows if row["transactional_id"][:6] == "moved-"
    }


def restart_as(node: CombinedNode, kind: Kind) -> None:
    node.kill()
    node.kind = kind
    node.start()
    node.wait_ready()


def write(producer: Producer, value: str) -> None:
    producer.begin_transaction()
    producer.produce(TOPIC, value.encode(), partition=0)
    producer.flush(30)


def test_open_transactions_go_on_at_the_other_kind(whole_kafkas: dict[Kind, CombinedNode]) -> None:
    node = whole_kafkas["apache"]
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
    producers = {}
    for name in ("committed-there", "aborted-back", "done"):
        where = {"bootstrap.servers": node.bootstrap, "transactional.id": f"moved-{name}"}
        producers[name] = Producer({**where, "transaction.timeout.ms": 300_000})
        producers[name].init_transactions(30)
        write(producers[name], name)
    producers["done"].commit_transaction(30)
    before = {"committed-there": "Ongoing", "aborted-back": "Ongoing", "done": "CompleteCommit"}
    assert states(node) == before
    try:
        restart_as(node, "kraftd")
        wait_until(lambda: states(node) == before, "kraftd has loaded the state", 30)
        producers["committed-there"].commit_transaction(60)
        write(producers["done"], "again")
    finally:
        restart_as(node, "apache")
    after = {"committed-there": "CompleteCommit", "aborted-back": "Ongoing", "done": "Ongoing"}
    wait_until(lambda: states(node) == after, "the stock broker has loaded the state", 30)
    producers["done"].commit_transaction(60)
    producers["aborted-back"].abort_transaction(60)
    assert sorted(values(node, TOPIC)) == ["again", "committed-there", "done"]
