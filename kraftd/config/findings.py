"""The findings of a configuration's checks, each with the key, its value and its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kraftd.config.rows import Unread
from kraftd.config.settings import Setting
from kraftd.configdef.definition import Value


class Findings:
    """Problems, which prevent the daemon's start, and warnings, which do not.

    `problems` may already hold those of single keys, for which `values` has no value.
    """

    def __init__(
        self,
        settings: Mapping[str, Setting],
        values: Mapping[str, Value],
        warnings: list[str],
        problems: Sequence[str] = (),
    ) -> None:
        self.problems = list(problems)
        self.warnings = warnings
        self._settings = settings
        self._values = values

    def __repr__(self) -> str:
        return f"<{len(self.problems)} problems, {len(self.warnings)} warnings>"

    def is_set(self, key: str) -> bool:
        return key in self._settings

    def text(self, key: str) -> str:
        """The text of a key as set; "" if it is not set."""
        setting = self._settings.get(key)
        return setting.text if setting else ""

    def shown(self, key: str) -> str:
        """A key as set, or its default."""
        setting = self._settings.get(key)
        return setting.shown() if setting else f"{key} (not set)"

    def number(self, key: str) -> float:
        """The value of a key that is a number. Raises Unread."""
        value = self._values.get(key)
        if not isinstance(value, int | float):
            raise Unread(f"{key} has not been read")
        return value

    def refuse(self, key: str, why: str) -> None:
        """Add a problem with a key: the reason and the remedy."""
        setting = self._settings.get(key)
        self.problems.append(f"{self.shown(key)}: {why}" + (f" ({setting.where})" if setting else ""))

    def require(self, holds: bool, key: str, why: str) -> None:
        if not holds:
            self.refuse(key, why)
