"""A child process for work that would block the event loop: started, awaited, and ended with the daemon."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable

from kraftd.named_tuple import NamedTuple


class ChildEnded(NamedTuple):
    """The end of a child: its exit code (negative for a signal) and its output."""

    exit_code: int
    out: bytes
    err: str


class Child:
    """`python -m module arguments`, awaited in a thread; `ended` is called through `call_soon`.

    Its standard input stays open as long as this process lives; at its end the child ends too.
    """

    def __init__(
        self,
        module: str,
        arguments: list[str],
        call_soon: Callable[..., object],
        ended: Callable[[ChildEnded], None],
    ) -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        self._call_soon = call_soon
        self._ended = ended
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False
        self._thread = threading.Thread(target=self._run, name=f"kraftd-{module}", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def abandon(self) -> None:
        """End it without waiting; `ended` is called afterwards."""
        with self._lock:
            if self._process is not None:
                self._process.kill()

    def kill(self) -> None:
        """End it and wait; `ended` is not called."""
        with self._lock:
            self._killed = True
            if self._process is not None:
                self._process.kill()
        self._thread.join()

    def _run(self) -> None:
        with self._lock:
            if self._killed:
                return
            try:
                # With a process group of its own, a terminal's signals reach only the daemon, which forwards
                # them.
                process = self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    process_group=0,
                )
            except OSError as error:
                self._call_soon(self._ended, ChildEnded(1, b"", str(error)))
                return
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        # The child writes one line to each, so no pipe fills up while the other is read.
        out, err = process.stdout.read(), process.stderr.read()
        exit_code = process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()
        if not self._killed:
            ended = ChildEnded(exit_code, out, err.decode(errors="replace").strip())
            self._call_soon(self._ended, ended)

    def __repr__(self) -> str:
        return f"<Child {self.pid} {' '.join(self._command[2:3])}>"
