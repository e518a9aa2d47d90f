"""What the status page shows of the replicas that the broker of the process hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.metrics.pages import Pages
from kraftd.metrics.serving.http import Request, Response
from kraftd.metrics.state import group_survey
from kraftd.metrics.state import hosted_survey as module
from kraftd.metrics.state.group_survey import GroupRow, GroupSurvey
from kraftd.metrics.state.hosted_survey import DirectoryRow, FetcherRow, HostedSurvey, LagRow, survey_hosted
from kraftd.wire.api import ApiKey
from tests.broker_node.harness import PATHS, BrokerHarness, records
from tests.broker_node.test_failures import failing, in_directory
from tests.broker_node.test_following import LEADER, Follower, batch
from tests.broker_node.test_log_moves import ask, other, run_held
from tests.metrics.watched import readings


def surveyed(harness: BrokerHarness) -> tuple[HostedSurvey, int]:
    """What a survey finds, and in how many slices."""
    slices, count = survey_hosted(harness.broker), 1
    while True:
        try:
            next(slices)
            count += 1
        except StopIteration as done:
            return done.value, count


def test_what_a_broker_follows_is_shown_with_its_lag_and_failures(tmp_path: Path) -> None:
    follower = Follower(tmp_path)
    follower.send(0, batch(0, 3), high_watermark=9)
    damaged = bytearray(batch(0))
    damaged[-1] ^= 1
    follower.send(1, bytes(damaged))
    found, _ = surveyed(follower.harness)
    assert found.lagging == [LagRow("t", 0, LEADER, 6, "fetching")] and found.lagging_count == 1
    assert found.fetchers == [FetcherRow(LEADER, 0, 2, 0, 0, 6)] and found.fetcher_count == 1
    assert (found.replicas, found.leads, found.under_replicated) == (2, 0, 0)


def test_directories_are_shown_with_what_is_in_them_and_moves_to_them(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t")
    size_bytes = len(records(3))
    harness.produce("t", records(3))
    present, target = harness.directories.logs["t", 0].parent, other(harness)
    harness.threads.held = []
    ask(harness, target)
    run_held(harness)  # makes the future log; its records would be copied next
    harness.broker.cordoning.paths = frozenset({target})
    found, _ = surveyed(harness)
    assert (found.replicas, found.leads, found.fetchers, found.lagging) == (1, 1, [], [])
    assert sorted(found.directories, key=lambda one: one.replicas) == [
        DirectoryRow(target, None, True, 0, 0, 1),
        DirectoryRow(present, None, False, 1, size_bytes, 0),
    ]


async def test_the_status_names_a_directory_that_failed(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", 4)
    lost = in_directory(harness, PATHS[1])
    harness.disk.fault = failing(PATHS[1])
    harness.produce("t", records(), index=lost[0])
    pages = Pages(lambda: readings(harness, clients=harness.broker), lambda _: None)
    answer = await pages.handle(Request("GET", "/status.json", {}, keep_alive=True))
    assert isinstance(answer, Response)
    shown: dict[str, Any] = msgspec.json.decode(answer.body)["hosted"]
    kept, failed = shown["directories"]
    assert (kept["path"], kept["replicas"], kept["error"]) == (PATHS[0], 4 - len(lost), None)
    assert (failed["path"], failed["replicas"]) == (PATHS[1], 0) and "Replace it" in failed["error"]


def test_a_survey_goes_in_slices_and_shows_those_that_lag_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_survey, "SLICE_PARTITIONS", 1)
    monkeypatch.setattr(module, "MAX_LAGGING", 1)
    follower = Follower(tmp_path)
    follower.send(0, batch(0), high_watermark=9)
    follower.send(1, batch(0), high_watermark=99)
    found, count = surveyed(follower.harness)
    assert (found.lagging_count, found.lagging) == (2, [LagRow("t", 1, LEADER, 98, "fetching")])
    assert count == 2 + 2 + 1


def committed(harness: BrokerHarness, group: str, *offsets: int) -> None:
    """Commit an offset of each of the first partitions of t."""
    rows = [OffsetCommitRequestPartition(index, offset) for index, offset in enumerate(offsets)]
    request = OffsetCommitRequest(group, -1, "", topics=[OffsetCommitRequestTopic("t", partitions=rows)])
    answer = harness.client_ask(ApiKey.OFFSET_COMMIT, 8, request)
    assert not any(one.error_code for one in answer.topics[0].partitions)


def test_groups_are_shown_by_their_lag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", 2)
    harness.create_topic("__consumer_offsets", 1, cleanup_policy="compact")
    for index in range(2):
        harness.produce("t", records(5), index=index)
    committed(harness, "near", 4, 5)
    committed(harness, "ahead", 9)  # such a lag is none
    committed(harness, "far", 1, -(2**63))  # which counts as 0
    found, slices = surveyed(harness)
    assert found.groups == GroupSurvey(
        3,
        [
            GroupRow("far", "classic", "Empty", 0, 2, 0, 9),
            GroupRow("near", "classic", "Empty", 0, 2, 0, 1),
            GroupRow("ahead", "classic", "Empty", 0, 1, 0, 0),
        ],
    )
    monkeypatch.setattr(group_survey, "SLICE_PARTITIONS", 1)
    monkeypatch.setattr(group_survey, "MAX_GROUPS", 1)
    found, small_slices = surveyed(harness)
    assert (found.groups.count, [one.id for one in found.groups.furthest]) == (3, ["far"])
    assert small_slices > slices
    monkeypatch.setattr(harness.broker.replicas, "get", lambda *_: None)
    (elsewhere,) = surveyed(harness)[0].groups.furthest
    assert (elsewhere.partitions, elsewhere.lag, elsewhere.elsewhere > 0) == (0, 0, True)
