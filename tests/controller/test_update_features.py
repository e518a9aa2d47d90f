"""UpdateFeatures, one rule per test; codes and records against Kafka's are in test_broker_oracle."""

from __future__ import annotations

from dataclasses import replace as replace_context

import pytest
from msgspec.structs import replace

from kraftd.controller.features.controllers import register_controller
from kraftd.controller.features.downgrade import _name
from kraftd.controller.features.downgrade import in_the_way as in_force
from kraftd.controller.features.update import FeatureUpdate, UpgradeType, refused, update_features
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.controller_registration_request import ControllerRegistrationRequest, Feature
from kraftd.messages.delegation_token_record import DelegationTokenRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
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


def obstacles(cluster: Cluster, level: int) -> list[str]:
    """The obstacles that a refused downgrade of metadata.version names."""
    answer = update(cluster, ("metadata.version", level, SAFE), validate_only=True).answer
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    text = str(answer.error_message).partition("what is in force: ")[2]
    return text.removesuffix(".").split("; ")


def levels(decision: FeatureUpdate) -> dict[str, int]:
    records = [record.message for record in decision.records]
    return {r.name: r.feature_level for r in records if isinstance(r, FeatureLevelRecord)}


def refusal_reason(cluster: Cluster, name: str, level: int, kind: int = UP) -> str | None:
    """The reason why a feature cannot have a level; None if it can."""
    answer = update(cluster, (name, level, kind), validate_only=True).answer
    if answer.error_code == 0:
        return None
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    before, _, reason = str(answer.error_message).partition(f"{name} cannot become {level}: ")
    assert before == "No feature was updated, because of one: "
    return reason.removesuffix(".")


def test_levels_go_up_together() -> None:
    decision = update(Cluster(metadata_version=21), ("metadata.version", 30, UP), ("group.version", 1, UP))
    assert levels(decision) == {"metadata.version": 30, "group.version": 1}
    assert (decision.answer.error_code, decision.answer.error_message) == (0, None)
    assert decision.atomic


def test_the_last_level_of_a_feature_that_is_named_twice_counts() -> None:
    decision = update(
        Cluster(metadata_version=30), ("group.version", 9, UP), ("group.version", 1, UP), version=1
    )
    assert levels(decision) == {"group.version": 1}
    assert [(one.feature, one.error_code) for one in decision.answer.results] == [("group.version", 0)] * 2


def test_one_feature_that_cannot_be_updated_refuses_all() -> None:
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
def test_only_valid_changes_of_metadata_version_are_accepted(level: int, kind: int, allowed: bool) -> None:
    decision = update(Cluster(), ("metadata.version", level, kind))
    assert (decision.answer.error_code == 0) is allowed


def test_a_downgrade_across_unchanged_records_is_safe() -> None:
    assert levels(update(Cluster(metadata_version=29), ("metadata.version", 24, SAFE))) == {
        "metadata.version": 24
    }


def test_a_downgrade_names_each_record_that_needs_the_level() -> None:
    cluster = Cluster(elr=True)
    cluster.broker(1, cordoned=(directory(1),), supports=supported_features())
    cluster.topic("orders", (1,))
    assert obstacles(cluster, 29) == ["broker 1 has cordoned directories (empty its cordoned.log.dirs)"]
    assert obstacles(cluster, 22)[0] == f"feature {ELR} is 1 (downgrade it to 0 first)"
    topic_id = cluster.image.topic_names()["orders"]
    change = PartitionChangeRecord(0, topic_id, eligible_leader_replicas=(1,))
    cluster.apply([VersionedRecord(change, 2)])
    assert "partition orders-0 has eligible leader replicas" in obstacles(cluster, 22)
    texts = obstacles(cluster, 16)
    assert "broker 1 has reported its log directories" in texts
    assert "topic orders has replicas that are assigned to directories" in texts


def test_records_that_need_the_level_are_counted_above_a_limit() -> None:
    cluster = Cluster(metadata_version=30)
    for broker_id in range(1, 14):
        cordoned = (directory(broker_id),)
        cluster.broker(broker_id, cordoned=cordoned, supports=supported_features())
    texts = obstacles(cluster, 29)
    assert len(texts) == 11
    assert texts[-1] == "and 3 more"


