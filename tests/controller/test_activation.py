"""The first records of a leader: of a new cluster, and after a leader that left a transaction open."""

from __future__ import annotations

import pytest

from kraftd.controller.activation import ActivationError, activate, write_no_op
from kraftd.controller.brokers.heartbeats import BrokerHeartbeats
from kraftd.controller.context import Context, ControllerSettings
from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.end_transaction_record import EndTransactionRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.features import bootstrap_records, default_bootstrap_records, format_levels
from kraftd.metadata.image import Image
from kraftd.wire.record_frame import VersionedRecord, decode_record, encode_record
from tests.controller.cluster import SeededRandomness


def context(image: Image, **static_config: str) -> Context:
    settings = ControllerSettings(cluster_id="c", node_id=1, static_config=static_config)
    return Context(
        image, 0, settings, BrokerHeartbeats(9_000), SeededRandomness(), next_offset=image.offset + 1
    )


def activated_kinds(image: Image, bootstrap: list[VersionedRecord]) -> list[str]:
    """Apply the records of a new leader; return their kinds."""
    decision = activate(context(image), bootstrap)
    for record in decision.records:
        image.apply(decode_record(encode_record(record)).message, image.offset + 1, 1)
    return [type(record.message).__name__.removesuffix("Record") for record in decision.records]


def bootstrap(release: int = 30) -> list[VersionedRecord]:
    return bootstrap_records(format_levels({}, release, dynamic_quorum=True))


def test_an_empty_log_begins_with_the_bootstrap_records_in_a_transaction__kip868() -> None:
    image = Image()
    features = ["FeatureLevel"] * 6
    assert activated_kinds(image, bootstrap()) == ["BeginTransaction", *features, "Config", "EndTransaction"]
    assert image.features == {
        "metadata.version": 30,
        "group.version": 1,
        "transaction.version": 2,
        "share.version": 1,
        "streams.version": 1,
        "eligible.leader.replicas.version": 1,
    }
    assert image.config(4, "") == {"min.insync.replicas": "1"}
    assert not image.in_transaction


def test_bootstrap_records_apply_once() -> None:
    image = Image()
    activated_kinds(image, bootstrap())
    assert activated_kinds(image, bootstrap()) == []


def test_min_insync_replicas_of_a_new_cluster_comes_from_the_file__kip966() -> None:
    decision = activate(context(Image(), **{"min.insync.replicas": "2"}), bootstrap())
    configs = [r.message for r in decision.records if isinstance(r.message, ConfigRecord)]
    assert [(c.resource_type, c.resource_name, c.value) for c in configs] == [(4, "", "2")]


def test_at_a_release_without_transactions_bootstrap_is_one_batch() -> None:
    decision = activate(context(Image()), bootstrap(12))
    assert [type(record.message) for record in decision.records] == [FeatureLevelRecord]
    assert decision.atomic


def test_a_directory_without_bootstrap_records_gets_the_latest_metadata_version() -> None:
    image = Image()
    kinds = activated_kinds(image, default_bootstrap_records())
    assert kinds == ["BeginTransaction", "FeatureLevel", "EndTransaction"]
    assert image.features == {"metadata.version": 30}


@pytest.mark.parametrize("written", [1, 2, 4])
def test_an_unfinished_bootstrap_is_aborted_and_written_again(written: int) -> None:
    image = Image()
    for record in activate(context(image), bootstrap()).records[:written]:
        image.apply(record.message, image.offset + 1, 1)
    kinds = activated_kinds(image, bootstrap())
    assert kinds[:2] == ["AbortTransaction", "BeginTransaction"] and kinds[-1] == "EndTransaction"
    once = Image()
    activated_kinds(once, bootstrap())
    assert image == once


def test_any_other_open_transaction_is_only_aborted() -> None:
    image = Image()
    activated_kinds(image, bootstrap())
    image.apply(BeginTransactionRecord("t"), image.offset + 1, 1)
    image.apply(TopicRecord("t", bytes(16)), image.offset + 1, 1)
    assert activated_kinds(image, bootstrap()) == ["AbortTransaction"]
    assert image.topic_count == 0


def test_a_node_whose_bootstrap_names_no_metadata_version_cannot_lead() -> None:
    with pytest.raises(ActivationError) as caught:
        activate(context(Image()), [])
    assert str(caught.value) == "neither the log nor the bootstrap records name a metadata.version"


def test_a_transaction_in_a_log_of_a_release_without_transactions_is_an_error() -> None:
    image = Image()
    image.apply(FeatureLevelRecord("metadata.version", 12), 0, 1)
    image.apply(BeginTransactionRecord("t"), 1, 1)
    with pytest.raises(ActivationError) as caught:
        activate(context(image), [])
    assert str(caught.value) == (
        "a metadata transaction is open at offset 1, which metadata.version 12 does not know"
    )


def test_transactions_of_a_leader_have_kafkas_names() -> None:
    image = Image()
    image.apply(BeginTransactionRecord("cut short"), 0, 1)
    decision = activate(context(image), bootstrap())
    first, second, *_, last = decision.records
    assert first == VersionedRecord(AbortTransactionRecord("Controller failover"), 0)
    assert second == VersionedRecord(BeginTransactionRecord("Bootstrap records"), 0)
    assert last == VersionedRecord(EndTransactionRecord(), 0)
    assert decision.atomic is False


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_leader_gives_every_broker_a_new_session_once_its_records_are_written(is_empty: bool) -> None:
    image = Image()
    if not is_empty:
        activated_kinds(image, bootstrap())
        activated_kinds(image, bootstrap())
    ctx = context(image)
    ctx.heartbeats.renew(1, 7, 0)
    decision = activate(ctx, bootstrap())
    assert ctx.heartbeats.has_valid_session(1, 7, 0)
    assert decision.after is not None
    decision.after(image.offset + 1)
    assert not ctx.heartbeats.has_valid_session(1, 7, 0)  # no broker of the image


def test_the_idle_record_changes_nothing() -> None:
    image = Image()
    activated_kinds(image, bootstrap())
    [record] = write_no_op(context(image)).records
    assert record == VersionedRecord(NoOpRecord(), 0)
    image.apply(record.message, image.offset + 1, 1)
    once = Image()
    activated_kinds(once, bootstrap())
    assert image == once
