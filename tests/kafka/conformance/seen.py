"""Counts of the error codes in Kafka's and kraftd's answers, by API and version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from kraftd.messages.envelope_request import EnvelopeRequest
from kraftd.wire.api import ApiKey
from kraftd.wire.errors import ProtocolError
from kraftd.wire.frames import parse_request_header
from kraftd.wire.table import api_key
from tests.kafka.conformance.divergences import Divergence, divergence_of
from tests.kafka.conformance.sides import Step

CLOSED = "closed"  # in place of a code: the connection was closed, or no answer came in time


class Cell(NamedTuple):
    """What is counted separately; `code` is an error code of Kafka's answer."""

    api: int
    version: int
    enveloped: bool
    code: int | str


class Seen:
    """Counts of answers that are the same, differ deliberately, or differ."""

    def __init__(self) -> None:
        self.steps = 0
        self.sequences = 0
        self.same: Counter[Cell] = Counter()
        self.deliberate: Counter[tuple[Cell, str]] = Counter()
        self.different: Counter[Cell] = Counter()

    def __repr__(self) -> str:
        return f"<Seen {self.steps} steps of {self.sequences} sequences, {len(self.different)} differ>"

    def note(self, step: Step, kafka: Any, kraftd: Any) -> Divergence | None:
        """Count both answers to a step.

        Returns the deliberate difference between them, or None if they are the same or differ otherwise.
        """
        self.steps += 1
        request = step.request
        api, version, enveloped = api_key(request), step.version, False
        carried = carried_api(request, kafka)
        if carried is not None:
            self._count(Cell(api, version, False, 0), kafka == kraftd, None)
            (api, version), enveloped = carried, True
            kafka = kafka["carried"]
            kraftd = kraftd.get("carried", kraftd) if isinstance(kraftd, dict) else kraftd
        same = kafka == kraftd
        divergence = None if same else divergence_of(api, kafka, kraftd)
        for code in codes_of(kafka):
            self._count(Cell(api, version, enveloped, code), same, divergence)
        return divergence

    def _count(self, cell: Cell, same: bool, divergence: Divergence | None) -> None:
        if same:
            self.same[cell] += 1
        elif divergence is not None:
            self.deliberate[cell, divergence.title] += 1
        else:
            self.different[cell] += 1

    def deliberate_cells(self) -> set[Cell]:
        """The cells with deliberate differences."""
        return {cell for cell, _ in self.deliberate}

    def add(self, other: Seen) -> None:
        """Add another's counts to these."""
        self.steps += other.steps
        self.sequences += other.sequences
        self.same.update(other.same)
        self.deliberate.update(other.deliberate)
        self.different.update(other.different)


def carried_api(request: Any, view: Any) -> tuple[int, int] | None:
    """API and version of the request in an Envelope, if the controller opened it."""
    if not isinstance(request, EnvelopeRequest) or not isinstance(view, dict) or "carried" not in view:
        return None
    try:
        _, key, version, _ = parse_request_header(bytes(request.request_data))
    except ProtocolError:
        return None
    return key, version


def codes_of(view: Any) -> set[int | str]:
    """All error codes of an answer; NONE if it has none."""
    if isinstance(view, str):
        return {CLOSED}
    return set(_codes(view)) or {0}


def _codes(view: Any) -> Iterator[int]:
    if isinstance(view, dict):
        if "errorCode" in view:
            yield view["errorCode"]
        for value in view.values():
            yield from _codes(value)
    elif isinstance(view, list):
        for value in view:
            yield from _codes(value)


def api_name(key: int) -> str:
    return "".join(word.capitalize() for word in ApiKey(key).name.split("_"))
