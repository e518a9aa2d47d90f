"""Wall clocks of single processes, set while these run, as `date` sets a machine's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("stepped_clock.c")


def lacking() -> str | None:
    """The reason why no process can have its own clock here; None if it can."""
    return None if shutil.which("gcc") else "no gcc on the PATH"


class SteppedClock:
    """The clock of the processes that start with `environment`. Its files are in a folder of its own."""

    def __init__(self, folder: Path, ahead_ms: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._library, self._step = folder / "stepped_clock.so", folder / "step"
        if not self._library.exists():
            subprocess.run(
                ["gcc", "-shared", "-fPIC", "-O1", "-o", self._library, SOURCE, "-ldl"], check=True
            )
        self.set(ahead_ms)

    def __repr__(self) -> str:
        return f"<SteppedClock {self._step}>"

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "KRAFTD_CLOCK_STEP": str(self._step)}

    def set(self, ahead_ms: int) -> None:
        """Set the clock; the bytes are written in place, because the processes map them."""
        with self._step.open("r+b" if self._step.exists() else "wb") as file:
            file.write((ahead_ms * 1_000_000).to_bytes(8, "little", signed=True))
