"""What is wrong with a configuration, in words a person can act on."""

from __future__ import annotations

from collections.abc import Sequence


class ConfigError(Exception):
    """A configuration that kraftd will not start with; one problem a line, each with where and what would
    do.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)
