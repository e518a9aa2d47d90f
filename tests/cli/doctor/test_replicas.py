"""``kraftd doctor`` says why a follower is not in sync."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from kraftd.cli.doctor.findings import Level
from kraftd.cli.doctor.judge_replicas import (
    SLOW_HOST,
    SLOW_LINK,
    TOO_SLOW,
    Behind,
    Ends,
    Seen,
    is_full,
    judge_replicas,
)
from kraftd.cli.doctor.judge_throttles import judge_throttles
from kraftd.messages.config_record import ConfigRecord
from kraftd.metadata.state import BROKER_RESOURCE, TOPIC_RESOURCE
from kraftd.metrics.state.survey import Example, Group
from kraftd.types import DIRECTORY_LOST
from testkit.process import free_port, wait_until
from tests.cli.doctor.test_brokers import OTHER, broker, image_of, partition, shown, surveyed
from tests.cli.doctor.test_doctor import CLUSTER_ID
from tests.cli.run import command, run, started, write_config

OF_NODE_1 = Example("t", 0, 1, (1,), (1, 2))
HERE = "out of sync in 1 partition (t-0), since before what the metadata log covers: "
BEHIND = "9,000 records of t-0 behind its leader, node 1"


def ends(first: int, second: int) -> Seen:
    return Seen(ends=Ends(OF_NODE_1, first, second, 2.0))


@pytest.mark.parametrize(
    ("follower", "seen", "level", "reason"),
    [
        (None, Seen(), Level.WARNING, "it is not registered"),
        (broker(2, fenced=True), Seen(), Level.WARNING, "it is fenced, as its heartbeats do not arrive"),
        (broker(2, leaving=True), Seen(), Level.WARNING, "it is shutting down"),
        (broker(2, fenced=True, leaving=True), Seen(), Level.WARNING, "it was shut down"),
        (broker(2), Seen("refused"), Level.WARNING, "how far was not found out (refused)"),
        (broker(2), Seen(full_directories=("/a",)), Level.WARNING, "the disk of its /a is full"),
        (broker(2), ends(9_200, 9_000), Level.NOTE, f"{BEHIND}, and catching up by 100 a second"),
        (broker(2), ends(9_000, 9_000), Level.WARNING, f"{BEHIND}, and not catching up"),
        (broker(2), ends(8_000, 9_000), Level.WARNING, f"{BEHIND}, and not catching up"),
        (
            broker(2),
            ends(1, 0),
            Level.NOTE,
            "it has the records of its leader, node 1, that has not taken it into the ISR yet",
        ),
    ],
)
def test_a_follower_has_a_reason(follower: object, seen: Seen, level: Level, reason: str) -> None:
    records = [broker(1), *([follower] if follower else []), partition(0, 1, (1,))]
    found = list(judge_replicas(image_of(*records), [Behind(2, Group(1, [OF_NODE_1]), None)], {2: seen}))
    assert shown(found) == [(level, "node 2", HERE + reason)]


@pytest.mark.parametrize(
    ("configs", "limits"),
    [
        ({("follower", 2): "0:2"}, "follower.replication.throttled.rate of node 2 is 7 bytes a second"),
        ({("leader", 1): "5:1,0:1"}, "leader.replication.throttled.rate of node 1 is 7 bytes a second"),
        (
            {("follower", None): "*", ("leader", 1): "*"},
            "follower.replication.throttled.rate of node 2 is 7 bytes a second and "
            "leader.replication.throttled.rate of node 1 is 7 bytes a second",
        ),
        ({("follower", 1): "0:1", ("leader", 2): "*"}, ""),
        ({("follower", 2): "1:2"}, ""),
    ],
)
def test_a_reason_names_the_throttles_that_hold_a_follower_back__kip73(
    configs: dict[tuple[str, int | None], str], limits: str
) -> None:
    image = image_of(broker(1), broker(2), *throttles(configs), partition(0, 1, (1,)))
    behind = [Behind(2, Group(1, [OF_NODE_1]), None)]
    (slow,) = judge_replicas(image, behind, {2: ends(9_200, 9_000)})
    rate = f"{BEHIND}, and catching up by 100 a second"
    assert slow.text == HERE + rate + (f", while {limits}" if limits else "")
    (stuck,) = judge_replicas(image, behind, {2: ends(9_000, 9_000)})
    assert stuck.text == HERE + f"{BEHIND}, and not catching up" + (f": {limits}" if limits else "")
    assert ("raise that" if limits else "must reach that listener") in stuck.remedy


def test_a_follower_that_is_reached_but_slow_is_no_one_whose_leader_is_out_of_reach() -> None:
    image, behind = image_of(broker(1), broker(2)), [Behind(2, Group(1, [OF_NODE_1]), None)]

    def judged(**fields: float) -> tuple[str, str]:
        seen = Seen(ends=Ends(OF_NODE_1, 8_000, 9_000, 2.0, **fields))  # type: ignore[arg-type]
        (found,) = judge_replicas(image, behind, {2: seen})
        return found.text.removeprefix(f"{HERE}{BEHIND}, and not catching up"), found.remedy

    late = "; it took 2.0 s to answer and {} s to accept a connection, its leader 0.1 s to answer"
    assert judged(taken=500) == (": it takes 250 a second, its leader more", TOO_SLOW)
    assert judged(follower_s=2.0, leader_s=0.1) == (late.format("0.0"), SLOW_HOST)
    assert judged(follower_s=2.0, leader_s=0.1, accepted_s=1.5) == (late.format("1.5"), SLOW_LINK)
    late = late.format("0.0")
    assert judged(taken=500, follower_s=2.0, leader_s=0.1)[0].endswith(late)
    for times in ((0.1, 0.001), (2.0, 1.0)):  # a link as fast as others
        text, remedy = judged(follower_s=times[0], leader_s=times[1])
        assert not text and "must reach that listener" in remedy


def test_a_slow_leader_and_a_slow_link_have_other_texts() -> None:
    image, behind = image_of(broker(1), broker(2)), [Behind(2, Group(1, [OF_NODE_1]), None)]

    def judged(**fields: float) -> tuple[str, str]:
        times = {"taken": 500, "follower_s": 0.01, "leader_s": 0.01, "accepted_s": 0.01, **fields}
        seen = Seen(ends=Ends(OF_NODE_1, 8_000, 9_000, 2.0, **times))  # type: ignore[arg-type]
        (found,) = judge_replicas(image, behind, {2: seen})
        return found.text, found.remedy

    text, remedy = judged(read_s=0.004)
    assert text.endswith("its leader answers this machine at once, and reads what it lacks in 4 ms")
    assert remedy == "look at the link between it and node 1, and at its own disk and processors"
    text, remedy = judged(read_s=1.5)
    assert text.endswith("0.0 s to accept a connection and 1.5 s to read what it lacks")
    assert remedy == "look at the disk of its leader, node 1, for which all its followers wait"
    assert "disk and the processors of its leader" in judged(read_s=1.5, leader_s=1.0)[1]
    late = judged(read_s=1.5, leader_s=1.0, leader_accepted_s=0.9)
    assert late[1] == "look at the link of its leader, node 1"
    text, remedy = judged(read_s=0.5, leader_s=0.3, follower_s=0.3)  # a link as fast as others
    assert text.endswith("its leader more") and remedy == TOO_SLOW
    assert judged(taken=0, read_s=1.5)[1].startswith("look at the disk of its leader")


def test_a_leader_that_does_not_answer_is_looked_at_first() -> None:
    behind = [Behind(2, Group(1, [OF_NODE_1]), None)]
    seen = Seen("host1:9092: no answer in time", silent_leader=1)
    (found,) = judge_replicas(image_of(broker(1), broker(2)), behind, {2: seen})
    assert found.text == (
        f"{HERE}its leader, node 1, does not answer this machine (host1:9092: no answer in time)"
    )
    assert found.remedy.startswith("look at node 1 and its link first")


def test_a_follower_that_needs_hours_to_catch_up_is_slow() -> None:
    image, behind = image_of(broker(1), broker(2)), [Behind(2, Group(1, [OF_NODE_1]), None)]
    ends = Ends(OF_NODE_1, 9_002, 9_000, 1.0, taken=2, follower_s=0.01, leader_s=0.7, read_s=0.7)
    (found,) = judge_replicas(image, behind, {2: Seen(ends=ends)})
    assert (
        found.level is Level.WARNING and "catching up by 2.0 a second, which takes 1 h 15 min;" in found.text
    )
    assert found.remedy.startswith("look at the disk and the processors of its leader, node 1")


def test_the_worst_of_several_partitions_is_named() -> None:
    seen = Seen(ends=Ends(OF_NODE_1, 9_000, 9_000, 2.0, 3))
    (found,) = judge_replicas(
        image_of(broker(1), broker(2)), [Behind(2, Group(3, [OF_NODE_1]), None)], {2: seen}
    )
    worst = "9,000 records of t-0, the worst of 3 that were looked at, behind its leader, node 1"
    assert worst in found.text


def test_throttles_that_outlast_a_reassignment_are_warned_of__kip73() -> None:
    left = throttles({("leader", 1): "0:1", ("leader", None): "0:1"})
    brokers = broker(1), broker(2)
    image = image_of(*brokers, *left, partition(0, 1, (1, 2)))
    assert shown(list(judge_throttles(image, surveyed(image)))) == [
        (
            Level.WARNING,
            "cluster",
            "no partition is reassigned, but leader.replication.throttled.rate limits node 1 (7), node 2 (7),"
            " and leader.replication.throttled.replicas is set for t",
        )
    ]
    moving = partition(0, 1, (1, 2))
    moving.adding_replicas = (2,)
    for quiet in (
        image_of(*brokers, *left, moving),
        image_of(*brokers, left[0], partition(0, 1, (1, 2))),  # no replicas
        image_of(*brokers, left[1], partition(0, 1, (1, 2))),  # no rate
    ):
        assert not list(judge_throttles(quiet, surveyed(quiet)))


def throttles(configs: dict[tuple[str, int | None], str]) -> list[ConfigRecord]:
    """Throttles by side and broker (None: all brokers), with the replicas that they name."""
    records = []
    for (side, broker_id), replicas in configs.items():
        name = "" if broker_id is None else str(broker_id)
        records += [
            ConfigRecord(BROKER_RESOURCE, name, f"{side}.replication.throttled.rate", "7"),
            ConfigRecord(TOPIC_RESOURCE, "t", f"{side}.replication.throttled.replicas", replicas),
        ]
    return records


def test_a_lost_directory_comes_before_what_its_broker_answers() -> None:
    lost = image_of(broker(1), broker(2), partition(0, 1, (1,), b"\1" * 16, OTHER))
    (found,) = judge_replicas(lost, [Behind(2, Group(1, [OF_NODE_1]), None)], {2: ends(5, 5)})
    assert "its log directory AgICAgICAgICAgICAgICAg is offline or gone" in found.text
    given_up = image_of(broker(1), broker(2), partition(0, 1, (1,), b"\1" * 16, DIRECTORY_LOST))
    (found,) = judge_replicas(given_up, [Behind(2, Group(1, [OF_NODE_1]), None)], {2: ends(5, 5)})
    assert found.text.endswith("its log there is lost or damaged, so this broker has given it up")
    assert "move the partition's directory aside" in found.remedy


def test_a_disk_is_full_when_little_is_left_of_it() -> None:
    assert is_full(1 << 40, 1 << 30) and is_full(100, 0) and is_full(-1, 0)
    assert not is_full(1 << 40, 1 << 36) and not is_full(-1, -1)


def test_a_follower_that_a_throttle_holds_and_one_that_is_gone(tmp_path: Path) -> None:
    """A follower of a whole Kafka comes back to records that it may not fetch, and is killed before."""
    controller, first, second = free_port(), free_port(), free_port()
    boot = f"127.0.0.1:{first}"
    (tmp_path / "second").mkdir()
    config = write_config(
        tmp_path,
        controller,
        process__roles="broker,controller",
        listeners=f"PLAINTEXT://{boot},CONTROLLER://127.0.0.1:{controller}",
        default__replication__factor="2",
        num__partitions="2",
        broker__session__timeout__ms="3000",
    )
    follower = write_config(
        tmp_path / "second",
        controller,
        node__id="2",
        process__roles="broker",
        listeners=f"PLAINTEXT://127.0.0.1:{second}",
    )
    assert run("format", "-c", config, "-t", CLUSTER_ID, "--standalone").code == 0
    assert run("format", "-c", follower, "-t", CLUSTER_ID).code == 0

    def produced(records: bytes, partition: int = 0) -> bool:
        words = command("produce", "t", "--bootstrap", boot, "--partition", str(partition))
        return subprocess.run(words, input=records, capture_output=True, check=False).returncode == 0

    def reason(text: str) -> bool:
        found = run("doctor", "--bootstrap", f"127.0.0.1:{controller}", "--json").out
        return text in found and "since 20" in found

    with started(config):
        with running(follower):
            wait_until(lambda: produced(b"one\n"), "a record is on both")
            hold_back(boot)
        for partition in (0, 0, 1, 1, 1):
            assert produced(b"x" * 1_000_000 + b"\n", partition)
        wait_until(lambda: reason("it is fenced"), "the one that is gone is named")
        held = (
            " of t-1, the worst of 2 that were looked at, behind its leader, node 1, and not catching up: "
            "follower.replication.throttled.rate of node 2 is 1 bytes a second"
        )
        with running(follower):
            wait_until(lambda: reason(held), "its lag is told", 60)


@contextmanager
def running(config: Path) -> Iterator[None]:
    """A daemon, which is killed at the end."""
    process = subprocess.Popen(command("start", config), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait(30)


def hold_back(bootstrap: str) -> None:
    """Let followers that are not in sync fetch a byte a second."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for kind, name, key, value in (
        (ResourceType.TOPIC, "t", "follower.replication.throttled.replicas", "*"),
        (ResourceType.BROKER, "2", "follower.replication.throttled.rate", "1"),
    ):
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(kind, name, incremental_configs=[entry])
        for done in admin.incremental_alter_configs([resource]).values():
            done.result(20)
