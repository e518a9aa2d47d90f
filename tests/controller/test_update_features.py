"""UpdateFeatures, one rule per test; codes and records against Kafka's are in test_broker_oracle."""

from __future__ import annotations

from dataclasses import replace as replace_context

import pytest
from msgspec.structs import replace

from kraftd.controller.features.controllers import register_controller
from kraftd.controller.features.update import FeatureUpdate, UpgradeType, refused, update_features
from kraftd.messages.controller_registration_request import ControllerRegistrationRequest, Feature
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftd.metadata.features import supported_features
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord
from tests.controller.cluster import ELR, Cluster, directory

UP, SAFE, UNSAFE = UpgradeType


def update(
    cluster: Cluster, *updates: tuple[str, int, int], version: int = 2, validate_only: bool = False
) -> FeatureUpdate:
    request = UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(name, level, False, kind) for name, level, kind in updates],
        validate_only=validate_only,
    )
    return update_features(cluster.ctx, request, version)


def in_the_way(cluster: Cluster, level: int) -> list[str]:
    """What a downgrade of metadata.version is refused with."""
    answer = update(cluster, ("metadata.version", level, SAFE), validate_only=True).answer
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    text = str(answer.error_message).partition("what is in force: ")[2]
    return text.removesuffix(".").split("; ")


def levels(decision: FeatureUpdate) -> dict[str, int]:
    records = [record.message for record in decision.records]
    return {r.name: r.feature_level for r in records if isinstance(r, FeatureLevelRecord)}


def test_levels_go_up_together() -> None:
    decision = update(Cluster(metadata_version=21), ("metadata.version", 30, UP), ("group.version", 1, UP))
    assert levels(decision) == {"metadata.version": 30, "group.version": 1}
    assert (decision.answer.error_code, decision.answer.error_message) == (0, None)
    assert decision.atomic


def test_of_a_feature_that_is_named_twice_the_last_level_counts_and_each_is_answered() -> None:
    decision = update(
        Cluster(metadata_version=30), ("group.version", 9, UP), ("group.version", 1, UP), version=1
    )
    assert levels(decision) == {"group.version": 1}
    assert [(one.feature, one.error_code) for one in decision.answer.results] == [("group.version", 0)] * 2


def test_one_that_cannot_be_updated_keeps_all_from_it() -> None:
    decision = update(Cluster(metadata_version=21), ("metadata.version", 30, UP), ("group.version", 2, UP))
    assert decision.records == []
    assert decision.answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "group.version" in str(decision.answer.error_message)


def test_validate_only_writes_nothing() -> None:
    decision = update(Cluster(metadata_version=21), ("metadata.version", 30, UP), validate_only=True)
    assert (decision.records, decision.answer.error_code) == ([], 0)


@pytest.mark.parametrize(
    ("level", "kind", "allowed"),
    [
        (29, UP, False),
        (29, SAFE, True),
        (29, UNSAFE, True),
        (31, UP, False),  # not stable yet
        (30, UP, True),
        (30, SAFE, True),
        (6, UNSAFE, False),
        (30, 9, False),
    ],
)
def test_metadata_version_30_may_become(level: int, kind: int, allowed: bool) -> None:
    decision = update(Cluster(), ("metadata.version", level, kind))
    assert (decision.answer.error_code == 0) is allowed


def test_a_downgrade_across_unchanged_records_is_safe() -> None:
    assert levels(update(Cluster(metadata_version=29), ("metadata.version", 24, SAFE))) == {
        "metadata.version": 24
    }


def test_a_downgrade_names_each_record_that_stands_in_the_way() -> None:
    cluster = Cluster(elr=True)
    cluster.broker(1, cordoned=(directory(1),), supports=supported_features())
    cluster.topic("orders", (1,))
    assert in_the_way(cluster, 29) == ["broker 1 has cordoned directories (empty its cordoned.log.dirs)"]
    assert in_the_way(cluster, 22)[0] == f"feature {ELR} is 1 (downgrade it to 0 first)"
    topic_id = cluster.image.topic_names()["orders"]
    change = PartitionChangeRecord(0, topic_id, eligible_leader_replicas=(1,))
    cluster.apply([VersionedRecord(change, 2)])
    assert "partition orders-0 has eligible leader replicas" in in_the_way(cluster, 22)
    told = in_the_way(cluster, 16)
    assert "broker 1 has told its log directories" in told
    assert "topic orders has replicas that are assigned to directories" in told


