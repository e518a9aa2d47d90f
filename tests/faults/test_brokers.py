"""Three stock brokers and a writer, while controllers fail: no acknowledged topic is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack

import pytest

from testkit.process import wait_until
from tests.faults.disks import SmallDisk, failing_fsync, fsync_lacking, lacking, preload_faults
from tests.faults.quorum import VOTERS, FaultyQuorum, surviving
from tests.faults.test_network import ALL_LINKS

pytestmark = pytest.mark.kafka

BROKERS = (1, 2, 3)


class Served(FaultyQuorum):
    """Three controllers, each on a small disk and with an fsync that can fail, if the machine allows that."""

    disks: dict[int, SmallDisk]

    def leave_out(self, node_id: int) -> None:
        """Cut a controller off from the other controllers and the brokers."""
        self.proxy.part(node_id, *self.others(node_id), *BROKERS)


@pytest.fixture(scope="module", params=[False, True], ids=["dynamic", "static"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("served")
    with ExitStack() as stack:
        disks = {}
        if lacking() is None:
            disks = {one: stack.enter_context(SmallDisk(home / f"disk-{one}")) for one in VOTERS}
        quorum = stack.enter_context(Served(home, static=request.param))
        quorum.disks = disks
        for node_id, disk in disks.items():
            quorum.keep_data_in(node_id, disk.path / "data")
        if fsync_lacking("preload") is None:
            for controller in quorum.controllers.values():
                preload_faults(controller, home)
        quorum.start()
        quorum.start_brokers(*BROKERS)
        yield quorum


def assert_known_to_brokers(quorum: Served, names: set[str]) -> None:
    for node_id in BROKERS:
        wait_until(
            lambda one=node_id: names <= {topic.name for topic in quorum.metadata_by(one).topics},
            f"broker {node_id} knows all {len(names)} acknowledged topics",
        )
    assert {9, *BROKERS} >= quorum.live_brokers() >= set(BROKERS)


def full_disk(quorum: Served, leader: int) -> AbstractContextManager[None]:
    if not quorum.disks:
        pytest.skip(f"not run: {lacking()}")
    return quorum.disks[leader].full()


def failed_fsync(quorum: Served, leader: int) -> AbstractContextManager[None]:
    if lack := fsync_lacking("preload"):
        pytest.skip(f"not run: {lack}")
    return failing_fsync(quorum.controllers[leader], "preload")


# Faults of the leader that force an election; each context ends before the test heals everything.
LOSSES: dict[str, Callable[[Served, int], object]] = {
    "killed": lambda quorum, leader: quorum.controllers[leader].kill(),
    "frozen": lambda quorum, leader: quorum.controllers[leader].freeze(),
    "stopped": lambda quorum, leader: quorum.controllers[leader].stop(),
    "cut-off": lambda quorum, leader: quorum.leave_out(leader),
    "mute": lambda quorum, leader: quorum.proxy.cut(*[(leader, one) for one in quorum.others(leader)]),
    "deaf": lambda quorum, leader: quorum.proxy.cut(*[(one, leader) for one in quorum.others(leader)]),
    "full-disk": full_disk,
    "failed-fsync": failed_fsync,
}


@pytest.mark.parametrize("loss", LOSSES)
def test_brokers_have_all_acknowledged_topics_after_the_leader_is_lost(served: Served, loss: str) -> None:
    with surviving(served, f"leader-{loss}") as writer, ExitStack() as stack:
        leader = served.wait_for_leader()
        lost = LOSSES[loss](served, leader)
        if isinstance(lost, AbstractContextManager):
            stack.enter_context(lost)
        served.wait_until_led_by_one_of(*served.others(leader))
        writer.wait_for_more()
    assert_known_to_brokers(served, set(writer.acknowledged))


def test_brokers_have_all_acknowledged_topics_over_links_that_are_reset(served: Served) -> None:
    with surviving(served, "reset-links") as writer:
        for _ in range(5):
            assert served.proxy.reset(*ALL_LINKS) > 0
            writer.wait_for_more(5)
    assert_known_to_brokers(served, set(writer.acknowledged))


def test_brokers_have_all_acknowledged_topics_over_slow_links(served: Served) -> None:
    with surviving(served, "slow-links") as writer:
        served.proxy.slow(*ALL_LINKS, delay_s=0.05)
        writer.wait_for_more()
    assert_known_to_brokers(served, set(writer.acknowledged))


def test_brokers_get_new_topics_after_all_controllers_were_killed(served: Served) -> None:
    with surviving(served, "all-killed") as writer:
        for controller in served.controllers.values():
            controller.kill()
        served.start_controllers()
    assert_known_to_brokers(served, set(writer.acknowledged))
    served.create_topic("after-all", partitions=3, replication_factor=1)
