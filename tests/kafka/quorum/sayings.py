"""What controllers and brokers say is wrong, line by line, without what differs from one run to the next.

`what_kafka_says.txt` keeps every such line that Apache Kafka's brokers and three of its controllers have
logged in the scenario of `test_mixed.py`. KRAFTD_RECORD_SAYINGS=1 with --controller=apache adds to it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

from tests.kafka.node import Node

KNOWN = Path(__file__).with_name("what_kafka_says.txt")
RECORDING = os.environ.get("KRAFTD_RECORD_SAYINGS") == "1"
_LINE = re.compile(r"[\d:.]+ \[.*?\] (ERROR|WARN) (\S+) - (.*)")
_STARTED = re.compile(r"[\d:.]+ \[")
_EXCEPTION = re.compile(r"(?:Caused by: )?([\w.]+(?:Exception|Error))\b")
# What comes behind a colon or in brackets is a state, a request or an address: it differs from run to run.
_VARYING = (
    (re.compile(r"\(.*\)|\{.*\}"), "(…)"),
    (re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])"), "…"),
    (re.compile(r"/?127\.0\.0\.1:\d+"), "…"),
    (re.compile(r"-?\d+"), "#"),
)


def complaints(node: Node) -> set[str]:
    """The errors and warnings of a node of Kafka's, in all of its runs: level, logger, text, exception."""
    found: set[str] = set()
    lines = node.log.read_text(errors="replace").splitlines()
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        said = _LINE.fullmatch(line)
        if said is None:
            continue
        level, logger, text = said.groups()
        thrown = None if _STARTED.match(after) else _EXCEPTION.match(after)
        found.add(f"{level} {logger} - {_constant(text)}" + (f" [{thrown[1]}]" if thrown else ""))
    return found


def _constant(text: str) -> str:
    """The part of a line that is the same in every run."""
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    return text


def errors_of_kraftd(node: Node) -> list[str]:
    """The lines of level error and above that kraftd has logged as this node, and tracebacks."""
    found = []
    for line in node.log.read_text(errors="replace").splitlines():
        if line.startswith("{"):
            if json.loads(line)["level"] not in ("debug", "info", "warning"):
                found.append(line)
        elif line.startswith("Traceback"):
            found.append(line)
    return found


def assert_nothing_new(nodes: Iterable[Node]) -> None:
    """Nobody complains of anything but what is complained of among Kafka's own; kraftd of no error at all."""
    known = set(KNOWN.read_text().splitlines())
    for node in nodes:
        assert errors_of_kraftd(node) == [], node
        new = complaints(node) - known
        if RECORDING:
            known |= new
            KNOWN.write_text("".join(f"{line}\n" for line in sorted(known)))
        else:
            assert not new, f"{node} says what no quorum of Kafka's was heard to say"
