"""``kraftd doctor`` asks this machine's node for logs that its broker cannot clean."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from kraftd.broker_node.fetching.fetcher import Fetcher
from kraftd.broker_node.lifecycle import BrokerState
from kraftd.cli.doctor.findings import Finding, ok, problem
from kraftd.cli.doctor.judge_replicas import REPAIR_DISK
from kraftd.cli.doctor.page_probe import (
    MAKE_ROOM,
    MORE_BROKERS,
    REMEDY,
    REPLACE,
    join_full_disks,
    probe_page,
    probe_pages,
)
from kraftd.config import load
from kraftd.metrics.pages import Pages
from kraftd.metrics.serving.http import HttpConnections, Request, Response, Stream
from kraftd.metrics.serving.password import with_password
from kraftd.metrics.state.health import MAX_NAMED
from kraftd.metrics.state.slow_fetches import DISK
from kraftd.net.tls.contexts import TlsContexts
from kraftd.security.tls_settings import StoreSettings, TlsSettings
from testkit.certificates import Authority
from testkit.process import free_port
from tests.broker_node.harness import BrokerHarness
from tests.cli.run import write_config
from tests.metrics.watched import readings

USER, PASSWORD = "reader", "a secret"


def findings(
    harness: BrokerHarness,
    folder: Path,
    listener: str = "127.0.0.1:{}",
    served_by: TlsContexts | None = None,
    seen: list[str] | None = None,
    elsewhere: Callable[[int], list[tuple[str, int]]] | None = None,
    **changes: str,
) -> list[Finding]:
    """What the doctor says of a listener, which asks for PASSWORD if it has one; `seen`: the credentials that
    it got; `elsewhere`: what is asked in place of the listener of the file, given the port.
    """
    port = free_port()
    changes |= {"kraftd__metrics__listener": listener.format(port)}
    config = load(write_config(folder, free_port(), **changes))
    cleaner = harness.executor.cleaning.cleaner
    pages = Pages(
        lambda: readings(
            harness,
            clients=harness.broker,
            log_cleaner=cleaner,
            full_directories=harness.executor.logs.full_directories.ages_ms(),
            full_rooms=harness.executor.logs.full_directories.rooms(),
            stopping=harness.broker.lifecycle.has_ended,
        ),
        lambda took_ns: None,
    )

    async def watched(request: Request) -> Response | Stream:
        if seen is not None:
            seen.append(request.headers.get("authorization", ""))
        return await handle(request)

    handle = pages.handle
    if config.metrics_password:
        handle = with_password(pages.handle, USER, PASSWORD, 0.0, lambda: None)

    async def ask() -> list[Finding]:
        loop = asyncio.get_running_loop()
        served = HttpConnections(loop, watched, lambda error: None)
        tls = None if served_by is None else served_by.server
        server = await loop.create_server(served.factory, "127.0.0.1", port, ssl=tls)
        try:
            return await (probe_page(config, 5.0) if elsewhere is None else probe_pages(elsewhere(port), 5.0))
        finally:
            server.close()
            served.close()

    return asyncio.run(ask())


def test_logs_that_cannot_be_cleaned_are_named_with_the_reason_and_a_remedy(tmp_path: Path) -> None:
    home = tmp_path / "broker"
    home.mkdir()
    harness = BrokerHarness(home).run()
    assert findings(harness, tmp_path) == []
    cleaner = harness.executor.cleaning.cleaner
    cleaner.set_aside(("t", 3), "/data/t-3/0.log, byte 0: damaged", 10)
    (found,) = findings(harness, tmp_path)
    assert found.is_wrong
    assert found[2:] == ("t-3", "its log cannot be cleaned: /data/t-3/0.log, byte 0: damaged", REMEDY)
    for partition in range(MAX_NAMED + 4):
        cleaner.set_aside(("u", partition), "damaged", 10)
    *named, last = findings(harness, tmp_path, ":{}")
    assert len(named) == MAX_NAMED
    assert last.text == "5 more logs cannot be cleaned"


def test_logs_that_cannot_be_used_are_named_with_the_reason_and_a_remedy(tmp_path: Path) -> None:
    home = tmp_path / "broker"
    home.mkdir()
    harness = BrokerHarness(home).run()
    harness.broker.replicas.offline["t", 3] = "/data/t-3/0.log, byte 0: damaged"
    (found,) = findings(harness, tmp_path)
    assert found[2:] == (
        "t-3",
        "this broker cannot use its log: /data/t-3/0.log, byte 0: damaged",
        REPLACE,
    )


def test_a_log_directory_without_room_or_offline_has_its_reason_and_remedy(tmp_path: Path) -> None:
    home = tmp_path / "broker"
    home.mkdir()
    harness = BrokerHarness(home).run()
    offline = harness.broker.replicas.offline
    harness.executor.logs.full_directories.note("/full")
    for partition in range(2, 7):
        offline["t", partition] = f"cannot write to /full/t-{partition}/0.timeindex: no space left on device"
    harness.executor.logs.full_directories.needed_bytes = {"/full": 3 << 20}.__getitem__
    harness.disk.capacity_bytes = sum(map(harness.disk.size_bytes, harness.disk.paths())) + (1 << 20)
    harness.broker.directory_errors["/lost"] = "/lost/t-1: input/output error"
    offline["t", 1] = "the log of t-1 may be in /lost, offline"
    offline["t", 7] = "/lost-2/t-7/0.log, byte 0: damaged"
    offline["t", 8] = "/fuller/t-8/0.log, byte 0: damaged"
    found = {one.subject: one for one in findings(harness, tmp_path)}
    assert found.pop("t-7").remedy == found.pop("t-8").remedy == REPLACE, "another directory's name is longer"
    assert set(found) == {"/full", "/lost", "t-1"}, "one problem for a full disk"
    text = (
        "1.0 MiB free: this broker refuses records there, 0 s ago last; it cannot use its logs of t-2, t-3, "
        "t-4 and 2 more; opening them needs about 3.0 MiB"
    )
    remedy = "make room on that disk, about 3.0 MiB at least, or enlarge it; the broker needs no restart"
    assert found["/full"][3:] == (text, remedy)
    own = [problem("disk", "/full", "it is full", "make room"), ok("disk", "/lost", "20 GiB free")]
    joined = {one.text for one in join_full_disks(own, list(found.values()))}
    assert joined == {f"it is full; {text}", "20 GiB free", found["/lost"].text, found["t-1"].text}
    assert found["/lost"].text == "this broker has taken it offline: /lost/t-1: input/output error"
    assert found["t-1"].remedy == found["/lost"].remedy == REPAIR_DISK


def test_an_internal_topic_that_cannot_be_made_has_its_reason_and_remedy(tmp_path: Path) -> None:
    home = tmp_path / "broker"
    home.mkdir()
    harness = BrokerHarness(home).run()
    harness.broker.topic_creation.failures["__consumer_offsets"] = "it needs 3 brokers"
    (found,) = findings(harness, tmp_path)
    assert found[2:] == ("__consumer_offsets", "it needs 3 brokers", MORE_BROKERS)


def test_a_listener_with_tls_and_a_password_is_asked_with_both(tmp_path: Path) -> None:
    home = tmp_path / "broker"
    home.mkdir()
    harness = BrokerHarness(home).run()
    harness.executor.cleaning.cleaner.set_aside(("t", 3), "damaged", 10)
    authority = Authority()
    own, other = (
        authority.issue(f"CN={name}").write_pem(tmp_path / f"{name}.pem") for name in ("own", "other")
    )
    changes = {
        "listener__name__metrics__ssl__keystore__type": "PEM",
        "listener__name__metrics__ssl__keystore__location": str(own),
        "kraftd__metrics__user": USER,
        "kraftd__metrics__password": PASSWORD,
    }
    of_own, of_other = (
        TlsContexts(TlsSettings(keystore=StoreSettings(type="PEM", location=str(one))))
        for one in (own, other)
    )
    (found,) = findings(harness, tmp_path, "https://127.0.0.1:{}", of_own, **changes)
    assert found.subject == "t-3"
    seen: list[str] = []
    assert findings(harness, tmp_path, "https://127.0.0.1:{}", of_other, seen, **changes) == []
    assert not seen  # another node does not get the password
    changes["kraftd__metrics__password"] = "another"
    assert findings(harness, tmp_path, "https://127.0.0.1:{}", of_own, **changes) == []


def test_a_node_that_does_not_run_has_no_finding(tmp_path: Path) -> None:
    port = free_port()
    config = load(write_config(tmp_path, port, kraftd__metrics__listener=f"127.0.0.1:{free_port()}"))
    assert asyncio.run(probe_page(config, 1.0)) == []
    assert asyncio.run(probe_page(load(write_config(tmp_path, port)), 1.0)) == []


def test_a_follower_that_is_behind_has_what_is_slow(tmp_path: Path) -> None:
    home = tmp_path / "broker"
    home.mkdir()
    harness = BrokerHarness(home).run()
    fetcher = Fetcher(2, 0, None, None)  # type: ignore[arg-type]
    fetcher.followed["t", 0] = None  # type: ignore[index, assignment]
    harness.broker.fetchers._fetchers[2, 0] = fetcher
    now_ms = harness.broker.now_ms
    for at_ms in (now_ms - 2_000, now_ms - 1_000):
        fetcher.times.sent(at_ms)
        fetcher.times.answered(at_ms + 30)
        fetcher.times.took(10_240, is_in_sync=False)
        fetcher.times.wrote(900)
    fetcher.times.sent(now_ms)
    (found,) = findings(harness, tmp_path)
    assert found.is_wrong and found.subject == "node 100"
    assert found.text == (
        f"it is behind: an answer of node 2 takes 30 ms for 10 KiB, its write 900 ms, all else 70 ms: {DISK}"
    )


def test_a_full_log_directory_and_a_stop_are_named(tmp_path: Path) -> None:
    home = tmp_path / "broker"
    home.mkdir()
    harness = BrokerHarness(home).run()
    harness.create_topic("t", 2)
    harness.executor.logs.full_directories.note("/data")
    (found,) = findings(harness, tmp_path)
    assert (found.is_wrong, found.subject, found.remedy) == (True, "/data", MAKE_ROOM)
    assert found.text.endswith(" free: this broker refuses records there, 0 s ago last")
    harness.executor.logs.full_directories.wrote("/data")
    harness.broker.lifecycle.state = BrokerState.SHUTTING_DOWN
    (found,) = findings(harness, tmp_path)
    assert (found.is_wrong, found.text) == (False, "it is stopping, and still leads 2 partitions")


def test_brokers_elsewhere_are_asked_at_the_listeners_that_are_named(tmp_path: Path) -> None:
    home = tmp_path / "broker"
    home.mkdir()
    harness = BrokerHarness(home).run()
    closed = free_port()

    def both(port: int) -> list[tuple[str, int]]:
        return [("127.0.0.1", port), ("127.0.0.1", closed)]

    well, none = findings(harness, tmp_path, elsewhere=both)
    assert (well.is_wrong, well.text) == (False, "node 100 names nothing that is full, damaged or slow there")
    assert (none.is_wrong, none.subject) == (True, f"127.0.0.1:{closed}")
    harness.executor.logs.full_directories.note("/data")
    full, _ = findings(harness, tmp_path, elsewhere=both)
    assert (full.is_wrong, full.subject, full.remedy) == (True, "node 100 /data", MAKE_ROOM)
