"""What a check of a configuration finds, each finding with the key, its value and where it was set."""

from __future__ import annotations

from collections.abc import Mapping

from kraftd.config.settings import Setting
from kraftd.configdef.definition import Value


class Findings:
    """Problems, which keep the daemon from starting, and warnings, which do not."""

    def __init__(
        self, settings: Mapping[str, Setting], values: Mapping[str, Value], warnings: list[str]
    ) -> None:
        self.problems: list[str] = []
        self.warnings = warnings
        self._settings = settings
        self._values = values

    def __repr__(self) -> str:
        return f"<{len(self.problems)} problems, {len(self.warnings)} warnings>"

    def is_set(self, key: str) -> bool:
        return key in self._settings

    def text(self, key: str) -> str:
        """The text of a key as it was set, "" where it is not."""
        setting = self._settings.get(key)
        return setting.text if setting else ""

    def said(self, key: str) -> str:
        """A key as it was set, or its default."""
        setting = self._settings.get(key)
        return setting.shown() if setting else f"{key} (not set)"

    def refuse(self, key: str, why: str) -> None:
        """A problem with a key: why it cannot be so, and what would do."""
        setting = self._settings.get(key)
        self.problems.append(f"{self.said(key)}: {why}" + (f" ({setting.where})" if setting else ""))

    def require(self, holds: bool, key: str, why: str) -> None:
        if not holds:
            self.refuse(key, why)
