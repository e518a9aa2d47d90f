"""Runs the commands of docs/migration.md as printed there, on directories in place of machines.

A word in capitals on the page is a placeholder for a value that the operator knows; here a mapping has it.
"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from testkit.java import java_command
from testkit.node import LOG_FLAGS, Controller, Kind
from testkit.process import wait_until

PAGE = Path(__file__).resolve().parents[3] / "docs" / "migration.md"
_PLACEHOLDER = re.compile(r"\b[A-Z]+(?:_[A-Z]+)*(?::[A-Z]+)?\b")
_SCRIPTS = {
    "kafka-server-start.sh": "kafka.Kafka",
    "kafka-metadata-quorum.sh": "org.apache.kafka.tools.MetadataQuorumCommand",
}


def commands(heading: str) -> list[str]:
    """The commands under a heading of the page, without comments and line ends."""
    section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = re.sub(r"\\\n\s+", "", section).splitlines()
    return [line.partition(" #")[0].strip() for line in lines if line.startswith("    ")]


class Machine:
    """The directory of one controller, with Kafka's scripts and kraftd on the PATH."""

    def __init__(self, controller: Controller, file: str = "controller.properties") -> None:
        self.controller, self._home = controller, controller.home
        self._bin = controller.home / "bin"
        self._bin.mkdir()
        for script, main_class in _SCRIPTS.items():
            flags = LOG_FLAGS if main_class == "kafka.Kafka" else ()
            self._script(script, f'exec {shlex.join(java_command(main_class, flags=flags))} "$@"')
        # The distribution's script finds the controller's process, the only one on its machine.
        self._script("kafka-server-stop.sh", 'kill -s TERM "$PID_OF_KAFKA"')
        self._script("kraftd", f'exec {shlex.quote(sys.executable)} -m kraftd "$@"')
        controller.properties_file.rename(controller.home / file)
        controller.properties_file = controller.home / file

    def __repr__(self) -> str:
        return f"<Machine of {self.controller!r}>"

    def _script(self, name: str, line: str) -> None:
        path = self._bin / name
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)

    def run(self, command: str, known: Mapping[str, str]) -> str:
        """Run a command of the page to its end, which must succeed; return its output."""
        done = subprocess.run(
            self._words(command, known), cwd=self._home, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def start(self, command: str, kind: Kind) -> None:
        """Start this machine's controller by the command, and wait until it answers."""
        command = command.removesuffix("&").strip()
        self.controller.kind = kind
        self.controller.command_line = lambda: self._words(f"exec {command}", {})
        self.controller.start()
        self.controller.wait_ready()

    def stop(self, command: str) -> None:
        """Run the command that stops this machine's controller, and wait for its end."""
        pid = str(self.controller.pid)
        self.run(command, {"PID_OF_KRAFTD": pid, "PID_OF_KAFKA": pid})
        wait_until(lambda: not self.controller.alive, f"{self.controller} has ended")
        assert self.controller.exit_code == (0 if self.controller.kind == "kraftd" else 128 + signal.SIGTERM)

    def _words(self, command: str, values: Mapping[str, str]) -> list[str]:
        script = _PLACEHOLDER.sub(lambda found: values.get(found[0], found[0]), command)
        path = f"PATH={self._bin}:/usr/bin:/bin"
        pid = f"PID_OF_KAFKA={values.get('PID_OF_KAFKA', '')}"
        return ["env", path, pid, "bash", "-c", script]
