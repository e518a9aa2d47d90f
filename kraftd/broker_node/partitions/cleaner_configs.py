"""The configs of the log cleaner that may change while a broker runs (`log.cleaner.*`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.broker_node.effects import SetCleaner
from kraftd.configdef.definition import Value
from kraftd.controller.configs.dynamic import server_config

if TYPE_CHECKING:
    from kraftd.answers.view import ClusterView
    from kraftd.configdef.node import NodeConfig
    from kraftd.requests.outbox import Outbox

KEYS = (
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.threads",
)


class CleanerConfigs:
    """Follows the configs in force, and has the cleaner set to them."""

    def __init__(self, view: ClusterView, static: NodeConfig, outbox: Outbox) -> None:
        self._view = view
        self._outbox = outbox
        self._seen = static  # the configs that the values are of
        self._values = _values_of(static)

    def __repr__(self) -> str:
        return f"<CleanerConfigs {self._values}>"

    def refresh(self) -> None:
        """Follow the configs."""
        config = server_config(self._view.context)
        if config is self._seen:
            return
        self._seen = config
        values = _values_of(config)
        if values != self._values:
            self._values = values
            self._outbox.emit(SetCleaner(values))


def _values_of(config: NodeConfig) -> dict[str, Value]:
    return {key: config.value(key) for key in KEYS}
