"""``kraftd doctor`` examines brokers and partitions, by the metadata and at the advertised listeners."""

from __future__ import annotations

import subprocess
from pathlib import Path

from kraftd.cli.doctor.findings import Finding, Level
from kraftd.cli.doctor.judge_cluster import (
    judge_directories,
    judge_endpoint,
    judge_partitions,
    judge_reassignments,
    judge_registered,
)
from kraftd.cli.doctor.judge_leaderless import brokers_with_lost_disk, judge_leaderless
from kraftd.cli.doctor.judge_peers import Answer
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.image import Image
from kraftd.metadata.state import TOPIC_RESOURCE
from kraftd.metrics.state.survey import Survey, survey
from kraftd.types import DIRECTORY_LOST, DIRECTORY_UNASSIGNED, Endpoint
from testkit.process import free_port, wait_until
from tests.cli.doctor.test_doctor import CLUSTER_ID, examined, wrong
from tests.cli.run import command, run, started, write_config

TOPIC_ID, DIRECTORY, OTHER = b"\7" * 16, b"\1" * 16, b"\2" * 16


def broker(broker_id: int, *, fenced: bool = False, leaving: bool = False) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id, fenced=fenced, in_controlled_shutdown=leaving, log_dirs=(DIRECTORY,), rack=None
    )


def partition(
    index: int,
    leader: int,
    isr: tuple[int, ...],
    *directories: bytes,
    replicas: tuple[int, ...] = (1, 2),
    topic_id: bytes = TOPIC_ID,
) -> PartitionRecord:
    places = directories or (DIRECTORY,) * len(replicas)
    return PartitionRecord(index, topic_id, replicas, isr, (), (), leader, 0, 0, 0, places)


def image_of(*records: object) -> Image:
    image = Image()
    for offset, record in enumerate((TopicRecord("t", TOPIC_ID), *records)):
        image.apply(record, offset, 1)
    return image


def surveyed(image: Image) -> Survey:
    steps = survey(image)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Survey = end.value
            return found


def shown(found: list[Finding]) -> list[tuple[Level, str, str]]:
    assert all(one.remedy for one in found if one.is_wrong)
    return [(one.level, one.subject, one.text) for one in found]


def test_fenced_brokers_are_warnings_and_leaving_ones_notes() -> None:
    assert shown(list(judge_registered(image_of()))) == []
    well = image_of(broker(1), broker(2))
    assert shown(list(judge_registered(well))) == [(Level.OK, "cluster", "no broker of 2 is fenced")]
    found = shown(
        list(judge_registered(image_of(broker(1), broker(2, fenced=True), broker(3, leaving=True))))
    )
    assert [one[:2] for one in found] == [(Level.WARNING, "node 2"), (Level.NOTE, "node 3")]


def test_a_broker_in_controlled_shutdown_is_described_by_what_it_still_leads() -> None:
    leaving = broker(3, leaving=True)
    leads = image_of(leaving, *(partition(index, 3, (3, 1)) for index in range(2)))
    assert shown(list(judge_registered(leads))) == [
        (Level.NOTE, "node 3", "this broker is shutting down: 2 partitions that it leads are to move away")
    ]
    (found,) = judge_registered(image_of(leaving))
    assert found.text == "this broker is shutting down: it leads no partition any more, and ends next"
    (found,) = judge_registered(image_of(broker(3, fenced=True, leaving=True)))
    assert (found.level, found.text) == (Level.NOTE, "this broker was shut down")


def test_partitions_without_a_leader_and_with_too_few_replicas_are_named() -> None:
    brokers = broker(1), broker(2)
    well = image_of(*brokers, partition(0, 1, (1, 2)))
    assert [one.level for one in judge_partitions(surveyed(well))] == [Level.OK]
    behind = [partition(index, 1, (1,)) for index in range(6)]
    assert shown(list(judge_partitions(surveyed(image_of(*brokers, *behind))))) == [
        (Level.WARNING, "cluster", "6 partitions under-replicated: t-0, t-1, t-2, t-3, t-4, …")
    ]
    at_least_two = ConfigRecord(TOPIC_RESOURCE, "t", "min.insync.replicas", "2")
    lost = image_of(*brokers, at_least_two, partition(0, -1, (2,)), partition(1, 1, (1, 2)))
    assert shown([*judge_leaderless(lost, {}), *judge_partitions(surveyed(lost))]) == [
        (Level.PROBLEM, "cluster", "1 partition without a leader: t-0"),
        (
            Level.PROBLEM,
            "cluster",
            "1 partition with fewer in-sync replicas than min.insync.replicas: they refuse writes with "
            "acks=all: t-0",
        ),
    ]


