"""Controllers of older releases that are upgraded step by step: Kafka's answers and records at each level.

KRAFTD_DIFFERENTIAL_SEED chooses other releases and requests, KRAFTD_DIFFERENTIAL_LEVEL_STEPS how many.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest
from kraftd.messages.controller_registration_request import ControllerRegistrationRequest
from kraftd.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftd.metadata import metadata_version as mv
from kraftd.metadata.features import FEATURES
from kraftd.wire.message import Message
from tests.kafka.differential.comparison import Comparison
from tests.kafka.differential.pair import Pair, Side
from tests.kafka.differential.requests import RandomRequests

pytestmark = pytest.mark.kafka
SEED = int(os.environ.get("KRAFTD_DIFFERENTIAL_SEED", "1"))
STEPS = int(os.environ.get("KRAFTD_DIFFERENTIAL_LEVEL_STEPS", "12"))
LEVELS = range(mv.MINIMUM_VERSION, mv.LATEST_PRODUCTION + 1)
_FIRST_DYNAMIC = 21  # 3.9-IV0, which knows kraft.version 1
_UPGRADE = 1


class Requests(RandomRequests):
    """The test alone changes levels, and every node that registers supports all of them."""

    def next(self, kind: Callable[[Any], Any] | None = None) -> tuple[Message, int]:
        while True:
            request, version = super().next(kind)
            if isinstance(request, (BrokerRegistrationRequest, ControllerRegistrationRequest)):
                others: list[Any] = [one for one in request.features if one.name != mv.METADATA_VERSION]
                feature = type(request.features[0])
                request.features = [*others, feature(mv.METADATA_VERSION, LEVELS[0], LEVELS[-1])]
            if not isinstance(request, UpdateFeaturesRequest):
                return request, version


def play(pair: Pair, seed: int, levels: Sequence[int]) -> Comparison:
    """Play random requests at each level; both controllers were formatted at the first."""
    rng = random.Random(seed)
    comparison = Comparison(pair, seed, Requests)
    for level in levels:
        if level != comparison.image.metadata_version:
            upgrade(comparison, mv.METADATA_VERSION, level)
            for name, feature in FEATURES.items():
                default = feature.default(level)
                if name != mv.KRAFT_VERSION and default and rng.random() < 0.5:
                    upgrade(comparison, name, default)
        comparison.play(STEPS)
    return comparison


def upgrade(comparison: Comparison, name: str, level: int) -> None:
    """Wait until both controllers apply the level: they learn of it, and register, after they answer."""
    image = comparison.image
    if comparison.over or {**image.features, mv.METADATA_VERSION: image.metadata_version}.get(name) == level:
        return
    sides = comparison.pair.sides
    after = level if name == mv.METADATA_VERSION else image.metadata_version

    def wait() -> None:
        for side in sides:
            side.controller.wait(partial(finalized, side, name, level), f"applies {name} {level}")
            if mv.allows_controller_registration(after):
                side.controller.wait(side.is_registered, "registers itself")

    request = UpdateFeaturesRequest(30_000, [FeatureUpdateKey(name, level, False, _UPGRADE)])
    kafka, _ = comparison.ask(request, 2, wait)
    assert comparison.over or kafka["errorCode"] == 0, f"{comparison!r}: {kafka}"


def finalized(side: Side, name: str, level: int) -> bool:
    answer = side.client.call(ApiVersionsRequest("test", "1"), 4)
    return {one.name: one.max_version_level for one in answer.finalized_features}.get(name) == level


@pytest.mark.thorough
def test_static_quorum_answers_as_in_kafka_at_every_level(tmp_path: Path) -> None:
    with Pair(tmp_path, absent=()) as pair:
        pair.start("--release-version", mv.version_name(LEVELS[0]), registers=False)
        comparison = play(pair, SEED + 20, LEVELS)
        assert comparison.over or comparison.image.metadata_version == LEVELS[-1]
        assert comparison.image.offset > len(LEVELS) * STEPS / 4, f"too little changed: {comparison.image!r}"


def test_quorum_answers_as_in_kafka_at_some_levels_from_a_random_one(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    first, *more = sorted(rng.sample(LEVELS, 4))
    is_dynamic = first >= _FIRST_DYNAMIC
    with Pair(tmp_path, absent=None if is_dynamic else ()) as pair:
        pair.start(
            "--release-version", mv.version_name(first), registers=mv.allows_controller_registration(first)
        )
        comparison = play(pair, SEED + 30, [first, *more])
        assert comparison.over or comparison.image.metadata_version == more[-1]
