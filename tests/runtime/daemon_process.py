"""A real daemon on loopback, for tests of the process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import testkit.client
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from testkit.process import free_port

CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"
WAIT_S = 60


class Client(testkit.client.Client):
    """A connection to a daemon on loopback."""

    def __init__(self, port: int, client_id: str = "test") -> None:
        super().__init__("127.0.0.1", port, client_id, timeout_s=WAIT_S)

    def api_versions(self) -> Any:
        return self.call(ApiVersionsRequest("test", "1"), 4)


class DaemonProcess:
    """`kraftd` in a separate directory; formatted on the first start."""

    program: Sequence[str] = ("-m", "kraftd")

    def __init__(self, home: Path, port: int | None = None, **settings: Any) -> None:
        self.home = home
        self.port = port or free_port()
        self.properties = home / "controller.properties"
        self.log = home / "kraftd.log"
        extra = "".join(f"{key.replace('__', '.')}={value}\n" for key, value in settings.items())
        self.properties.write_text(
            "process.roles=controller\n"
            "node.id=100\n"
            f"listeners=CONTROLLER://127.0.0.1:{self.port}\n"
            "controller.listener.names=CONTROLLER\n"
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
            f"controller.quorum.bootstrap.servers=127.0.0.1:{self.port}\n"
            f"log.dirs={home / 'data'}\n"
            "kraftd.log.format=json\n" + extra
        )
        self.process: subprocess.Popen[bytes] | None = None

    def format(self) -> DaemonProcess:
        self.kraftd("format", "--config", str(self.properties), "--cluster-id", CLUSTER_ID, "--standalone")
        return self

    def kraftd(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "kraftd", *args]
        return subprocess.run(command, check=check, capture_output=True, text=True, timeout=WAIT_S)

    def start(self) -> DaemonProcess:
        """Start it and wait until it leads and has loaded its metadata."""
        self.begin()
        assert self.process is not None and self.process.stdout is not None
        if b"listening" not in self.process.stdout.readline():
            raise AssertionError(f"it ended with {self.process.wait()}:\n{self.log.read_text()}")
        client = self.client()
        deadline_s = time.monotonic() + WAIT_S
        # answered once the metadata is loaded; the controller's own registration follows a little later
        while client.call(DescribeClusterRequest(endpoint_type=2), 2).controller_id < 0:
            assert time.monotonic() < deadline_s, self.log.read_text()
        client.close()
        return self

    def begin(self) -> DaemonProcess:
        """Start it without waiting."""
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, *self.program, "start", str(self.properties)],
                stdout=subprocess.PIPE,
                stderr=out,
            )
        return self

    def catches(self, number: int) -> bool:
        """Return whether the process handles a signal itself."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
        return bool(int(caught, 16) >> (number - 1) & 1)

    def client(self) -> Client:
        return Client(self.port)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Signal it, wait for its end, and return its exit code."""
        assert self.process is not None and self.process.stdout is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.stdout.close()
        return self.process.wait(WAIT_S)

    def lines(self) -> list[dict[str, Any]]:
        """The log so far, a dict a line."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def rss_bytes(self) -> int:
        assert self.process is not None
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")
