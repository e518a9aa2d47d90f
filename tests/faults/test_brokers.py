"""Three stock brokers stay served while the controllers behind the proxy are killed, frozen and cut off."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.quorum import VOTERS, FaultyQuorum, surviving
from tests.kafka.process import wait_until

pytestmark = pytest.mark.kafka

BROKERS = (1, 2, 3)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyQuorum]:
    with FaultyQuorum(tmp_path_factory.mktemp("served")) as quorum:
        quorum.start()
        quorum.start_brokers(*BROKERS)
        yield quorum


def test_brokers_see_everything_acknowledged_whatever_happens_to_the_controllers(
    served: FaultyQuorum,
) -> None:
    with surviving(served, "served") as writer:
        for fault in ("kill", "freeze", "part", "stop"):
            leader, epoch = served.wait_for_leader(), served.epoch()
            others = served.others(leader)
            if fault == "kill":
                served.controllers[leader].kill()
            elif fault == "freeze":
                served.controllers[leader].freeze()
            elif fault == "part":
                served.proxy.part(leader, *others, *BROKERS)
            else:
                assert served.controllers[leader].stop() == 0
            served.wait_until_led_by_one_of(*others)
            assert served.epoch() > epoch
            writer.wait_for_more()
            served.heal()
            served.wait_for_voters(*VOTERS)
    names = set(writer.acknowledged)
    for node_id in BROKERS:
        wait_until(
            lambda one=node_id: names <= {topic.name for topic in served.metadata_by(one).topics},
            f"broker {node_id} knows all {len(names)} acknowledged topics",
        )
    assert {9, *BROKERS} >= served.live_brokers() >= set(BROKERS)


def test_brokers_take_topics_after_all_controllers_were_killed(served: FaultyQuorum) -> None:
    with surviving(served, "all-killed"):
        for controller in served.controllers.values():
            controller.kill()
        served.start_controllers()
    served.create_topic("after-all", partitions=3, replication_factor=1)
