"""Metrics of a running Apache Kafka process by JMX, under kraftd's names."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from kraftd.metrics.families.family import prometheus_name
from testkit.java import QUICK_START, compile_java, find_java, find_javac

DOMAINS = ("kafka.controller", "kafka.log", "kafka.network", "kafka.server")


class Attribute(NamedTuple):
    """One attribute of an mbean.

    `bean` is without tags; it includes the attribute where that is the metric, as at the start of kraftd's
    help texts.
    """

    bean: str
    name: str  # the name of the Prometheus metric
    labels: frozenset[tuple[str, str]]
    attribute: str
    text: str

    @property
    def value(self) -> float:
        return float(self.text)


def read_jmx(pid: int) -> list[Attribute]:
    """Every attribute of Kafka's mbeans in a process of this user."""
    javac = find_javac()
    if javac is None:
        pytest.skip("no javac beside the java in use")
    classes = compile_java(javac, Path(__file__).with_name("java") / "JmxReader.java")
    patterns = [f"{domain}:*" for domain in DOMAINS]
    command = [str(find_java()), *QUICK_START, "-cp", str(classes), "JmxReader", str(pid), *patterns]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [attribute(*line.split("\t", 2)) for line in done.stdout.splitlines()]


def attribute(mbean: str, name: str, text: str) -> Attribute:
    domain, _, properties = mbean.partition(":")
    tags = dict(part.partition("=")[::2] for part in properties.split(","))
    bean = f"{domain}:type={tags.pop('type')}"
    bean += f",name={tags.pop('name')}" if "name" in tags else f" {name}"
    labels = frozenset((tag.replace("-", "_"), value) for tag, value in tags.items())
    return Attribute(bean, prometheus_name(bean), labels, name, text)
