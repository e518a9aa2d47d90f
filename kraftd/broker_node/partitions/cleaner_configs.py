"""The configs of the log cleaner that may change while a broker runs (`log.cleaner.*`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.broker_node.effects import SetCleaner
from kraftd.configdef.definition import Value, broker_def
from kraftd.controller.configs.dynamic import dynamic_server_configs

if TYPE_CHECKING:
    from kraftd.broker_node.partitions.topic_configs import TopicConfigs
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
    """Follows the dynamic configs, and has the cleaner set to them."""

    def __init__(self, configs: TopicConfigs, static: NodeConfig, outbox: Outbox) -> None:
        self._configs = configs
        self._static = static
        self._outbox = outbox
        self._seen: tuple[object, ...] = ()  # the configs that the values are of
        self._values = {key: static.value(key) for key in KEYS}

    def __repr__(self) -> str:
        return f"<CleanerConfigs {self._values}>"

    def refresh(self) -> None:
        """Follow the configs."""
        own, every = seen = self._configs.of_broker()
        if all(one is before for one, before in zip(seen, self._seen, strict=False)) and self._seen:
            return
        self._seen = seen
        dynamic = {
            **dynamic_server_configs(every, per_node=False),
            **dynamic_server_configs(own, per_node=True),
        }
        values: dict[str, Value] = {
            key: broker_def()[key].parse(dynamic[key]) if key in dynamic else self._static.value(key)
            for key in KEYS
        }
        if values != self._values:
            self._values = values
            self._outbox.emit(SetCleaner(values))
