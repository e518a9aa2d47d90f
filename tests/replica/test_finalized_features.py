"""Clients see only committed feature levels, with the offset of their last change."""

from __future__ import annotations

import pytest

from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.metadata.image import Image
from kraftd.replica.finalized_features import FinalizedFeatures


def apply(image: Image, **levels: int) -> None:
    for name, level in levels.items():
        image.apply(FeatureLevelRecord(name.replace("_", "."), level), image.offset + 1, 1)


@pytest.fixture
def image() -> Image:
    """Two levels at the offsets 0 and 1."""
    image = Image()
    apply(image, metadata_version=30, group_version=1)
    return image


def test_before_the_first_commit_the_lowest_metadata_version_is_in_force(image: Image) -> None:
    finalized = FinalizedFeatures()
    assert finalized.kraft_version == 0
    assert (finalized.metadata_version, finalized.epoch, finalized.levels) == (7, -1, {"metadata.version": 7})
    assert not finalized.committed(Image(), 5)
    finalized.applied(image)
    assert not finalized.committed(image, 1)
    assert finalized.epoch == -1


def test_levels_are_visible_once_committed_with_the_last_ones_offset(image: Image) -> None:
    finalized = FinalizedFeatures()
    finalized.applied(image)
    image.apply(NoOpRecord(), 2, 1)
    finalized.applied(image)
    assert finalized.committed(image, 2)
    assert (finalized.epoch, finalized.levels) == (1, {"metadata.version": 30, "group.version": 1})
    assert not finalized.committed(image, 3)
    assert finalized.epoch == 1
    apply(image, group_version=0)
    assert not finalized.committed(image, 3)
    assert finalized.metadata_version == 30 and finalized.levels["group.version"] == 1
    assert finalized.committed(image, 4)
    assert (finalized.epoch, finalized.levels.get("group.version", 0)) == (3, 0)


def test_the_first_committed_levels_are_a_change_even_if_equal_to_the_default() -> None:
    image = Image()
    apply(image, metadata_version=7)
    finalized = FinalizedFeatures()
    assert finalized.committed(image, 1)
    assert finalized.epoch == 0
    image.apply(NoOpRecord(), 1, 1)
    assert not finalized.committed(image, 2)


def test_uncommitted_levels_of_a_lost_leadership_are_dropped(image: Image) -> None:
    finalized = FinalizedFeatures()
    finalized.committed(image, 2)
    image.mark()
    apply(image, group_version=0)
    finalized.applied(image)
    image.undo_to(1)
    finalized.forget_uncommitted()
    assert not finalized.committed(image, 3)
    assert (finalized.epoch, finalized.levels["group.version"]) == (1, 1)
