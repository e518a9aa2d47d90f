"""The log directories of this broker that take no new replicas: `cordoned.log.dirs` (KIP-1066).

The value is this broker's dynamic config, else that of the file. The controller learns the directories by
heartbeats, and the logs are notified.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from kraftd.broker_node.effects import CordonDirectories
from kraftd.broker_node.partitions.topic_configs import TopicConfigs
from kraftd.configdef.definition import InvalidValue
from kraftd.configdef.node import NodeConfig, server_key
from kraftd.controller.configs.resources import CORDONED_LOG_DIRS
from kraftd.requests.outbox import Outbox
from kraftd.types import Uuid

ALL = "*"


class Cordoning:
    """`paths` are the cordoned directories, `ids` those of all directories by path, once they are known."""

    def __init__(self, configs: TopicConfigs, static: NodeConfig, outbox: Outbox) -> None:
        self.paths: frozenset[str] = frozenset()
        self.ids: Mapping[str, Uuid | None] = {}
        self._configs = configs
        self._static = static
        self._outbox = outbox
        self._seen: object = None  # the configs that the paths are of

    def __repr__(self) -> str:
        return f"<Cordoning {sorted(self.paths)}>"

    @property
    def directory_ids(self) -> tuple[Uuid, ...]:
        """The ids of the cordoned directories."""
        return tuple(id for path in sorted(self.paths) if (id := self.ids.get(path)) is not None)

    def loaded(self, ids: Mapping[str, Uuid | None]) -> None:
        """Take the directories of log.dirs, with their ids."""
        self.ids, self._seen = ids, None

    def refresh(self) -> bool:
        """Follow the configs; return whether other directories are cordoned now."""
        own = self._configs.of_broker()[0]
        if own is self._seen or not self.ids:
            return False
        self._seen = own
        named = self._named(own.get(CORDONED_LOG_DIRS))
        found = {one: [path for path in self.ids if _is_named(path, one)] for one in named - {ALL}}
        paths = frozenset(self.ids if named == {ALL} else chain.from_iterable(found.values()))
        if unknown := sorted(one for one, its in found.items() if not its):
            text = "cordoned.log.dirs names what is not in log.dirs: it has no effect"
            self._outbox.log("warning", text, directories=unknown)
        if paths == self.paths:
            return False
        self.paths = paths
        self._outbox.emit(CordonDirectories(paths))
        self._outbox.log("info", "log directories are cordoned", directories=sorted(paths))
        return True

    def _named(self, text: str | None) -> set[str]:
        value = self._static.value(CORDONED_LOG_DIRS)
        key = server_key(CORDONED_LOG_DIRS)
        if text is not None and key is not None:
            try:
                value = key.parse(text)
            except InvalidValue:
                return set()  # only what was set before its type was known
        return {str(one).rstrip("/") for one in value} if isinstance(value, list | tuple) else set()


def _is_named(path: str, name: str) -> bool:
    """Return whether a name is that of a directory; a relative one, as in log.dirs, is its end."""
    return path == name or (not name.startswith("/") and path.endswith(f"/{name}"))
