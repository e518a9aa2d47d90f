"""Controllers of kraftd and of Apache Kafka in one quorum, each leading in turn under creates of topics."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.kafka.node import Controller, Kind
from tests.kafka.quorum.controllers import Quorum, writing

pytestmark = pytest.mark.kafka

MIXES: dict[str, tuple[Kind, Kind, Kind]] = {
    "one-of-kraftd": ("kraftd", "apache", "apache"),
    "two-of-kraftd": ("kraftd", "kraftd", "apache"),
}


def unexpected_errors(controller: Controller) -> list[str]:
    """What a controller logged as errors, but for those that Kafka's own log in every failover."""
    if controller.kind == "kraftd":
        text = controller.log.read_text()
        return [line for line in text.splitlines() if '"level":"error"' in line or "critical" in line]
    lines = controller.log.read_text().splitlines()
    return [
        f"{line}\n{after}"
        for line, after in pairwise(lines)
        if " ERROR " in line
        and not ("Unexpected error handling request" in line and "NotControllerException" in after)
    ]


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
@pytest.mark.parametrize("mix", MIXES)
def test_a_mixed_quorum_keeps_one_log_whoever_leads(mix: str, static: bool, tmp_path: Path) -> None:
    kinds = dict(zip((100, 101, 102), MIXES[mix], strict=True))
    with Quorum(tmp_path, kinds, static=static) as quorum:
        quorum.start_controllers()
        quorum.start_brokers(1)
        with writing(quorum, mix) as writer:
            for node_id in (101, 102, 100):
                with writer.paused():
                    quorum.make_lead(node_id)
                writer.wait_for_more()
            for controller in quorum.controllers.values():
                controller.kill()
                quorum.wait_for_leader()
                writer.wait_for_more()
                quorum.heal()
        quorum.stop_all()
        assert quorum.assert_equal_logs() > 100
        for controller in quorum.controllers.values():
            assert unexpected_errors(controller) == []
