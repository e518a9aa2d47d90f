"""Topics by name, and names that collide in metrics, where "." and "_" are equal."""

from __future__ import annotations


class TopicNames:
    """`ids` maps each name to its topic id."""

    __slots__ = ("_dotted", "ids")

    def __init__(self) -> None:
        self.ids: dict[str, bytes] = {}
        self._dotted: dict[str, tuple[str, ...]] = {}  # names with "_" for "." -> the names with a "."

    def add(self, name: str, topic_id: bytes) -> None:
        self.ids[name] = topic_id
        if "." in name:
            metric = name.replace(".", "_")
            self._dotted[metric] = (*self._dotted.get(metric, ()), name)

    def remove(self, name: str) -> None:
        del self.ids[name]
        if "." in name:
            metric = name.replace(".", "_")
            rest = tuple(other for other in self._dotted.pop(metric) if other != name)
            if rest:
                self._dotted[metric] = rest

    def colliding(self, name: str) -> str | None:
        """Another name that is equal in metrics."""
        metric = name.replace(".", "_")
        if metric != name and metric in self.ids:
            return metric
        return next((other for other in self._dotted.get(metric, ()) if other != name), None)

    def __repr__(self) -> str:
        return f"<TopicNames {len(self.ids)}>"