def test_a_downgrade_rewrites_registrations_without_unsupported_fields() -> None:
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
    assert refusal_reason(cluster, "metadata.version", 30) == (
        "controller 7 supports 7 to 29 only (if it is gone for good: kraftd quorum forget-controller)"
    )
    assert refusal_reason(cluster, "group.version", 1) == (
        "controller 7 does not support it (if it is gone for good: kraftd quorum forget-controller)"
    )


def test_a_level_is_refused_while_a_voter_has_not_registered() -> None:
    cluster = Cluster(metadata_version=29, static_voter_ids=(3000, 3001))
    assert "3001" in str(update(cluster, ("metadata.version", 30, UP)).answer.error_message)


def test_elr_needs_its_metadata_version_and_sets_a_cluster_default__kip966() -> None:
    assert update(Cluster(metadata_version=22), (ELR, 1, UP)).answer.error_code == 95
    decision = update(Cluster(metadata_version=22), (ELR, 1, UP), ("metadata.version", 23, UP))
    names = [getattr(record.message, "name", "") for record in decision.records]
    assert names == ["min.insync.replicas", ELR, "metadata.version"]


def test_kraft_version_is_passed_to_the_quorum_with_a_record__kip853() -> None:
    decision = update(Cluster(), ("kraft.version", 1, UP))
    assert decision.kraft_version == 1
    assert [type(record.message) for record in decision.records] == [NoOpRecord]
    assert update(Cluster(), ("group.version", 1, UP)).kraft_version is None


def test_a_refusal_of_the_quorum_is_answered_like_any_other() -> None:
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
    assert str(decision.answer.error_message).endswith(" become 0: it cannot be downgraded.")
    assert (decision.records, decision.kraft_version) == ([], None)


NOT_ASKED = "it is {}, and a downgrade must be asked for as a safe or unsafe one"


@pytest.mark.parametrize(
    ("name", "level", "kind", "reason"),
    [
        ("metadata.version", 30, 9, "there is no upgrade type 9"),
        ("group.version", -1, UP, "a level is at least 0"),
        ("group.version", 0, UP, None),
        ("group.version", 2, UP, "controller 3000 supports 0 to 1 only"),
        ("no.such.feature", 1, UP, "controller 3000 does not support it"),
        ("no.such.feature", 0, UP, "there is no feature no.such.feature"),
        ("metadata.version", 29, UP, NOT_ASKED.format(30)),
        ("transaction.version", 0, UP, NOT_ASKED.format(2)),
        ("transaction.version", 0, SAFE, None),
        ("group.version", 1, SAFE, "it is 0, and a downgrade cannot go up"),
        ("kraft.version", 1, SAFE, "it is 0, and a downgrade cannot go up"),
        ("kraft.version", 0, SAFE, None),
        ("kraft.version", 0, UP, None),
        ("metadata.version", 30, UP, None),
    ],
)
def test_a_refused_level_has_the_reason(name: str, level: int, kind: int, reason: str | None) -> None:
    cluster = Cluster()
    cluster.apply([VersionedRecord(FeatureLevelRecord("transaction.version", 2), 0)])
    assert refusal_reason(cluster, name, level, kind) == reason


def test_a_level_requires_the_levels_that_it_depends_on() -> None:
    assert "metadata.version" in str(refusal_reason(Cluster(metadata_version=22), ELR, 1))
    assert refusal_reason(Cluster(metadata_version=23), ELR, 1) is None


def test_a_broker_that_does_not_know_a_feature_is_named_without_a_remedy() -> None:
    cluster = Cluster(metadata_version=29).broker(1, supports={"metadata.version": (7, 29)})
    assert refusal_reason(cluster, "metadata.version", 30) == "broker 1 supports 7 to 29 only"
    assert refusal_reason(cluster, "group.version", 1) == "broker 1 does not support it"


