"""Sends requests to both controllers of a pair, and compares answers and records after each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.metadata.image import Image
from kraftd.wire.api import ApiKey
from kraftd.wire.message import Message
from kraftd.wire.table import api_key
from tests.kafka.differential.difference import difference
from tests.kafka.differential.pair import GaveUp, LogPart, Pair, Side
from tests.kafka.differential.requests import RandomRequests


def cannot_be_compared(request: Message, kafkas: Any, ours: Any) -> bool:
    """Return whether a FetchSnapshot got the two answers of a refused partition.

    Kafka's controller fails to encode its refusal, which has no records. kraftd's names the partition's
    error.
    """
    if api_key(request) != ApiKey.FETCH_SNAPSHOT or kafkas.get("errorCode") != -1:
        return False
    refused = [partition for topic in ours["topics"] for partition in topic["partitions"]]
    return not ours["errorCode"] and [bool(one["errorCode"]) and not one["size"] for one in refused] == [True]


def _leads(side: Side) -> bool:
    """Return whether a controller still leads: its log can be read."""
    try:
        side.read_log()
    except (GaveUp, ConnectionError):
        return False
    return True


class Comparison:
    """Asks both. AssertionError at the first difference.

    `image` is the state of the logs. `over` becomes true when Kafka's controller gives up its leadership or
    ends its process.
    """

    def __init__(
        self, pair: Pair, seed: int, kind: Callable[[int, Image, str], RandomRequests] = RandomRequests
    ) -> None:
        self.pair, self.seed = pair, seed
        self.image = Image()
        self.requests = kind(seed, self.image, pair.cluster_id)
        self.over = False
        self._step = 0
        self._last_request = "nothing yet"
        self.read_logs()

    def __repr__(self) -> str:
        return f"<Comparison seed {self.seed} step {self._step} of {self.pair!r}>"

    def play(self, steps: int) -> None:
        """Send this many random requests."""
        for _ in range(steps):
            if not self.over:
                self.ask(*self.requests.next())

    def ask(
        self, request: Message, version: int, then: Callable[[], object] = lambda: None
    ) -> tuple[Any, Any]:
        """Compare both answers and the records written until `then` returns; return both answers."""
        self._step += 1
        self._last_request = f"v{version} {request!r}"
        try:
            raw = [side.ask(request, version) for side in self.pair.sides]
            then()
            parts = [side.read_log() for side in self.pair.sides]  # records define ids in the answers
        except (GaveUp, ConnectionError):
            resigned = [side.controller for side in self.pair.sides if not _leads(side)]
            assert [one.kind for one in resigned] == ["apache"], (
                f"{self._place}: {resigned} at {self._last_request}"
            )
            self.over = True
            return None, None
        kafka, kraftd = (
            side.answer_view(request, version, answer)
            for side, answer in zip(self.pair.sides, raw, strict=True)
        )
        assert kafka == kraftd or cannot_be_compared(request, kafka, kraftd), (
            f"{self._place}: another answer to {self._last_request}\n" + difference(kafka, kraftd)
        )
        self._compare(parts)
        return kafka, kraftd

    def read_logs(self) -> None:
        """Compare the new records of both logs."""
        self._compare([side.read_log() for side in self.pair.sides])

    @property
    def _place(self) -> str:
        return f"seed {self.seed} step {self._step}"

    def _compare(self, parts: list[LogPart]) -> None:
        kafka, kraftd = parts
        assert kafka.batches == kraftd.batches, (
            f"{self._place}: other records after {self._last_request}\n"
            + difference(kafka.batches, kraftd.batches)
        )
        for offset, epoch, message in kafka.records:
            self.image.apply(message, offset, epoch)
        self.requests.batch_starts += [base_offset for base_offset, _, _ in kafka.batches]
        self.requests.log_end = self.pair.apache.next_offset
