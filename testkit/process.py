"""One long-lived process of a test: started, watched through its log, and ended by its own id.

``node.py`` decides what runs in it (a broker, a controller) and with which configuration.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

HOST = "127.0.0.1"
_LINES_SHOWN = 15
# Linux's clock of a process: the ticks of /proc/PID/stat are a quarter of what an idle node uses in 20 s.
_SCHEDULER_CLOCK = 2

# Below Linux's ephemeral range, so that no outgoing connection takes a stopped node's port before it
# restarts.
_PORTS = range(20000, 32000)
# Each pytest-xdist worker draws from every eighth port, for the same reason: no other worker uses these.
_WORKERS = 8
_handed_out: deque[int] = deque(maxlen=500)


def _own_ports() -> range:
    """The ports that this process may hand out: all of them, or those of its pytest-xdist worker."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    return _PORTS[int(worker[2:]) % _WORKERS :: _WORKERS] if worker.startswith("gw") else _PORTS


def free_port() -> int:
    """A loopback port that nothing listens on and that is not among the last 500 of this process."""
    for port in random.SystemRandom().sample(_own_ports(), 200):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        if port not in _handed_out:
            _handed_out.append(port)
            return port
    raise RuntimeError("no free loopback port in 200 tries")


def wait_until(
    condition: Callable[[], object], what: str, timeout_s: float = 60, poll_s: float = 0.02
) -> float:
    """Poll until the condition holds; the seconds it took. TimeoutError names what did not happen.

    OSError and ConnectionError from the condition mean "not yet": whatever it asks may still be starting.
    """
    started = time.monotonic()
    last: BaseException | None = None
    while time.monotonic() - started < timeout_s:
        try:
            if condition():
                return time.monotonic() - started
            last = None
        except OSError as error:
            last = error
        time.sleep(poll_s)
    raise TimeoutError(f"not within {timeout_s:.0f} s: {what}" + (f" (last: {last!r})" if last else ""))


def let_children_heed_signals() -> None:
    """Give every child process its default handlers of SIGINT and SIGTERM from now on.

    A shell starts background jobs with SIGINT ignored, and children inherit that: a test would interrupt them
    in vain. A handler, unlike an ignored signal, is not inherited; this one does nothing, as before.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


class Process:
    """A child process with its log in a file. It dies with its parent if the system supports that."""

    def __init__(self, name: str, home: Path, command: Callable[[], Sequence[str]]) -> None:
        self.name, self.home, self.command_line = name, home, command
        self.log = home / "log.txt"
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start_bytes = 0
        self.environment: dict[str, str] = {}  # on top of this process's own
        self.started_s = 0.0
        self.frozen = False
        self._got_sigterm = False
        home.mkdir(parents=True, exist_ok=True)

    def __repr__(self) -> str:
        state = f"pid {self.pid}" if self.alive else "not running"
        return f"<{type(self).__name__} {self.name} {state}>"

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} was never started"
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs or before it was started."""
        return self._process.poll() if self._process else None

    def start(self) -> None:
        """Start the process and return at once."""
        assert not self.alive, f"{self.name} runs already"
        command = list(self.command_line())
        if sys.platform == "linux" and (setpriv := shutil.which("setpriv")):
            command = [setpriv, "--pdeathsig", "KILL", *command]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **self.environment}
        # Keep compiled modules, as an installed kraftd does: otherwise each start would compile them all.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        with open(self.log, "ab") as log:
            self._log_start_bytes = log.tell()
            self.started_s = time.monotonic()
            self._got_sigterm = False
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.home, env=environment
            )

    def signal(self, number: int) -> None:
        """Send it a signal, by its id alone."""
        if self.alive:
            os.kill(self.pid, number)
            self._got_sigterm = self._got_sigterm or number == signal.SIGTERM

    def wait_for_end_after_sigterm(self) -> None:
        """Wait for a process that was sent SIGTERM: it runs until it heeds that, a frozen one until its thaw.

        A process that does not end is killed, and TimeoutError reports it.
        """
        if self.alive and self._got_sigterm:
            self.stop()

    def kill(self) -> None:
        """Send SIGKILL, and reap the process."""
        self.signal(signal.SIGKILL)
        if self._process:
            self._process.wait(30)

    def stop(self, timeout_s: float = 60) -> int:
        """Send SIGTERM.

        Return the exit code. A process that does not end is killed, and TimeoutError reports it.
        """
        assert self._process is not None, f"{self.name} was never started"
        self.signal(signal.SIGTERM)
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TimeoutError(f"{self.name} did not end within {timeout_s:.0f} s of SIGTERM") from None

    def freeze(self) -> None:
        """Send SIGSTOP: the process keeps its sockets and does nothing."""
        self.frozen = True
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        self.frozen = False
        self.signal(signal.SIGCONT)

    def log_text(self) -> str:
        """What the current run, not an earlier one, has logged so far."""
        with open(self.log, "rb") as log:
            log.seek(self._log_start_bytes)
            return log.read().decode(errors="replace")

    def log_tail(self, lines: int = _LINES_SHOWN) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def wait(self, condition: Callable[[], object], what: str, timeout_s: float = 90) -> float:
        """wait_until, cut short with the log's tail if the process ends meanwhile."""

        def met_or_still_alive() -> object:
            # The order matters: the condition is checked after a process has ended, too.
            alive = self.alive
            try:
                result = condition()
            except OSError:
                if alive:
                    raise
                result = False
            if not result and not alive:
                raise RuntimeError(f"{self.name} ended with {self.exit_code}:\n{self.log_tail()}")
            return result

        return wait_until(met_or_still_alive, f"{self.name}: {what}", timeout_s)

    def wait_for_log(self, text: str, timeout_s: float = 90) -> float:
        return self.wait(lambda: text in self.log_text(), f"logs {text!r}", timeout_s)

    def cpu_s(self) -> float:
        """User and system CPU seconds used so far, by the kernel's clock of the process."""
        return time.clock_gettime(~self.pid << 3 | _SCHEDULER_CLOCK)

    def rss_mib(self) -> float:
        """Resident memory, in MiB."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def peak_rss_mib(self) -> float:
        """The most memory that was resident since its start, in MiB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
