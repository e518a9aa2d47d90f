"""Random histories of quorums in use.

No tool of Kafka's fails, nothing acknowledged is lost, and all logs and images are equal at the end. The seed
also draws the number of voters, and whether controllers join by themselves.

KRAFTD_QUORUM_SEED and KRAFTD_QUORUM_STEPS choose other events, and more of them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testkit.node import Kind
from testkit.quorum import Quorum
from tests.kafka.histories.events import History
from tests.kafka.histories.operators import Operator
from tests.kafka.quorum.images import SNAPSHOTS_OFTEN, assert_equal_snapshots
from tests.kafka.quorum.logged_errors import assert_nothing_new
from tests.kafka.quorum.writers import Administrator, writing

pytestmark = pytest.mark.kafka
SEED = int(os.environ.get("KRAFTD_QUORUM_SEED", "1"))
STEPS = int(os.environ.get("KRAFTD_QUORUM_STEPS", "4"))
BROKERS = (1, 2)
PAUSE_S = 0.3  # a history may be long, and brokers have little memory for topics


@pytest.mark.parametrize(
    "sort", ["mixed", *(pytest.param(sort, marks=pytest.mark.thorough) for sort in ("dynamic", "static"))]
)
def test_a_quorum_in_use_survives_a_random_history(sort: str, kind: Kind, tmp_path: Path) -> None:
    kinds: tuple[Kind, ...] = ("kraftd", "apache") if (sort, kind) == ("mixed", "kraftd") else (kind,)
    ids = range(100, 103 if sort == "mixed" else 103 + SEED % 3)
    voters = {node_id: kinds[node_id % len(kinds)] for node_id in ids}
    auto_join = sort != "static" and SEED % 2 == 0
    properties = {**SNAPSHOTS_OFTEN, "controller.quorum.auto.join.enable": str(auto_join).lower()}
    static = sort == "static"
    with Quorum(tmp_path, voters, static=static, controller_properties=properties) as quorum:
        quorum.start_controllers()
        quorum.start_brokers(*BROKERS)
        quorum.create_topic("stream")
        history = History(quorum, SEED, *kinds, auto_join=auto_join)
        with (
            writing(quorum, "random", Administrator, PAUSE_S) as writer,
            Operator(quorum, SEED) as operator,
        ):
            history.play(STEPS)
            writer.wait_for_more()
        assert not operator.failures, "\n".join([f"seed {SEED}: {history!r}", *operator.failures])
        assert operator.done > STEPS // 2
        quorum.stop_all()
        quorum.assert_equal_logs()
        assert_equal_snapshots(quorum)
        assert_nothing_new(quorum.nodes)