def test_obstacles_to_a_downgrade_are_named_in_a_stable_order() -> None:
    cluster = Cluster()
    for controller_id in (8, 7):
        request = ControllerRegistrationRequest(controller_id, bytes(16))
        cluster.apply(register_controller(cluster.ctx, request).records)
    for name in ("t2", "t1"):
        token = DelegationTokenRecord("User:a", "User:a", (), 1, 1 << 60, 1 << 60, name)
        cluster.apply([VersionedRecord(token, 0)])
    for user, mechanism in (("bob", 1), ("amy", 1), ("amy", 2)):
        scram = UserScramCredentialRecord(user, mechanism, b"s", b"k", b"k", 4096)
        cluster.apply([VersionedRecord(scram, 0)])
    cluster.broker(1).topic("orders", (1,), (1,))
    cluster.topic("bills", (1,))
    proposed = {ELR: 1}
    assert sorted(in_force(cluster.image, 7, proposed)) == sorted(
        [
            f"feature {ELR} is 1 (downgrade it to 0 first)",
            "broker 1 has reported its log directories",
            "controller 7 is registered",
            "controller 8 is registered",
            "topic orders has replicas that are assigned to directories",
            "topic bills has replicas that are assigned to directories",
            "delegation token t1 exists (let it expire)",
            "delegation token t2 exists (let it expire)",
            "user amy has SCRAM credentials (delete them)",
            "user bob has SCRAM credentials (delete them)",
        ]
    )
    texts = list(in_force(cluster.image, 7, proposed))
    for first, second in (("controller 7", "controller 8"), ("token t1", "token t2"), ("amy", "bob")):
        at = [next(i for i, text in enumerate(texts) if part in text) for part in (first, second)]
        assert at[0] < at[1]
    assert list(in_force(cluster.image, 23, proposed)) == []
    assert len(list(in_force(cluster.image, 22, proposed))) == 1


def test_an_open_transaction_prevents_a_downgrade_below_transactions__kip868() -> None:
    image = Cluster().image
    assert list(in_force(image, 7, {})) == []
    image.apply(BeginTransactionRecord("t"), image.offset + 1, 1)
    assert list(in_force(image, 12, {})) == ["a metadata transaction is open (wait for its end)"]
    assert list(in_force(image, 13, {})) == []


def test_at_most_ten_obstacles_are_named() -> None:
    cluster = Cluster()
    for broker_id in range(1, 11):
        cluster.broker(broker_id, cordoned=(directory(broker_id),), supports=supported_features())
    texts = obstacles(cluster, 29)
    assert len(texts) == 10
    assert not any("more" in text for text in texts)
    assert refusal_reason(cluster, "metadata.version", 29, SAFE) == (
        f"4.2-IV1 cannot carry what is in force: {'; '.join(texts)}"
    )


def test_a_partition_of_a_deleted_topic_is_named_by_topic_id() -> None:
    cluster = Cluster().broker(1)
    topic = cluster.topic("orders", (1,))
    assert _name(cluster.image, topic.id) == "orders"
    assert _name(cluster.image, b"\7" * 16) == "07" * 16


def test_validate_only_is_passed_to_the_quorum__kip853() -> None:
    for validate_only in (False, True):
        decision = update(Cluster(), ("kraft.version", 1, UP), validate_only=validate_only)
        assert (decision.kraft_version, decision.validate_only) == (1, validate_only)
    [record] = update(Cluster(), ("kraft.version", 1, UP)).records
    assert record == VersionedRecord(NoOpRecord(), 0)


def test_only_a_downgrade_of_metadata_version_rewrites_registrations() -> None:
    cluster = Cluster().broker(1, cordoned=(), supports=supported_features())
    assert [type(one.message) for one in update(cluster, ("group.version", 1, UP)).records] == [
        FeatureLevelRecord
    ]
    again = update(cluster, ("metadata.version", 30, SAFE))
    assert [type(one.message) for one in again.records] == [FeatureLevelRecord]


def test_disabling_elr_writes_no_cluster_config__kip966() -> None:
    decision = update(Cluster(elr=True), (ELR, 0, SAFE))
    assert [record.message for record in decision.records] == [FeatureLevelRecord(ELR, 0)]


def test_a_migrating_broker_prevents_a_downgrade_below_migration__kip866() -> None:
    cluster = Cluster()
    migrating = RegisterBrokerRecord(broker_id=1, broker_epoch=1, is_migrating_zk_broker=True)
    cluster.apply([VersionedRecord(migrating, 2)])
    assert list(in_force(cluster.image, 7, {})) == ["broker 1 migrates from ZooKeeper"]
    assert list(in_force(cluster.image, 8, {})) == []


def test_a_controller_for_unstable_features_supports_more_levels() -> None:
    assert refusal_reason(Cluster(), "metadata.version", 31) == "controller 3000 supports 7 to 30 only"
    assert refusal_reason(Cluster(unstable_feature_versions_enable=True), "metadata.version", 31) is None
