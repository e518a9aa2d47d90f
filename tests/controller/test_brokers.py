"""Registration and unregistration of brokers, one rule per test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kraftd.controller.brokers.registration import check_broker_epoch, register_broker, unregister_broker
from kraftd.controller.brokers.transitions import handle_broker_fenced
from kraftd.controller.context import Context
from kraftd.ground.refusal import Refusal
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftd.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftd.metadata.features import supported_features
from kraftd.metadata.image import Image
from kraftd.metadata.state import NO_LEADER
from kraftd.types import uuid_text
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import Cluster, directory
from tests.controller.test_broker_states import beat


def request(broker_id: int = 1, *, incarnation: int = 1, **more: Any) -> BrokerRegistrationRequest:
    """A registration as Apache Kafka's broker sends it."""
    registration = BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id="kraftd-tests-0123456789",
        incarnation_id=bytes(15) + bytes((incarnation,)),
        listeners=[Listener("PLAINTEXT", "host", 9092, 0)],
        features=[Feature(name, low, high) for name, (low, high) in supported_features().items()],
        rack="r",
        log_dirs=(directory(broker_id),),
    )
    for name, value in more.items():
        setattr(registration, name, value)
    return registration


def at(cluster: Cluster, now_ms: int = 1_000) -> Context:
    return replace(cluster.ctx, now_ms=now_ms, kraft_version=1)


def register(
    cluster: Cluster, registration: BrokerRegistrationRequest, version: int = 4, now_ms: int = 1_000
) -> int:
    """Apply a registration's record; return its broker epoch."""
    decision = register_broker(at(cluster, now_ms), registration, version)
    cluster.apply(decision.records)
    assert decision.after is not None
    decision.after(cluster.image.offset + 1)
    return decision.answer.broker_epoch


def refusal(cluster: Cluster, registration: BrokerRegistrationRequest) -> ErrorCode:
    return refused(cluster, registration)[0]


def refused(cluster: Cluster, registration: BrokerRegistrationRequest) -> tuple[ErrorCode, str | None]:
    with pytest.raises(Refusal) as caught:
        register_broker(at(cluster), registration, 4)
    return caught.value.code, caught.value.message


def test_the_broker_epoch_is_the_offset_of_the_first_record() -> None:
    cluster = Cluster()
    next_offset = cluster.ctx.next_offset
    assert register(cluster, request()) == next_offset
    broker = cluster.image.brokers[1]
    assert (broker.epoch, broker.fenced, broker.rack) == (next_offset, True, "r")
    assert cluster.image.registration_offsets[1] == next_offset


def test_broker_epochs_increase_with_every_incarnation() -> None:
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


def test_a_new_incarnation_waits_for_the_end_of_the_old_session() -> None:
    cluster = Cluster()
    epoch = register(cluster, request())
    cluster.heartbeats.renew(1, epoch, 1_000)
    assert refused(cluster, request(incarnation=2)) == (
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        "Broker 1 is registered and alive with another incarnation; "
        "after a restart, its old session ends by itself.",
    )
    with pytest.raises(Refusal):
        register(cluster, request(incarnation=2), now_ms=10_000)
    assert register(cluster, request(incarnation=2), now_ms=10_001) > epoch


def test_a_controlled_shutdown_does_not_end_the_session_as_in_kafka() -> None:
    """Kafka's controller knows a session by its last heartbeat alone, be the broker fenced or not."""
    cluster = Cluster()
    register(cluster, request())
    assert beat(cluster, 1, now_ms=2_000, want_shut_down=True).should_shut_down
    assert cluster.image.brokers[1].fenced
    with pytest.raises(Refusal, match="alive with another incarnation"):
        register(cluster, request(incarnation=2), now_ms=11_000)
    register(cluster, request(incarnation=2), now_ms=11_001)


def test_a_new_incarnation_does_not_wait_if_no_heartbeat_ever_came() -> None:
    cluster = Cluster()
    epoch = register(cluster, request())
    assert register(cluster, request(incarnation=2)) > epoch


