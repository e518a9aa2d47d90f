"""When the code of a broker's coordinators is loaded, and by which thread."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.runtime.late_code import has_coordinators_logs
from testkit.process import free_port, wait_until
from tests.metrics.scrape import Scrape
from tests.runtime.daemon_process import Client, DaemonProcess

STARTED = """
import asyncio, sys
import kraftd.runtime.broker_listeners, kraftd.runtime.daemon
from kraftd.runtime import late_code
def is_loaded(): return "kraftd.groups.coordinator" in sys.modules
late_code.LATER_S = 0.01
async def wait():
    loaded = asyncio.Event()
    late = late_code.LateCode(asyncio.get_running_loop(), loaded.set)
    print(is_loaded())
    await loaded.wait()
    print(is_loaded(), late.load().done())
asyncio.run(wait())
"""
# kraftd, with a line that says which thread loads the coordinators.
TELLING = """
import sys, threading
class Telling:
    def find_spec(self, name, path=None, target=None):
        if name == "kraftd.groups.coordinator":
            is_main = threading.current_thread() is threading.main_thread()
            print("loaded by", "the main thread" if is_main else "another", file=sys.stderr, flush=True)
sys.meta_path.insert(0, Telling())
from kraftd.cli.main import main
main()
"""


class Telling(DaemonProcess):
    """A whole Kafka that tells which thread loads the coordinators."""

    program = ("-c", TELLING)

    def __init__(self, home: Path) -> None:
        self.broker_port, controller_port, self.metrics_port = free_port(), free_port(), free_port()
        ports = f"PLAINTEXT://127.0.0.1:{self.broker_port},CONTROLLER://127.0.0.1:{controller_port}"
        settings: dict[str, Any] = {
            "process__roles": "broker,controller",
            "listeners": ports,
            "offsets__topic__num__partitions": 1,
            "offsets__topic__replication__factor": 1,
            "kraftd__metrics__listener": f"127.0.0.1:{self.metrics_port}",
        }
        super().__init__(home, controller_port, **settings)

    def loaders(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith("loaded by ")]


def test_coordinators_are_loaded_a_little_after_the_start() -> None:
    command = [sys.executable, "-c", STARTED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True"]


def test_the_event_loop_goes_on_while_a_first_request_waits_for_the_code(tmp_path: Path) -> None:
    daemon = Telling(tmp_path).format()
    daemon.start()
    client = Client(daemon.broker_port)
    assert client.call(ListGroupsRequest(), 5).groups == []
    assert daemon.loaders() == ["loaded by another"]
    # With a log of a coordinator's topic, the code is loaded before the node serves.
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
    wait_until(lambda: client.call(request, 4).coordinators[0].node_id == 100, "there is a coordinator")
    client.close()
    assert daemon.stop() == 0
    daemon.start()
    assert daemon.loaders()[1:] == ["loaded by the main thread"]
    assert daemon.stop() == 0


def test_a_scrape_waits_for_the_code(tmp_path: Path) -> None:
    daemon = Telling(tmp_path).format().start()
    assert Scrape(daemon.metrics_port).value("kafka_coordinator_group_GroupMetadataManager_NumGroups") == 0
    assert daemon.loaders() == ["loaded by another"]
    assert daemon.stop() == 0


def test_logs_of_other_topics_and_unreadable_directories_need_no_coordinators(tmp_path: Path) -> None:
    for name in ("__cluster_metadata-0", "__consumer_offsets_copy-0", "t-1", "meta.properties"):
        (tmp_path / name).mkdir()
    assert not has_coordinators_logs([str(tmp_path), str(tmp_path / "none")])
    (tmp_path / "__share_group_state-49").mkdir()
    assert has_coordinators_logs([str(tmp_path / "none"), str(tmp_path)])
