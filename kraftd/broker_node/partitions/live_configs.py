"""The configs that a broker follows while it runs, besides those that are read at each use (KIP-226)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kraftd.broker_node.effects import SetCleaner
from kraftd.configdef.definition import Value
from kraftd.controller.configs.dynamic import server_config

if TYPE_CHECKING:
    from kraftd.answers.view import ClusterView
    from kraftd.configdef.node import NodeConfig
    from kraftd.requests.outbox import Outbox

OF_CLEANER = (
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.buffer.size",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.threads",
)
FETCHERS = "num.replica.fetchers"


class LiveConfigs:
    """Follows the configs in force: has the cleaner set to them, and calls `resize` with a new number of
    fetchers a leader.
    """

    def __init__(
        self, view: ClusterView, static: NodeConfig, outbox: Outbox, resize: Callable[[int], None]
    ) -> None:
        self._view = view
        self._outbox = outbox
        self._resize = resize
        self._seen = static  # the configs that the values are of
        self._of_cleaner = _of_cleaner(static)
        self._fetchers = static.integer(FETCHERS)

    def __repr__(self) -> str:
        return f"<LiveConfigs {self._of_cleaner}, {self._fetchers} fetchers a leader>"

    def refresh(self) -> None:
        """Follow the configs."""
        config = server_config(self._view.context)
        if config is self._seen:
            return
        self._seen = config
        of_cleaner, fetchers = _of_cleaner(config), config.integer(FETCHERS)
        if of_cleaner != self._of_cleaner:
            self._of_cleaner = of_cleaner
            self._outbox.emit(SetCleaner(of_cleaner))
        if fetchers != self._fetchers:
            self._outbox.log("info", f"{FETCHERS} changes", now=fetchers, before=self._fetchers)
            self._fetchers = fetchers
            self._resize(fetchers)


def _of_cleaner(config: NodeConfig) -> dict[str, Value]:
    return {key: config.value(key) for key in OF_CLEANER}
