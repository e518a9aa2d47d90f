"""A `kraftd watch` process and the lines that it prints."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from typing import Any

from tests.cli.run import command


class Watch:
    """Runs `kraftd watch --json` with more words until it is stopped."""

    def __init__(self, *words: object) -> None:
        self.process = subprocess.Popen(
            command("watch", *words, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._rest = b""

    def __repr__(self) -> str:
        return f"<Watch pid {self.process.pid}>"

    def line(self, timeout_s: float = 60) -> dict[str, Any]:
        """Return the next event."""
        assert self.process.stdout is not None
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.process.stdout], [], [], timeout_s)
            part = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            assert part, "no event in time"
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        row: dict[str, Any] = json.loads(line)
        return row

    def has_line(self, timeout_s: float) -> bool:
        assert self.process.stdout is not None
        return b"\n" in self._rest or bool(select.select([self.process.stdout], [], [], timeout_s)[0])

    def complaint(self) -> str:
        """Return the next line on standard error."""
        assert self.process.stderr is not None
        return self.process.stderr.readline().decode()

    def wait_until_it_follows(self) -> None:
        """Wait until the watch has loaded the state: it prints the events after that."""
        line = self.complaint()
        assert line.startswith("Following "), line

    def stop(self) -> tuple[int, str]:
        """Interrupt the watch; return its exit code and the rest of standard error."""
        self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate(timeout=30)
        return self.process.returncode, err.decode()
