"""A scrape of the metrics listener, read by Prometheus' own parser."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]


def get(port: int, path: str, *, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and body."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


def ready(port: int) -> tuple[int, dict[str, Any]]:
    status, _, body = get(port, "/readyz")
    return status, json.loads(body)


class Scrape:
    """All metrics at one moment."""

    def __init__(self, port: int) -> None:
        status, _, self.text = get(port, "/metrics")
        assert status == 200, self.text
        self.families: list[Metric] = list(text_string_to_metric_families(self.text))
        self._values = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        """The value of one sample. Raises KeyError."""
        return self._values[name, frozenset(labels.items())]

    def find(self, name: str, labels: Labels) -> float | None:
        return self._values.get((name, labels))

    def samples(self, name: str) -> Iterator[tuple[Labels, float]]:
        return ((labels, value) for (found, labels), value in self._values.items() if found == name)

    def __repr__(self) -> str:
        return f"<Scrape of {len(self.families)} metrics, {len(self._values)} samples>"
