"""A custom assignor, in processes beside the daemon: one for each group whose target is being computed."""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Mapping

from kraftd.groups.consumer.assignors.spec import Assigned, AssignorFailed, GroupSpec, Waits
from kraftd.runtime.children.assignor_messages import decode_answer, encode_group, read_frame, write_frame
from kraftd.runtime.children.assignor_process import LIMIT_S

MODULE = "kraftd.runtime.children.assignor_process"
MAX_PROCESSES = 4  # further groups wait
FIRST_WAIT_MS, LONGEST_WAIT_MS = 2, 50


class OutsideAssignor:
    """The assignor of an entry point, as a generator that waits for one of its processes."""

    def __init__(self, name: str, properties: Mapping[str, str], limit_s: float = LIMIT_S) -> None:
        self._beginning = pickle.dumps((name, dict(properties)))
        self._limit_s = limit_s
        self._idle: list[subprocess.Popen[bytes]] = []
        self._busy = 0

    def __repr__(self) -> str:
        return f"<OutsideAssignor, {self._busy} busy and {len(self._idle)} idle processes>"

    def __call__(self, group: GroupSpec) -> Waits[Assigned]:
        """The partitions of each member. Raises AssignorFailed."""
        while self._busy >= MAX_PROCESSES:
            yield LONGEST_WAIT_MS
        self._busy += 1
        run = None
        try:
            frame = yield from encode_group(group)
            run = _Run(self._idle.pop() if self._idle else None, self._beginning, frame)
            answer = yield from self._answer(run)
            answered = yield from decode_answer(answer)
        finally:
            self._busy -= 1
            if run is not None and run.is_over and run.answer is not None and not self._idle:
                assert run.process is not None
                self._idle.append(run.process)
            elif run is not None:
                run.abandon()
        if isinstance(answered, str):
            raise AssignorFailed(answered)
        return answered

    def _answer(self, run: _Run) -> Waits[bytes]:
        deadline, wait_ms = time.monotonic() + self._limit_s, FIRST_WAIT_MS
        while not run.is_over:
            if time.monotonic() > deadline:
                raise AssignorFailed(f"it has returned nothing within {self._limit_s:g} s")
            yield wait_ms
            wait_ms = min(2 * wait_ms, LONGEST_WAIT_MS)
        if run.answer is None:
            raise AssignorFailed(run.fault)
        return run.answer


class _Run:
    """One group, given to a process and awaited in a thread. A process that is None is started."""

    def __init__(self, process: subprocess.Popen[bytes] | None, beginning: bytes, frame: bytes) -> None:
        self.process = process
        self.answer: bytes | None = None
        self.fault = ""
        self._beginning = beginning
        self._frame = frame
        self._abandoned = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="kraftd-assignor", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def abandon(self) -> None:
        """End the process; its thread collects it."""
        with self._lock:
            self._abandoned = True
            if self.process is not None:
                self.process.kill()
                if self.is_over:
                    self.process.wait()

    def _run(self) -> None:
        try:
            process = self._started()
        except OSError as error:
            self.fault = f"its process cannot be started: {error}"
            return
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):
            write_frame(process.stdin, self._frame)
            self.answer = read_frame(process.stdout)
        if self.answer is None:
            process.kill()
            self.fault = f"its process has ended with {process.wait()}"
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self.process is not None and self.process.poll() is None:
                return self.process
            self.process = subprocess.Popen(
                [sys.executable, "-m", MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,
            )
            if self._abandoned:
                self.process.kill()
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            write_frame(self.process.stdin, self._beginning)
        return self.process
