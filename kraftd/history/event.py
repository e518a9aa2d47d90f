"""An event in a cluster, as a sentence for people and as fields for scripts."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Meaning(Struct, frozen=True):
    """The meaning of one record, without its offset.

    kind is a short name for scripts ("leader-moved"); subject is the kind of thing: "topic", "broker",
    "controller", "quorum" and so on. details can be written as JSON.
    """

    kind: str
    text: str
    subject: str
    name: str = ""
    topic: str | None = None
    partition: int | None = None
    details: dict[str, Any] = {}


class Event(Struct, frozen=True):
    """An event at an offset; timestamp_ms is the leader's clock when it appended the batch."""

    offset: int
    epoch: int
    timestamp_ms: int
    meaning: Meaning

    @property
    def text(self) -> str:
        """The sentence on one line: control characters in names and values are escaped."""
        text = self.meaning.text
        if text.isprintable():
            return text
        return "".join(
            one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text
        )

    @property
    def kind(self) -> str:
        return self.meaning.kind

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds of the event: one change of a partition may move its leader and shrink its ISR."""
        return tuple(self.meaning.details.get("kinds", (self.meaning.kind,)))

    def row(self) -> dict[str, Any]:
        """The event as one JSON object; keys without a value are left out."""
        meaning = self.meaning
        row: dict[str, Any] = {
            "offset": self.offset,
            "epoch": self.epoch,
            "timestamp_ms": self.timestamp_ms,
            "kind": meaning.kind,
            "subject": meaning.subject,
        }
        about = {"name": meaning.name or None, "topic": meaning.topic, "partition": meaning.partition}
        row |= {name: value for name, value in about.items() if value is not None}
        return {**row, "text": self.text, **({"details": meaning.details} if meaning.details else {})}

    def __repr__(self) -> str:
        return f"<Event {self.offset}@{self.epoch} {self.kind}: {self.text}>"
