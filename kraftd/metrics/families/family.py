"""A metric with its name, meaning and reader; and the names of Kafka's metrics here.

An mbean `domain:type=TYPE,name=NAME,key=value` becomes `domain_TYPE_NAME{key="value"}`, an attribute of an
mbean without a name `domain_TYPE_attribute`; characters that Prometheus does not allow in a name become "_".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from kraftd.histogram import Histogram
from kraftd.metrics.state.readings import Readings
from kraftd.named_tuple import NamedTuple

NS_PER_MS = 1_000_000
NS_PER_SECOND = 1_000_000_000
# As Prometheus' JMX exporter writes the percentiles of Kafka's histograms.
SAMPLES_OF_A_PART = 250  # encoded in one event loop callback
QUANTILES = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")

Labels = tuple[str, ...]
Value = float | Histogram
Samples = Iterable[tuple[Labels, Value]]
Read = Callable[[Readings], Samples]
ReadOne = Callable[[Readings], Value | None]


class Family(NamedTuple):
    """One metric. `unit` is what a histogram's numbers are divided by; `bean` is "" for kraftd's own."""

    name: str
    kind: str
    bean: str
    meaning: str
    read: Read
    labels: Labels = ()
    unit: int = 1

    @property
    def help(self) -> str:
        return f"{self.bean}: {self.meaning}" if self.bean else self.meaning

    def collect(self, readings: Readings) -> Iterator[Metric]:
        """The metric for Prometheus, in parts if it has very many samples; none without samples now."""
        samples = iter(self.read(readings))
        while part := list(islice(samples, SAMPLES_OF_A_PART)):
            yield self._metric(part)

    def _metric(self, samples: list[tuple[Labels, Value]]) -> Metric:
        if self.kind == "histogram":
            histogram = HistogramMetricFamily(self.name, self.help, labels=self.labels)
            for labels, value in samples:
                assert isinstance(value, Histogram)
                histogram.add_metric(labels, _buckets(value, self.unit), value.total / self.unit)
            return histogram
        if self.kind == "summary":
            summary = SummaryMetricFamily(self.name, self.help, labels=self.labels)
            for labels, value in samples:
                assert isinstance(value, Histogram)
                named = dict(zip(self.labels, labels, strict=True))
                for quantile in QUANTILES:
                    at = value.quantile(float(quantile)) / self.unit
                    summary.add_sample(self.name, {**named, "quantile": quantile}, at)
                summary.add_metric(labels, value.count, value.total / self.unit)
            return summary
        kind = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        family: Metric = kind(self.name, self.help, labels=self.labels)
        for labels, value in samples:
            family.add_metric(labels, value)  # type: ignore[attr-defined]
        return family

    def __repr__(self) -> str:
        return f"<Family {self.kind} {self.name}>"


def _buckets(histogram: Histogram, unit: int) -> list[tuple[str, float]]:
    """Prometheus' buckets: each counts all values up to its bound."""
    buckets: list[tuple[str, float]] = []
    so_far = 0
    for bound, count in zip(histogram.bounds, histogram.counts, strict=False):
        so_far += count
        buckets.append((repr(bound / unit), so_far))
    buckets.append(("+Inf", so_far + histogram.counts[-1]))
    return buckets


def prometheus_name(bean: str) -> str:
    """The name of an mbean, or of an mbean and an attribute with a space between them."""
    bean, _, attribute = bean.partition(" ")
    domain, _, properties = bean.partition(":")
    named = dict(part.partition("=")[::2] for part in properties.split(","))
    parts = [domain, named["type"], *([named["name"]] if "name" in named else []), attribute]
    return re.sub(r"[^a-zA-Z0-9_:]", "_", "_".join(filter(None, parts)))


class Bean(NamedTuple):
    """The metrics of one type of mbeans; `named` where each is an mbean of its own, not an attribute."""

    domain: str
    type: str
    named: bool = True

    def gauge(self, name: str, meaning: str, read: ReadOne) -> Family:
        return self.family("gauge", name, meaning, one(read))

    def counter(self, name: str, meaning: str, read: ReadOne) -> Family:
        return self.family("counter", name, meaning, one(read))

    def histogram(self, name: str, meaning: str, read: ReadOne, unit: int = NS_PER_MS) -> Family:
        return self.family("histogram", name, meaning, one(read), unit=unit)

    def family(
        self, kind: str, name: str, meaning: str, read: Read, labels: Labels = (), unit: int = 1
    ) -> Family:
        bean = f"{self.domain}:type={self.type}" + (f",name={name}" if self.named else f" {name}")
        return Family(prometheus_name(bean), kind, bean, meaning, read, labels, unit)


def own(kind: str, name: str, meaning: str, read: ReadOne, unit: int = 1) -> Family:
    """A metric that Kafka does not have."""
    return Family(f"kraftd_{name}", kind, "", meaning, one(read), (), unit)


def one(read: ReadOne) -> Read:
    """A metric without labels; None is no sample."""

    def samples(readings: Readings) -> Samples:
        value = read(readings)
        return () if value is None else (((), value),)

    return samples
