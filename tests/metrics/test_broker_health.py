"""What /readyz and the status page say of the broker in the process."""

from __future__ import annotations

from pathlib import Path

from kraftd.log_dirs.full_directories import SURE_MS
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.metrics.state.health import MAX_NAMED, Health, health
from kraftd.metrics.status_page.causes import Cause
from kraftd.metrics.status_page.status import status
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import PATHS, BrokerHarness, records
from tests.broker_node.test_failures import failing, in_directory
from tests.metrics.test_exposition import samples
from tests.metrics.watched import readings

FULL = "kraftd_log_directory_full"


def seen(harness: BrokerHarness) -> tuple[Health, list[Cause]]:
    cleaner = harness.executor.cleaning.cleaner
    full = harness.executor.logs.full_directories.ages_ms()
    rooms = harness.executor.logs.full_directories.rooms()
    found = readings(
        harness, clients=harness.broker, log_cleaner=cleaner, full_directories=full, full_rooms=rooms
    )
    return health(found), status(found, None).causes


def test_a_process_is_ready_once_its_broker_serves(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path)
    harness.wire.is_cut_off = True
    harness.run()
    found, causes = seen(harness)
    assert (found.ready, found.state) == (False, "broker starting")
    assert causes[0].what == "Broker 100 is starting: 0 logs are to be opened."
    harness.wire.is_cut_off = False
    harness.pass_time(5_000)
    found, causes = seen(harness)
    assert (found.ready, found.state, causes) == (True, "serving", [])
    assert found.broker is not None and (found.broker.state, found.broker.fenced) == ("RUNNING", False)


def test_a_fenced_broker_is_not_ready(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.broker.lifecycle.is_fenced = True  # as an answer to a heartbeat says
    found, causes = seen(harness)
    assert (found.ready, found.state) == (False, "broker fenced")
    assert causes[0].what == "Broker 100 is fenced: it leads no partition and gets no clients."


def test_directories_and_partitions_that_failed_are_named(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", 4)
    lost = in_directory(harness, PATHS[1])
    harness.disk.fault = failing(PATHS[1])
    harness.produce("t", records(), index=lost[0])
    found, causes = seen(harness)
    assert found.ready and found.broker is not None
    assert found.broker.offline_partitions == len(lost) == 2
    assert "Replace it" in found.broker.offline_directories[PATHS[1]]
    texts = [(one.severity, one.what, one.details) for one in causes]
    assert texts[0][:2] == ("critical", "1 log directory of broker 100 failed.")
    assert texts[0][2][0].startswith(f"{PATHS[1]}: cannot ")
    assert texts[1][1:] == (
        "The logs of 2 partitions of broker 100 cannot be used.",
        [f"t-{n}: its log directory {PATHS[1]} is offline" for n in lost],
    )


def full_by_metric(harness: BrokerHarness) -> set[str]:
    """The log directories that are full by the metric, which has a sample for each."""
    full = harness.executor.logs.full_directories.ages_ms()
    every = samples(readings(harness, clients=harness.broker, full_directories=full))
    found = {dict(key[1])["logDirectory"]: value for key, value in every.items() if key[0] == FULL}
    assert set(found) == set(PATHS)
    return {path for path, value in found.items() if value}


def test_a_full_disk_of_records_is_named_until_a_write_succeeds_or_it_has_room(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t")
    path = harness.directories.logs["t", 0].parent
    for mends_by_writing in (True, False):
        used = sum(map(harness.disk.size_bytes, harness.disk.paths()))
        harness.disk.capacity_bytes = used + 10
        assert harness.produce("t", records()).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        harness.disk.capacity_bytes = None
        harness.pass_time(2_000)
        found, causes = seen(harness)
        assert found.broker is not None and list(found.broker.full_directories) == [path]
        assert 2 <= found.broker.full_directories[path] < 3
        assert full_by_metric(harness) == {path}
        assert found.ready and found.broker.offline_directories == {}  # other directories may have room
        named = next(one for one in causes if "No room" in one.what)
        assert named.severity == "critical"
        assert named.details == [f"{path}: make room on its disk; the last write was refused 2 s ago"]
        assert found.broker.full_rooms[path]["needed_bytes"] == 0
        if mends_by_writing:
            assert not harness.produce("t", records()).error_code
        else:
            harness.pass_time(SURE_MS)
        found, _ = seen(harness)
        assert found.broker is not None and found.broker.full_directories == {}
        assert full_by_metric(harness) == set()


def test_a_stopping_node_shows_how_many_partitions_it_still_leads(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", 3)
    found = health(at := readings(harness, clients=harness.broker, stopping=True))
    assert (found.ready, found.state) == (False, "stopping")
    assert found.broker is not None and found.broker.led_partitions == 3
    assert status(at, None).causes[0].what == "Node 100 is stopping. It still leads 3 partitions."


def test_logs_that_cannot_be_cleaned_are_named(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    cleaner = harness.executor.cleaning.cleaner
    for partition in range(MAX_NAMED + 5):
        cleaner.set_aside(("t", partition), f"the file of {partition} is damaged", 10)
    found, causes = seen(harness)
    assert found.ready and found.broker is not None
    assert (found.broker.uncleanable_logs, len(found.broker.uncleanable)) == (MAX_NAMED + 5, MAX_NAMED)
    (cause,) = causes
    advice = "Restore the files from another replica, and restart the broker."
    assert (cause.severity, cause.what) == (
        "warning",
        f"25 logs of broker 100 cannot be cleaned. {advice}",
    )
    assert cause.details[0] == "t-0: the file of 0 is damaged"
    cleaner.uncleanable.clear()
    assert seen(harness)[1] == []


def test_an_internal_topic_that_cannot_be_made_is_named_until_it_is_there(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, broker={"offsets.topic.replication.factor": "3"}).run()
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
    harness.client_ask(ApiKey.FIND_COORDINATOR, 4, request)
    harness.pass_time(100)
    found, causes = seen(harness)
    assert found.broker is not None
    reason = found.broker.uncreated["__consumer_offsets"]
    assert "a replication factor of 3 needs as many brokers" in reason
    assert [one.details for one in causes] == [[reason]]
    harness.create_topic("__consumer_offsets")
    found, causes = seen(harness)
    assert found.broker is not None
    assert (found.broker.uncreated, causes) == ({}, [])
