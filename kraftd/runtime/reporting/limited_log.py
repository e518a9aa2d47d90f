"""Log lines about peers, limited in rate: unknown peers may cause any number of them."""

from __future__ import annotations

from typing import Any

MAX_LINES_PER_PERIOD = 20


class LimitedLog:
    """Passes on a number of lines per period, then one with the count of omitted ones."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._logged = 0
        self._left_out = 0

    def warn(self, text: str, **fields: Any) -> None:
        """Log a warning, or count it as omitted."""
        if self._logged < MAX_LINES_PER_PERIOD:
            self._logged += 1
            self._log.warning(text, **fields)
        else:
            self._left_out += 1

    def end_period(self) -> None:
        """Begin a new period and log the count of omitted lines; to be called every few seconds."""
        if self._left_out:
            self._log.warning("more of the same was not logged", lines=self._left_out)
        self._logged = self._left_out = 0

    def __repr__(self) -> str:
        return f"<LimitedLog {self._logged} logged, {self._left_out} left out>"
