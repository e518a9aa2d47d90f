"""A daemon on a full file system waits, logs that, and continues by itself."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.wire.error_code import ErrorCode
from testkit.process import free_port
from tests.cli.run import fill, mounted
from tests.metrics.scrape import Scrape, ready
from tests.runtime.daemon_process import Client, DaemonProcess
from tests.runtime.test_daemon import creation, register
from tests.runtime.test_snapshots import wait_until


def create(client: Client, name: str) -> int:
    return int(client.call(creation(name), 7).topics[0].error_code)


def said(daemon: DaemonProcess, since: int, text: str) -> list[str]:
    """The events that begin so in the log, from a line on."""
    return [line["event"] for line in daemon.lines()[since:] if line["event"].startswith(text)]


def test_a_full_disk_blocks_writes_until_there_is_space(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "size=1m") as small:
        metrics_port = free_port()
        settings = {
            "metadata__max__idle__interval__ms": 20,
            "broker__session__timeout__ms": 600_000,
            "kraftd__metrics__listener": f"127.0.0.1:{metrics_port}",
        }
        daemon = DaemonProcess(small, None, **settings).format()
        daemon.log = tmp_path / "kraftd.log"  # outside of the full file system
        daemon.start()
        try:
            client = daemon.client()
            epoch = register(client)
            beat = BrokerHeartbeatRequest(1, epoch, current_metadata_offset=epoch)
            assert not client.call(beat, 1).is_fenced
            assert create(client, "before") == ErrorCode.NONE
            filler = fill(small)
            # No-ops need disk space too: one of the next finds none.
            wait_until(lambda: "the disk is full" in daemon.log.read_text(), "it notices")
            other = daemon.client()
            status, found = ready(metrics_port)
            assert (status, found["state"]) == (503, "disk full")
            assert Scrape(metrics_port).value("kraftd_disk_full") == 1
            assert create(other, "meanwhile") == ErrorCode.NOT_CONTROLLER
            assert other.api_versions().finalized_features_epoch >= 0
            filler.unlink()
            wait_until(lambda: "the disk has room again" in daemon.log.read_text(), "it continues")
            assert create(other, "after") == ErrorCode.NONE
            assert ready(metrics_port)[0] == 200
            assert Scrape(metrics_port).value("kraftd_disk_full") == 0
            assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
            again = daemon.start().client()
            wait_until(lambda: create(again, "after") != ErrorCode.NOT_CONTROLLER, "it leads again")
            assert create(again, "before") == ErrorCode.TOPIC_ALREADY_EXISTS
            assert create(again, "after") == ErrorCode.TOPIC_ALREADY_EXISTS
            assert daemon.stop() == 0
            filler = fill(small)
            began = len(daemon.lines())
            daemon.begin()  # it must write its next epoch
            wait_until(lambda: said(daemon, began, "the disk is full: this node waits"), "it waits")
            for _ in range(5):
                with pytest.raises(OSError):
                    daemon.client().api_versions()
            found = daemon.kraftd("doctor", "-c", str(daemon.properties), check=False).stdout
            assert "it is full: nothing can be written to it" in found
            assert "this node runs and does not serve" in found
            assert "make room on its disk, which is full" in found
            assert said(daemon, began, "connection closed") == []
            assert len(said(daemon, began, "the disk is full")) == 1
            filler.unlink()
            wait_until(lambda: said(daemon, began, "the disk has room again"), "it goes on")
            assert daemon.stop() == 0
        finally:
            daemon.stop(signal.SIGKILL)


def test_a_snapshot_that_finds_no_space_is_made_later(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "size=2m") as small:
        daemon = DaemonProcess(small, None, metadata__max__idle__interval__ms=0).format()
        daemon.log = tmp_path / "kraftd.log"
        daemon.start()
        try:
            client = daemon.client()
            epoch = register(client)
            beat = BrokerHeartbeatRequest(1, epoch, current_metadata_offset=epoch)
            assert not client.call(beat, 1).is_fenced
            for number in range(20):
                large = creation(f"large-{number}")
                large.topics[0].num_partitions = 100
                assert client.call(large, 7).topics[0].error_code == ErrorCode.NONE
            filler = fill(small)
            with filler.open("r+b") as file:  # space for the log, not for 200 KiB
                file.truncate(filler.stat().st_size - (64 << 10))
            refused = daemon.kraftd("snapshot", str(daemon.properties), check=False)
            assert refused.returncode != 0
            assert "No space left on device. Make room on that disk" in refused.stderr
            wait_until(lambda: not list(small.rglob("*.part")), "nothing is left of it")
            assert create(client, "meanwhile") == ErrorCode.NONE
            filler.unlink()
            done = daemon.kraftd("snapshot", str(daemon.properties))
            assert ".checkpoint" in done.stdout
            assert daemon.stop() == 0
        finally:
            daemon.stop(signal.SIGKILL)