def test_a_reassignment_that_removes_what_it_adds_is_named__kip455() -> None:
    moves = [partition(index, 1, (1, 2, 3), replicas=(1, 2, 3)) for index in range(3)]
    moves[1].adding_replicas = (3,)
    moves[2].adding_replicas, moves[2].removing_replicas = (3,), (2,)
    image = image_of(broker(1), broker(2), broker(3), *moves)
    assert list(judge_reassignments(image)) == []
    moves[1].removing_replicas = (3,)
    image = image_of(broker(1), broker(2), broker(3), *moves)
    text = "1 partition being reassigned without an end, because the same replica is added and removed: t-1"
    assert shown(list(judge_reassignments(image))) == [(Level.WARNING, "cluster", text)]


def test_a_partition_without_a_leader_names_the_disk_or_the_broker_that_it_waits_for() -> None:
    brokers = broker(1), broker(2, fenced=True)
    disk = partition(0, -1, (1,), OTHER, DIRECTORY)
    image = image_of(*brokers, disk, partition(1, -1, (2,)))
    assert brokers_with_lost_disk(image) == [1]
    of_disk, of_broker = judge_leaderless(image, {1: ("/disk/a",)})
    assert shown([of_disk, of_broker]) == [
        (
            Level.PROBLEM,
            "node 1",
            "1 partition without a leader: t-0: the last replica in sync is on this broker, which runs, but "
            "its log directory /disk/a is offline",
        ),
        (Level.PROBLEM, "cluster", "1 partition without a leader: t-1"),
    ]
    assert "repair the disk of /disk/a with its data, and restart the broker; electing" in of_disk.remedy
    assert of_broker.remedy.startswith("start a broker of its ISR (node 2);")
    (unasked,) = judge_leaderless(image_of(*brokers, disk), {1: ()})
    assert unasked.text.endswith("but its log directory is offline")
    (alone,) = judge_leaderless(image_of(*brokers, partition(0, -1, (1,), OTHER, replicas=(1,))), {})
    assert alone.remedy.endswith("there is no other replica")
    (fenced,) = judge_leaderless(image_of(*brokers, partition(0, -1, (2,), replicas=(2,))), {})
    assert fenced.remedy == "start a broker of its ISR (node 2); there is no other replica"
    for name, consequence in (
        ("__consumer_offsets", "; groups whose offsets are there can neither join nor commit"),
        (
            "__transaction_state",
            "; transactional ids that are kept there can neither begin nor end a transaction",
        ),
        ("__share_group_state", "; share groups whose state is there get no records"),
    ):
        records = *brokers, TopicRecord(name, OTHER)
        (waiting,) = judge_leaderless(image_of(*records, partition(0, -1, (2,), topic_id=OTHER)), {})
        assert waiting.text == f"1 partition without a leader: {name}-0{consequence}"
        gone = partition(0, -1, (1,), OTHER, replicas=(1,), topic_id=OTHER)
        (of_disk,) = judge_leaderless(image_of(*records, gone), {})
        assert of_disk.text.endswith(f"is offline{consequence}")
    # The fenced broker of the ISR can lead again with its own disk.
    (either,) = judge_leaderless(image_of(*brokers, partition(0, -1, (1, 2), OTHER, DIRECTORY)), {})
    assert either.remedy.startswith("start a broker of its ISR (node 2);")


def test_replicas_in_a_directory_that_their_broker_does_not_report_are_counted() -> None:
    brokers = broker(1), broker(2)
    well = image_of(
        *brokers, partition(0, 1, (1, 2)), partition(1, 1, (1, 2), DIRECTORY, DIRECTORY_UNASSIGNED)
    )
    assert list(judge_directories(well)) == []
    lost = image_of(
        *brokers, partition(0, 1, (1,), DIRECTORY, OTHER), partition(1, 1, (1,), DIRECTORY, OTHER)
    )
    text = "2 replicas are in a log directory of this broker that is offline or gone"
    assert shown(list(judge_directories(lost))) == [(Level.PROBLEM, "node 2", text)]


def test_replicas_whose_log_their_broker_has_given_up_are_named() -> None:
    brokers = broker(1), broker(2)
    image = image_of(*brokers, partition(0, 1, (1,), DIRECTORY, DIRECTORY_LOST))
    text = "the log of 1 partition is lost or damaged, so this broker has given it up: t-0"
    assert shown(list(judge_directories(image))) == [(Level.PROBLEM, "node 2", text)]
    only = partition(0, -1, (1,), DIRECTORY_LOST, replicas=(1,))
    (leaderless,) = judge_leaderless(image_of(*brokers, only), {1: ()})
    assert leaderless.text.endswith("on this broker, which runs, but its log there is lost or damaged")
    assert "restore the files of the partition" in leaderless.remedy


def test_a_listener_that_speaks_another_protocol_accepts_connections_nevertheless() -> None:
    endpoint = Endpoint("OUTSIDE", "b1", 9092)
    refused = Answer("b1:9092", "refused", listens=False)
    for answer, level in ((Answer("b1:9092", "x", "TLS"), Level.OK), (refused, Level.WARNING)):
        found = judge_endpoint(1, endpoint, answer, is_own=False)
        assert found.level == level and "OUTSIDE at b1:9092" in found.text


