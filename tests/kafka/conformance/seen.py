"""What sequences have met: of each API and version, the error codes of Kafka's answers and kraftd's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from kraftd.messages.envelope_request import EnvelopeRequest
from kraftd.wire.api import ApiKey
from kraftd.wire.errors import ProtocolError
from kraftd.wire.frames import parse_request_header
from testkit.client import api_key
from tests.kafka.conformance.divergences import Divergence, divergence_of
from tests.kafka.conformance.sides import Step

CLOSED = "closed"  # in place of a code: the connection ended, or nothing came


class Cell(NamedTuple):
    """What is counted by itself; `code` is one of Kafka's answer."""

    api: int
    version: int
    enveloped: bool
    code: int | str


class Seen:
    """Counts of answers."""

    def __init__(self) -> None:
        self.steps = 0
        self.sequences = 0
        self.same: Counter[Cell] = Counter()
        self.argued: Counter[tuple[Cell, str]] = Counter()
        self.different: Counter[Cell] = Counter()

    def __repr__(self) -> str:
        return f"<Seen {self.steps} steps of {self.sequences} sequences, {len(self.different)} differ>"

    def note(self, step: Step, kafka: Any, kraftd: Any) -> Divergence | None:
        """Count both answers to a step.

        Returns the deliberate difference between them. AssertionError for one that is not."""
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
        argued = None if same else divergence_of(api, kafka, kraftd)
        for code in codes_of(kafka):
            self._count(Cell(api, version, enveloped, code), same, argued)
        return argued

    def _count(self, cell: Cell, same: bool, argued: Divergence | None) -> None:
        if same:
            self.same[cell] += 1
        elif argued is not None:
            self.argued[cell, argued.title] += 1
        else:
            self.different[cell] += 1

    def argued_cells(self) -> set[Cell]:
        """Where deliberate differences were met."""
        return {cell for cell, _ in self.argued}

    def add(self, other: Seen) -> None:
        """Count what another has counted."""
        self.steps += other.steps
        self.sequences += other.sequences
        self.same.update(other.same)
        self.argued.update(other.argued)
        self.different.update(other.different)


def carried_api(request: Any, view: Any) -> tuple[int, int] | None:
    """The API and version that an Envelope carried, if it was opened."""
    if not isinstance(request, EnvelopeRequest) or not isinstance(view, dict) or "carried" not in view:
        return None
    try:
        _, key, version, _ = parse_request_header(bytes(request.request_data))
    except ProtocolError:
        return None
    return key, version


def codes_of(view: Any) -> set[int | str]:
    """All error codes of an answer; NONE where it says none."""
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
