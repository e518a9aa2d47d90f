"""Random requests to Kafka's controller and to kraftd: the same answers, the same records, at every step.

KRAFTD_DIFFERENTIAL_SEED and KRAFTD_DIFFERENTIAL_STEPS choose other requests, and more of them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from kraftd.metadata.image import Image
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.table import api_key
from testkit.cluster import CONTROLLER_ID
from tests.kafka.differential.comparison import Comparison, cannot_be_compared
from tests.kafka.differential.difference import difference
from tests.kafka.differential.pair import Pair
from tests.kafka.differential.requests import RandomRequests

pytestmark = pytest.mark.kafka
# Requests that wait for metadata, which never comes here, or whose leader the controller would accept.
_NOT_WITHOUT_A_LEADER = frozenset(
    {ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_CONFIGS, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH}
)
_OF_THE_QUORUM = frozenset({ApiKey.FETCH, ApiKey.FETCH_SNAPSHOT, ApiKey.VOTE, ApiKey.DESCRIBE_QUORUM})
SEED = int(os.environ.get("KRAFTD_DIFFERENTIAL_SEED", "1"))
STEPS = int(os.environ.get("KRAFTD_DIFFERENTIAL_STEPS", "400"))


def compare(pair: Pair, seed: int, steps: int) -> Image:
    """Ask both, step by step; AssertionError at the first difference."""
    comparison = Comparison(pair, seed)
    comparison.play(steps)
    return comparison.image


@pytest.mark.parametrize("seed", [SEED, pytest.param(SEED + 1, marks=pytest.mark.thorough)])
def test_a_controller_of_a_dynamic_quorum_answers_and_records_as_in_kafka(tmp_path: Path, seed: int) -> None:
    with Pair(tmp_path) as pair:
        image = compare(pair.start(), seed, STEPS)
        assert image.offset > STEPS / 10, f"too few requests changed anything: {image!r}"


@pytest.mark.parametrize(
    "release",
    [
        pytest.param("3.7-IV4", marks=pytest.mark.thorough),
        "3.9-IV0",
        pytest.param("4.1", marks=pytest.mark.thorough),
    ],
)
def test_a_controller_of_an_older_static_quorum_answers_and_records_as_in_kafka(
    tmp_path: Path, release: str
) -> None:
    with Pair(tmp_path, absent=()) as pair:
        image = compare(pair.start("--release-version", release), SEED + 10, STEPS // 2)
        assert image.offset > STEPS / 20, f"too few requests changed anything: {image!r}"


def test_a_controller_without_a_leader_refuses_as_in_kafka(tmp_path: Path) -> None:
    with Pair(tmp_path, absent=[CONTROLLER_ID + 1]) as pair:
        pair.start()
        requests = RandomRequests(SEED, Image(), pair.cluster_id)
        refused = 0
        for step in range(STEPS // 2):
            request, version = requests.next()
            if api_key(request) in _NOT_WITHOUT_A_LEADER:
                continue
            (kafka, kraftd), _ = pair.ask(request, version)
            # Kafka answers empty and malformed requests without regard to leadership.
            codes = set(re.findall(r"'errorCode': (-?\d+)", repr(kafka))) - {"0"}
            if api_key(request) in _OF_THE_QUORUM or codes == {str(int(ErrorCode.NOT_CONTROLLER))}:
                assert kafka == kraftd or cannot_be_compared(request, kafka, kraftd), (
                    f"seed {SEED} step {step}: another answer to v{version} {request!r}\n"
                    + difference(kafka, kraftd)
                )
                refused += 1
        assert refused > STEPS / 5