RESERVED = bytes(15) + b"\x63"
INVALID, UNSUPPORTED = ErrorCode.INVALID_REGISTRATION, ErrorCode.UNSUPPORTED_VERSION
ELR_TEXT = "eligible.leader.replicas.version is finalized at 1; the broker supports {} to {}."
SUPPORTED = [Feature("metadata.version", 7, 30)]


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        (
            {"cluster_id": "another"},
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            "Broker 1 is of cluster another, not kraftd-tests-0123456789.",
        ),
        (
            {"is_migrating_zk_broker": True},
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "Brokers of a ZooKeeper cluster cannot register.",
        ),
        ({"log_dirs": ()}, INVALID, "The registration names no log directory."),
        (
            {"log_dirs": (directory(1), directory(1))},
            INVALID,
            "The registration names a log directory twice.",
        ),
        ({"log_dirs": (RESERVED,)}, INVALID, f"Directory id {uuid_text(RESERVED)} is a reserved one."),
        (
            {"log_dirs": (directory(2),)},
            INVALID,
            f"Directory {uuid_text(directory(2))} belongs to broker 2 already.",
        ),
        ({"features": []}, INVALID, "The registration has no range for metadata.version."),
        (
            {"features": [Feature("metadata.version", 7, 29)]},
            UNSUPPORTED,
            "metadata.version is finalized at 30; the broker supports 7 to 29.",
        ),
        ({"features": SUPPORTED}, UNSUPPORTED, ELR_TEXT.format(0, 0)),
        (
            {"features": [*SUPPORTED, Feature("eligible.leader.replicas.version", 2, 3)]},
            UNSUPPORTED,
            ELR_TEXT.format(2, 3),
        ),
        (
            {"features": [*SUPPORTED, Feature("a.new.feature", 1, 2)]},
            UNSUPPORTED,
            "a.new.feature is finalized at 0; the broker supports 1 to 2.",
        ),
        ({"listeners": [Listener("X", "h", 1, 4)]}, ErrorCode.UNKNOWN_SERVER_ERROR, None),
    ],
)
def test_an_incompatible_registration_is_refused(
    change: dict[str, Any], code: ErrorCode, text: str | None
) -> None:
    cluster = Cluster(elr=True).broker(2)
    refused_code, message = refused(cluster, request(**change))
    assert refused_code == code
    assert text is None or message == text


@pytest.mark.parametrize(
    ("directory_id", "is_reserved"),
    [
        (bytes(16), True),
        (bytes(15) + b"\x63", True),
        (bytes(15) + b"\x64", False),
        (bytes(8) + b"\x80" + bytes(7), True),  # as signed numbers the low halves are negative
        (bytes(8) + b"\x80" + bytes(6) + b"\x70", True),
        (bytes(8) + b"\x01" + bytes(7), False),
        (b"\x01" + bytes(15), False),
        (bytes(7) + b"\x01" + bytes(8), False),
    ],
)
def test_directory_ids_below_a_hundred_are_reserved__kip858(directory_id: bytes, is_reserved: bool) -> None:
    registration = request(log_dirs=(directory_id,))
    if is_reserved:
        assert refusal(Cluster(), registration) == INVALID
    else:
        register(Cluster(), registration)


def test_directories_may_be_missing_before_metadata_version_3_7_iv2__kip858() -> None:
    cluster = Cluster(metadata_version=16)
    register(cluster, request(log_dirs=()))
    assert cluster.image.brokers[1].directories == ()


def test_a_registration_removes_the_broker_from_its_former_isrs() -> None:
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


def test_the_records_version_is_the_one_of_metadata_version() -> None:
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
    with pytest.raises(Refusal, match="BROKER_ID_NOT_REGISTERED: Broker 1 is not registered"):
        unregister_broker(cluster.ctx, UnregisterBrokerRequest(1))


def test_requests_with_another_broker_epoch_are_stale() -> None:
    cluster = Cluster().broker(1)
    assert check_broker_epoch(cluster.ctx, 1, 101).id == 1
    for broker_id, epoch, text in (
        (1, 100, "Broker 1 is registered with broker epoch 101, not 100."),
        (1, 102, "Broker 1 is registered with broker epoch 101, not 102."),
        (2, 101, "Broker 2 is not registered."),
    ):
        with pytest.raises(Refusal) as caught:
            check_broker_epoch(cluster.ctx, broker_id, epoch)
        assert str(caught.value) == f"STALE_BROKER_EPOCH: {text}"


def test_without_a_finalized_metadata_version_the_lowest_counts__kip778() -> None:
    cluster = Cluster()
    cluster.image = Image()
    kraft = Feature("kraft.version", 0, 1)
    registration = request(log_dirs=(), features=[Feature("metadata.version", 8, 30), kraft])
    text = "metadata.version is finalized at 7; the broker supports 8 to 30."
    assert refused(cluster, registration) == (UNSUPPORTED, text)
    register(cluster, request(log_dirs=(), features=[Feature("metadata.version", 7, 30), kraft]))


@pytest.mark.parametrize("fenced", [False, True])
def test_a_new_incarnation_is_removed_from_each_of_its_former_isrs(fenced: bool) -> None:
    cluster = Cluster().broker(1).broker(2)
    led, alone = cluster.topic("led", (1, 2)), cluster.topic("alone", (1,))
    if fenced:
        cluster.apply(handle_broker_fenced(cluster.ctx, 1))
    register(cluster, request(incarnation=9))
    assert (led.partitions[0].leader, led.partitions[0].isr) == (2, (2,))
    assert (alone.partitions[0].leader, alone.partitions[0].isr) == (NO_LEADER, (1,))
