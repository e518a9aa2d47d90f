"""The error of a configuration, with a text for the operator."""

from __future__ import annotations

from collections.abc import Sequence


class ConfigError(Exception):
    """A configuration with which kraftd does not start; one problem per line, with its place and remedy."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)
