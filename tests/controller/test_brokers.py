"""Registration and unregistration of brokers, told one rule at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kraftd.controller.brokers.registration import check_broker_epoch, register_broker, unregister_broker
from kraftd.controller.context import Context
from kraftd.controller.decision import Refusal
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftd.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftd.metadata.features import supported_features
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import Cluster, directory


def request(broker_id: int = 1, *, incarnation: int = 1, **more: Any) -> BrokerRegistrationRequest:
    """A registration as a stock broker sends it."""
    asked = BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id="kraftd-tests-0123456789",
        incarnation_id=bytes(15) + bytes((incarnation,)),
        listeners=[Listener("PLAINTEXT", "host", 9092, 0)],
        features=[Feature(name, low, high) for name, (low, high) in supported_features().items()],
        rack="r",
        log_dirs=(directory(broker_id),),
    )
    for name, value in more.items():
        setattr(asked, name, value)
    return asked


def at(cluster: Cluster, now_ms: int = 1_000) -> Context:
    return replace(cluster.ctx, now_ms=now_ms, kraft_version=1)


def register(
    cluster: Cluster, asked: BrokerRegistrationRequest, version: int = 4, now_ms: int = 1_000
) -> int:
    """The broker epoch that a registration gets; its record is applied."""
    decision = register_broker(at(cluster, now_ms), asked, version)
    cluster.apply(decision.records)
    assert decision.after is not None
    decision.after(cluster.image.offset + 1)
    return decision.answer.broker_epoch


def refusal(cluster: Cluster, asked: BrokerRegistrationRequest) -> ErrorCode:
    with pytest.raises(Refusal) as caught:
        register_broker(at(cluster), asked, 4)
    return caught.value.code


def test_the_broker_epoch_is_the_offset_of_the_first_record() -> None:
    cluster = Cluster()
    next_offset = cluster.ctx.next_offset
    assert register(cluster, request()) == next_offset
    broker = cluster.image.brokers[1]
    assert (broker.epoch, broker.fenced, broker.rack) == (next_offset, True, "r")
    assert cluster.image.registration_offsets[1] == next_offset


def test_broker_epochs_only_grow_from_incarnation_to_incarnation() -> None:
    cluster = Cluster()
    epochs = [register(cluster, request(incarnation=number)) for number in range(1, 6)]
    assert epochs == sorted(set(epochs))


def test_the_same_incarnation_keeps_its_epoch_and_its_state() -> None:
    cluster = Cluster()
    epoch = register(cluster, request())
    cluster.change_broker(1, fenced=-1)
    assert register(cluster, request(rack="other")) == epoch
    broker = cluster.image.brokers[1]
    assert (broker.rack, broker.fenced) == ("other", False)
    assert cluster.image.registration_offsets[1] > epoch


def test_another_incarnation_waits_for_the_end_of_the_session() -> None:
    cluster = Cluster()
    epoch = register(cluster, request())
    cluster.heartbeats.heard(1, epoch, 1_000)
    assert refusal(cluster, request(incarnation=2)) == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    with pytest.raises(Refusal):
        register(cluster, request(incarnation=2), now_ms=10_000)
    assert register(cluster, request(incarnation=2), now_ms=10_001) > epoch


def test_another_incarnation_need_not_wait_where_no_heartbeat_ever_came() -> None:
    cluster = Cluster()
    epoch = register(cluster, request())
    assert register(cluster, request(incarnation=2)) > epoch


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ({"log_dirs": ()}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (directory(1), directory(1))}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (bytes(15) + b"\x63",)}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (directory(2),)}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.INVALID_REGISTRATION),
        ({"features": [Feature("metadata.version", 7, 29)]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": [Feature("metadata.version", 7, 30)]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"listeners": [Listener("X", "h", 1, 4)]}, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else value.name,
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], code: ErrorCode) -> None:
    cluster = Cluster(elr=True).broker(2)
    assert refusal(cluster, request(**change)) == code


def test_directories_may_be_missing_before_metadata_version_3_7_iv2__kip858() -> None:
    cluster = Cluster(metadata_version=16)
    register(cluster, request(log_dirs=()))
    assert cluster.image.brokers[1].directories == ()


def test_a_registration_takes_the_broker_out_of_the_isrs_of_its_last_life() -> None:
    cluster = Cluster().brokers(1, 2)
    topic = cluster.topic("t", (1, 2))
    decision = register_broker(at(cluster), request(incarnation=9), 4)
    kinds = [type(record.message) for record in decision.records]
    assert kinds == [PartitionChangeRecord, RegisterBrokerRecord]
    cluster.apply(decision.records)
    assert topic.partitions[0].isr == (2,)
    assert topic.partitions[0].leader == 2


@pytest.mark.parametrize(("previous_epoch", "elr"), [(-1, ()), (101, (1,))], ids=["unclean", "clean"])
def test_only_a_clean_shutdown_leaves_a_broker_eligible__kip966(
    previous_epoch: int, elr: tuple[int, ...]
) -> None:
    cluster = Cluster(elr=True).brokers(1, 2)
    cluster.config("min.insync.replicas", "2", topic="t")
    topic = cluster.topic("t", (1, 2))
    register(cluster, request(incarnation=9, previous_broker_epoch=previous_epoch))
    assert topic.partitions[0].isr == (2,)
    assert topic.partitions[0].elr == elr


def test_the_record_is_of_the_version_that_metadata_version_allows() -> None:
    for level, version in ((7, 1), (8, 2), (17, 3), (30, 4)):
        decision = register_broker(at(Cluster(metadata_version=level)), request(), 4)
        assert decision.records[-1].version == version


def test_an_unregistered_broker_is_forgotten_and_its_partitions_moved() -> None:
    cluster = Cluster().brokers(1, 2)
    topic = cluster.topic("t", (1, 2))
    decision = unregister_broker(cluster.ctx, UnregisterBrokerRequest(1))
    assert type(decision.records[-1].message) is UnregisterBrokerRecord
    cluster.apply(decision.records)
    assert list(cluster.image.brokers) == [2]
    assert topic.partitions[0].leader == 2
    with pytest.raises(Refusal, match="BROKER_ID_NOT_REGISTERED"):
        unregister_broker(cluster.ctx, UnregisterBrokerRequest(1))


def test_requests_with_another_broker_epoch_are_stale() -> None:
    cluster = Cluster().broker(1)
    assert check_broker_epoch(cluster.ctx, 1, 101).id == 1
    for broker_id, epoch in ((1, 100), (1, 102), (2, 101)):
        with pytest.raises(Refusal, match="STALE_BROKER_EPOCH"):
            check_broker_epoch(cluster.ctx, broker_id, epoch)
