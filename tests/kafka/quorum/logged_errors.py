"""The errors and warnings that controllers and brokers log, without what differs between runs.

`what_kafka_logs.txt` has all that Apache Kafka's brokers and three of its controllers logged in this folder's
tests: with --controller=apache and KRAFTD_RECORD_LOGS=1 the tests add to it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from testkit.node import Node

KNOWN = Path(__file__).with_name("what_kafka_logs.txt")
RECORDING = os.environ.get("KRAFTD_RECORD_LOGS") == "1"
Level = Literal["WARN", "ERROR"]
_LINE = re.compile(r"[\d:.]+ \[(.*?)\] (WARN|ERROR) (\S+) - (.*)")
# A node that stops closes its metrics and publishers while its request handlers still answer: what they
# throw then is a race of Kafka's own, and another one each time.
_HANDLER = "data-plane-kafka-request-handler-"
_STOPPING, _STARTING = "Stopping socket server request processors", "Enabling request processing."
# It logs how long an event took: in a controller that was frozen meanwhile, or on a busy machine.
_OF_TIME = "org.apache.kafka.controller.EventPerformanceMonitor"
_STARTED = re.compile(r"[\d:.]+ \[")
_EXCEPTION = re.compile(r"(?:Caused by: )?([\w.]+(?:Exception|Error))\b")
# Behind a colon or in brackets is a state, a request or an address: it differs from run to run.
_VARYING = (
    (re.compile(r"\(.*\)|\{.*\}"), "(…)"),
    (re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])"), "…"),
    (re.compile(r"/[\w-]+(?:/[\w.-]+)+"), "…"),
    (re.compile(r"/?127\.0\.0\.1:\d+"), "…"),
    (re.compile(r"(?<=partition )\S+"), "…"),
    (re.compile(r"(?<=NodeToControllerChannelManager id=)(\d+ name=)[\w-]+"), r"\1…"),  # several of them ask
    (re.compile(r"-?\d+"), "#"),
)


def logged_by_kafka(node: Node) -> set[str]:
    """The lines that Kafka's code logged as this node, in all of its runs: level, logger, text, exception."""
    found: set[str] = set()
    lines = node.log.read_text(errors="replace").splitlines()
    stopping = False
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if line.endswith((_STOPPING, _STARTING)):
            stopping = line.endswith(_STOPPING)
        entry = _LINE.fullmatch(line)
        if entry is None:
            continue
        thread, level, logger, text = entry.groups()
        if logger == _OF_TIME or (stopping and thread.startswith(_HANDLER)):
            continue
        thrown = None if _STARTED.match(after) else _EXCEPTION.match(after)
        found.add(f"{level} {logger} - {_constant(text)}" + (f" [{thrown[1]}]" if thrown else ""))
    return found


def _constant(text: str) -> str:
    """The part of a line that is the same in every run."""
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    return text


def errors_of_kraftd(node: Node) -> list[str]:
    """The lines of level error and above that kraftd logged as this node, and tracebacks."""
    found = []
    for line in node.log.read_text(errors="replace").splitlines():
        if line.startswith("{"):
            if json.loads(line)["level"] not in ("debug", "info", "warning"):
                found.append(line)
        elif line.startswith("Traceback"):
            found.append(line)
    return found


def assert_nothing_new(nodes: Iterable[Node], level: Level = "ERROR") -> None:
    """Check that kraftd logged no errors, and other nodes only errors that Kafka's own log among themselves.

    At level WARN the same holds of the warnings of other nodes.
    """
    known = set(KNOWN.read_text().splitlines())
    for node in nodes:
        assert errors_of_kraftd(node) == [], node
        logged = {one for one in logged_by_kafka(node) if level == "WARN" or one.startswith("ERROR")}
        assert RECORDING or logged <= known, f"{node!r}: Kafka's own do not log {sorted(logged - known)}"


def record(nodes: Iterable[Node]) -> None:
    """Add the lines of these nodes, all of Kafka's own, to the known ones."""
    known = set(KNOWN.read_text().splitlines())
    for node in nodes:
        known |= logged_by_kafka(node)
    KNOWN.write_text("".join(f"{line}\n" for line in sorted(known)))