def test_so_many_records_in_the_way_are_counted() -> None:
    cluster = Cluster(metadata_version=30)
    for broker_id in range(1, 14):
        cordoned = (directory(broker_id),)
        cluster.broker(broker_id, cordoned=cordoned, supports=supported_features())
    told = in_the_way(cluster, 29)
    assert len(told) == 11
    assert told[-1] == "and 3 more"


def test_a_downgrade_writes_registrations_without_the_field_that_says_nothing() -> None:
    cluster = Cluster().broker(1, cordoned=(), supports=supported_features())
    decision = update(cluster, ("metadata.version", 29, SAFE))
    assert [(type(one.message), one.version) for one in decision.records] == [
        (RegisterBrokerRecord, 3),
        (FeatureLevelRecord, 0),
    ]
    before = cluster.image.brokers[1]
    cluster.apply(decision.records)
    assert cluster.image.brokers[1] == replace(before, cordoned_directories=None)
    assert list(cluster.image.records())  # a snapshot of that level can be written


def test_a_level_that_a_broker_does_not_support_is_refused() -> None:
    decision = update(Cluster(metadata_version=29).broker(1), ("metadata.version", 30, UP))
    assert "broker 1" in str(decision.answer.error_message)


def test_a_level_that_another_controller_does_not_support_is_refused() -> None:
    cluster = Cluster(metadata_version=29)
    request = ControllerRegistrationRequest(7, bytes(16), features=[Feature("metadata.version", 7, 29)])
    cluster.apply(register_controller(cluster.ctx, request).records)
    assert "controller 7" in str(update(cluster, ("metadata.version", 30, UP)).answer.error_message)


def test_a_voter_that_has_not_registered_may_not_support_it() -> None:
    cluster = Cluster(metadata_version=29, static_voter_ids=(3000, 3001))
    assert "3001" in str(update(cluster, ("metadata.version", 30, UP)).answer.error_message)


def test_elr_needs_its_metadata_version_and_makes_the_cluster_bound__kip966() -> None:
    assert update(Cluster(metadata_version=22), (ELR, 1, UP)).answer.error_code == 95
    decision = update(Cluster(metadata_version=22), (ELR, 1, UP), ("metadata.version", 23, UP))
    names = [getattr(record.message, "name", "") for record in decision.records]
    assert names == ["min.insync.replicas", ELR, "metadata.version"]


def test_kraft_version_is_handed_to_the_quorum_with_a_record_to_wait_for__kip853() -> None:
    decision = update(Cluster(), ("kraft.version", 1, UP))
    assert decision.kraft_version == 1
    assert [type(record.message) for record in decision.records] == [NoOpRecord]
    assert update(Cluster(), ("group.version", 1, UP)).kraft_version is None


def test_what_the_quorum_refuses_is_told_as_any_other_refusal() -> None:
    decision = refused("kraft.version cannot become 1: voter 2 does not support it.")
    assert decision.answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert decision.records == []


def test_versions_0_and_1_answer_for_each_feature() -> None:
    decision = update(Cluster(), ("group.version", 1, UP), version=1)
    assert [(r.feature, r.error_code, r.error_message) for r in decision.answer.results] == [
        ("group.version", 0, "NONE")
    ]
    assert update(Cluster(), ("group.version", 1, UP), version=2).answer.results == []


@pytest.mark.parametrize("kind", [SAFE, UNSAFE])
def test_kraft_version_never_goes_down__kip853(kind: int) -> None:
    ctx = replace_context(Cluster().ctx, kraft_version=1)
    request = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("kraft.version", 0, False, kind)])
    decision = update_features(ctx, request, 2)
    assert decision.answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "it cannot be downgraded" in str(decision.answer.error_message)
    assert (decision.records, decision.kraft_version) == ([], None)
