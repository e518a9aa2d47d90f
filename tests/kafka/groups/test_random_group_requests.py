"""Random requests for groups, to a stock broker and to kraftd's coordinator: every answer is the same.

Another seed, or more steps: ``KRAFTD_GROUPS_SEED``, ``KRAFTD_GROUPS_STEPS``.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from kraftd.wire.error_code import ErrorCode
from testkit.cluster import Cluster
from tests.kafka.groups.pair import Pair
from tests.kafka.groups.requests import Requests

pytestmark = pytest.mark.kafka

SEED = int(os.environ.get("KRAFTD_GROUPS_SEED", "1"))
STEPS = int(os.environ.get("KRAFTD_GROUPS_STEPS", "1500"))
STEPS_A_RUN = 150  # then other groups begin
EXPECTED_ERRORS = {
    ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.INVALID_SESSION_TIMEOUT,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.NON_EMPTY_GROUP,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.MEMBER_ID_REQUIRED,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
}


def play_classic(pair: Pair, seed: int, steps: int) -> set[str]:
    """Raise where an answer about classic groups differs; return the kinds of requests."""
    seen: set[str] = set()
    for start in range(0, steps, STEPS_A_RUN):
        requests = Requests(Random(f"{seed}/{start}"), pair, f"g{seed}-{start}")
        story = []
        for _ in range(STEPS_A_RUN):
            request, version = requests.draw()
            story.append(f"v{version} {request!r}")
            seen.add(type(request).__name__)
            try:
                pair.send(request, version)
            except AssertionError as problem:
                where = f"seed {seed}/{start}, step {len(story)}"
                raise AssertionError("\n".join([*story[-16:], f"{where}: {problem}"])) from problem
    return seen


def test_every_answer_is_that_of_a_stock_broker(group_broker: Cluster) -> None:
    pair = Pair(group_broker)
    try:
        seen = play_classic(pair, SEED, STEPS)
    finally:
        pair.close()
    assert pair.compared > STEPS * 0.8
    assert len(seen) == 10, seen
    missing = EXPECTED_ERRORS - pair.errors.keys()
    assert STEPS < 1500 or not missing, f"no answer had {missing}: {pair.errors}"
