"""The levels of a new cluster, and the first records that follow from them."""

from __future__ import annotations

import pytest

from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.register_controller_record import RegisterControllerRecord
from kraftd.metadata.features import bootstrap_records, format_levels, supported_features
from kraftd.metadata.metadata_version import parse_version, record_version, version_name

NEWEST = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "kraft.version": 1,
    "metadata.version": 30,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


def test_supported_ranges_are_those_of_a_4_3_controller_in_its_order() -> None:
    assert list(supported_features().items()) == [
        ("group.version", (0, 1)),
        ("kraft.version", (0, 1)),
        ("metadata.version", (7, 30)),
        ("share.version", (0, 1)),
        ("streams.version", (0, 1)),
        ("transaction.version", (0, 2)),
        ("eligible.leader.replicas.version", (0, 1)),
    ]


def test_a_new_cluster_starts_with_the_newest_stable_levels() -> None:
    assert format_levels({}, dynamic_quorum=True) == NEWEST
    assert format_levels({}, dynamic_quorum=False) == {**NEWEST, "kraft.version": 0}


def test_a_release_has_its_own_defaults() -> None:
    levels = format_levels({}, parse_version("3.9"), dynamic_quorum=True)
    assert {name: level for name, level in levels.items() if level} == {
        "metadata.version": 21,
        "kraft.version": 1,
    }


def test_a_requested_level_wins_over_the_default() -> None:
    assert format_levels({"group.version": 0}, dynamic_quorum=True) == {**NEWEST, "group.version": 0}


@pytest.mark.parametrize(
    ("requested", "release", "dynamic", "text"),
    [
        ({"metadata.version": 30}, 30, True, "give one of them"),
        ({"metadata.version": 99}, None, True, "no level 99"),
        ({}, 31, True, "not stable"),
        ({"no.version": 1}, None, True, "no feature no.version"),
        ({"group.version": 2}, None, True, "no level 2"),
        ({"eligible.leader.replicas.version": 1}, 22, True, "needs metadata.version 23"),
        ({"kraft.version": 0}, None, True, "kraft.version cannot be 0"),
        ({"kraft.version": 1}, None, False, "static quorum"),
    ],
)
def test_incompatible_levels_are_refused(
    requested: dict[str, int], release: int | None, dynamic: bool, text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        format_levels(requested, release, dynamic_quorum=dynamic)


def test_bootstrap_records_begin_with_metadata_version_and_omit_level_0() -> None:
    levels = {"a": 0, "group.version": 1, "kraft.version": 1, "metadata.version": 25, "share.version": 1}
    messages = [record.message for record in bootstrap_records(levels)]
    assert messages == [
        FeatureLevelRecord("metadata.version", 25),
        FeatureLevelRecord("group.version", 1),
        FeatureLevelRecord("share.version", 1),
    ]


@pytest.mark.parametrize(
    ("text", "level"), [("4.3", 30), ("4.3.1", 30), ("3.7-IV2", 17), ("3.7", 19), ("3.3", 7), ("4.0-IV0", 22)]
)
def test_the_name_of_a_release_means_its_last_level(text: str, level: int) -> None:
    assert parse_version(text) == level


@pytest.mark.parametrize("text", ["4.4", "3.2", "", "4", "4.3-IV9"])
def test_an_unknown_release_is_refused_with_a_list_of_the_known_ones(text: str) -> None:
    with pytest.raises(ValueError, match=r"4\.3-IV0"):
        parse_version(text)


def test_no_record_is_written_above_the_metadata_version() -> None:
    assert [record_version(PartitionRecord, level) for level in (16, 17, 22, 23, 30)] == [0, 1, 1, 2, 2]
    assert record_version(RegisterControllerRecord, 15) == 0
    with pytest.raises(ValueError, match=r"RegisterControllerRecord needs metadata\.version 15"):
        record_version(RegisterControllerRecord, 14)
    assert version_name(14) == "3.6-IV2"