def test_a_whole_kafka_is_found_healthy_until_its_advertised_listener_leads_nowhere(tmp_path: Path) -> None:
    controller, clients, nowhere = free_port(), free_port(), free_port()
    protocols = "PLAINTEXT:PLAINTEXT,SECOND:PLAINTEXT,CONTROLLER:PLAINTEXT"
    second = free_port()
    listeners = (
        f"PLAINTEXT://127.0.0.1:{clients},SECOND://127.0.0.1:{second},CONTROLLER://127.0.0.1:{controller}"
    )
    changes = {
        "process__roles": "broker,controller",
        "listeners": listeners,
        "listener__security__protocol__map": protocols,
        "inter__broker__listener__name": "PLAINTEXT",
    }
    config = write_config(tmp_path, controller, **changes)
    assert run("format", "-c", config, "-t", CLUSTER_ID, "--standalone").code == 0

    def produced() -> bool:
        words = command("produce", "t", "--bootstrap", f"127.0.0.1:{clients}")
        return subprocess.run(words, input=b"one\n", capture_output=True, check=False).returncode == 0

    with started(config):
        wait_until(produced, "a record is produced")
        found = examined("--config", config, code=0)
        texts = {(one["area"], one["text"]) for one in found if one["level"] == "ok"}
        assert ("brokers", "no broker of 1 is fenced") in texts
        assert ("brokers", f"its listener SECOND at 127.0.0.1:{second} accepts connections") in texts
        assert ("partitions", "each partition has a leader, and all replicas are in sync") in texts
        by_broker = examined("--bootstrap", f"127.0.0.1:{clients}", code=0)
        texts = {(one["area"], one["text"]) for one in by_broker if one["level"] == "ok"}
        named = f"a broker answers, and names the controllers 127.0.0.1:{controller}"
        assert ("peers", named) in texts and ("brokers", "no broker of 1 is fenced") in texts
        copied = run("backup", "--bootstrap", f"127.0.0.1:{clients}", "-o", tmp_path / "backup")
        assert copied.code == 0, copied.err
        (directories,) = [text for area, text in texts if area == "directories"]
        assert directories.startswith(f"its log directories are online: {tmp_path}")
    advertised = listeners.replace(f"SECOND://127.0.0.1:{second}", f"SECOND://127.0.0.1:{nowhere}")
    write_config(tmp_path, controller, **changes, advertised__listeners=advertised)
    with started(config):
        wait_until(produced, "a record is produced again")
        found = examined("--config", config, code=1)
        assert wrong(found) == [("brokers", "node 1")]
        (unreached,) = [one for one in found if one["level"] == "warning"]
        assert f"SECOND at 127.0.0.1:{nowhere} is advertised, and cannot be reached" in unreached["text"]


def test_a_broker_alone_is_not_asked_to_vote(tmp_path: Path) -> None:
    config = write_config(
        tmp_path,
        process__roles="broker",
        listeners=f"PLAINTEXT://127.0.0.1:{free_port()}",
        controller__quorum__bootstrap__servers=f"127.0.0.1:{free_port()}",
    )
    assert run("format", "-c", config, "-t", CLUSTER_ID).code == 0
    found = examined("--config", config, code=1)
    assert [area for area, _ in wrong(found)] == ["peers"]
    assert not any("does not vote" in one["text"] for one in found)


def test_a_directory_that_is_not_mounted_is_named_with_the_partitions_in_it(tmp_path: Path) -> None:
    controller, clients = free_port(), free_port()
    boot, disk = f"127.0.0.1:{clients}", tmp_path / "b"
    config = write_config(
        tmp_path,
        controller,
        process__roles="broker,controller",
        listeners=f"PLAINTEXT://{boot},CONTROLLER://127.0.0.1:{controller}",
        log__dirs=f"{tmp_path / 'a'},{disk}",
        num__partitions="2",
    )
    assert run("format", "-c", config, "-t", CLUSTER_ID, "--standalone").code == 0
    with started(config):
        for partition in ("0", "1"):
            words = command("produce", "t", "--bootstrap", boot, "--partition", partition)
            subprocess.run(words, input=b"x\n", check=True, capture_output=True)
    ((lost,),) = ([path.name for path in disk.iterdir() if path.name.startswith("t-")],)
    disk.rename(tmp_path / "elsewhere")
    disk.touch()
    text = f"1 partition without a leader: {lost}: the last replica in sync is on this broker, which runs, "
    with started(config):
        examine = ("doctor", "--bootstrap", f"127.0.0.1:{controller}", "--json")
        wait_until(lambda: text in run(*examine).out, "the partition without a leader is found", 60)
        assert f"its log directory {disk} is offline" in run(*examine).out
        assert "it is not a directory" in run("doctor", "--config", config, "--json").out
        told = run("consume", "t", "--bootstrap", boot, "--partition", lost[-1], "--timeout", "1")
        assert told.code == 1
        assert f"{lost} has no leader; its replicas are on broker 1" in told.err
