"""All metrics as Prometheus or OpenMetrics text, in pieces.

The sender lets other callbacks of the event loop run between two pieces: with hundreds of brokers a scrape is
thousands of lines, and the text is the expensive part.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder

from kraftd.metrics.families import (
    broker_metrics,
    cleaner_metrics,
    client_metrics,
    controller_metrics,
    coordinator_loading,
    metadata_metrics,
    own_metrics,
    partition_metrics,
    quorum_metrics,
    request_metrics,
    share_metrics,
    transaction_metrics,
)
from kraftd.metrics.families.family import Family
from kraftd.metrics.state.readings import Readings

CONTROLLER_FAMILIES: tuple[Family, ...] = (
    *controller_metrics.FAMILIES,
    *quorum_metrics.FAMILIES,
    *metadata_metrics.FAMILIES,
    *request_metrics.FAMILIES,
    *client_metrics.FAMILIES,
    *own_metrics.FAMILIES,
)
FAMILIES = (
    *CONTROLLER_FAMILIES,
    *metadata_metrics.BROKER_FAMILIES,
    *broker_metrics.FAMILIES,
    *partition_metrics.FAMILIES,
    *cleaner_metrics.FAMILIES,
    *transaction_metrics.FAMILIES,
    *share_metrics.FAMILIES,
    *coordinator_loading.FAMILIES,
)
_END = b"# EOF\n"  # ends an OpenMetrics text, once


class _Alone:
    """The registry for an encoder."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self._metric


def collect(readings: Readings, families: tuple[Family, ...]) -> Iterator[Metric]:
    """Every current metric, a large one in parts; the last are of the process and of Python."""
    for family in families:
        yield from family.collect(readings)
    for collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
        yield from collector.collect()


class Exposition:
    """The text in the format of an Accept header; `pieces` are sent one after the other."""

    def __init__(self, readings: Readings, accept: str, families: tuple[Family, ...] = FAMILIES) -> None:
        self._encode, self.content_type = choose_encoder(accept)
        self._readings = readings
        self._families = families

    def pieces(self) -> Iterator[bytes]:
        ended, last = False, ""
        for metric in collect(self._readings, self._families):
            text: bytes = self._encode(_Alone(metric))
            if metric.name == last:
                text = b"".join(line for line in text.splitlines(True) if line == _END or line[:1] != b"#")
            last = metric.name
            if text.endswith(_END):
                ended = True
                text = text.removesuffix(_END)
            yield text
        if ended:
            yield _END

    def __repr__(self) -> str:
        return f"<Exposition as {self.content_type}>"
