"""The CPU time of this process and its descendants, and the highest resident memory of each kind.

with Meter() as meter:
    work()
print(meter.figures())
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

SAMPLE_S = 0.1
SHOWN = ("java", "python")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
Sample = tuple[str, int, int]
"""Name, CPU ticks (with those of children that have ended), resident bytes."""


class Meter:
    """Samples the process tree while its block runs; memory of Java's and Python's processes only."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._highest: dict[str, int] = {}
        self._wall_s = self._cpu_s = 0.0

    def __enter__(self) -> Meter:
        self._wall_s, self._cpu_s = -time.monotonic(), -_cpu_seconds(_tree())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._wall_s += time.monotonic()
        self._stop.set()
        self._thread.join()
        self._cpu_s += _cpu_seconds(_tree())

    def figures(self) -> dict[str, float]:
        """Seconds of wall and CPU time, and MiB of the largest process of each name."""
        memory = {f"{name}_mib": round(size / (1 << 20)) for name, size in sorted(self._highest.items())}
        return {"wall_s": round(self._wall_s, 1), "cpu_s": round(self._cpu_s, 1), **memory}

    def _watch(self) -> None:
        while not self._stop.wait(SAMPLE_S):
            for pid, (name, _, resident) in _tree().items():
                if pid != os.getpid() and name.startswith(SHOWN):
                    self._highest[name] = max(self._highest.get(name, 0), resident)


def _tree() -> dict[int, Sample]:
    """This process and its descendants."""
    samples: dict[int, Sample] = {}
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "stat").read_text()
        except OSError:
            continue
        name, _, rest = text.partition("(")[2].rpartition(")")
        fields = rest.split()
        parents[int(entry.name)] = int(fields[1])
        ticks = sum(int(field) for field in fields[11:15])
        samples[int(entry.name)] = (name, ticks, int(fields[21]) * PAGE_BYTES)
    found: dict[int, Sample] = {}
    for pid, sample in samples.items():
        at = pid
        while at not in (0, 1, os.getpid()):
            at = parents.get(at, 0)
        if at == os.getpid():
            found[pid] = sample
    return found


def _cpu_seconds(tree: dict[int, Sample]) -> float:
    return sum(ticks for _, ticks, _ in tree.values()) / TICKS_PER_SECOND
