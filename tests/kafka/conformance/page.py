"""Writes docs/conformance.md from the answers to sequences."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from kraftd.wire.error_code import ErrorCode, error_name
from tests.kafka.conformance.seen import CLOSED, Cell, Seen, api_name

PAGE = Path(__file__).resolve().parents[3] / "docs" / "conformance.md"
_HEAD = """# Conformance: kraftd beside Apache Kafka 4.3.1

`make conformance` writes this page. It starts Apache Kafka's controller and kraftd behind SASL and the
StandardAuthorizer, and sends both the same sequences of requests, drawn from seeds. A request is valid, at a
boundary, cut short, or in conflict with others. The run draws every API of the controller listener in every
version, directly and in an Envelope. Some requests come from a super user, others from users whose ACLs
change.

The run compares the answers field by field, except texts, times and drawn ids. After every request it reads
both logs and compares them record by record. After some requests, and at the end of a sequence, other APIs
show the state. At the end it compares the snapshots of both.

Some pairs of controllers have an older metadata.version, a static quorum, no authorizer or no secret key for
delegation tokens. Some do not delete topics (`delete.topic.enable=false`). The first 20,995 sequences had no
such pairs, and no expired tokens or existing snapshots.

What a broker's listener serves is [at the end](#a-brokers-listener).
The rules of six KIPs, each with its tests, are in [kips.md](kips.md).

"""
BROKERS = "\n## A broker's listener\n"
_TABLE = """
## Answers

The codes are those of Kafka's answers, each with its number of answers. `closed` is a connection that Kafka
closed. The last column says whether kraftd answered the same.

| API | version | sent directly | in an Envelope | kraftd |
|---|---|---|---|---|
"""
_ARGUED = """
## Deliberate differences that the run met

Each has its entry in [divergence.md](divergence.md).

"""


_NO_DIFFERENCE = "no difference but the deliberate ones"
_COUNTS = re.compile(r"^([\d,]+) sequences of ([\d,]+) requests", re.MULTILINE)
_ROW = re.compile(r"^\| \w+ \((\d+)\) \| (\d+) \| (.*) \| (.*) \| (.*) \|$", re.MULTILINE)
_CODE = re.compile(r"(\w+) ([\d,]+)")
_WRONG = re.compile(r"\*\*another answer\*\* to (\w+)")
_KNOWN = re.compile(r"(\w+): ([^;]+)")


def summary(seen: Seen) -> str:
    """One line: what all runs of the page played, and whether all answers were alike."""
    found = f"{seen.different.total():,} answers that differ" if seen.different else _NO_DIFFERENCE
    return f"{seen.sequences:,} sequences of {seen.steps:,} requests: {found}."


def read(text: str) -> Seen:
    """Read a page's counts, so that the next run adds to them."""
    seen = Seen()
    counts = _COUNTS.search(text)
    assert counts, "the page does not say how many sequences were played"
    seen.sequences, seen.steps = (int(count.replace(",", "")) for count in counts.groups())
    for api, version, direct, enveloped, verdict in _ROW.findall(text):
        wrong, known = set(_WRONG.findall(verdict)), dict(_KNOWN.findall(verdict))
        for is_enveloped, codes in ((False, direct), (True, enveloped)):
            for name, count in _CODE.findall(codes):
                cell = Cell(int(api), int(version), is_enveloped, _code(name))
                number = int(count.replace(",", ""))
                if name in wrong:
                    seen.different[cell] = number
                elif name in known:
                    seen.deliberate[cell, known[name]] = number
                else:
                    seen.same[cell] = number
    return seen


def _code(name: str) -> int | str:
    return CLOSED if name == CLOSED else int(ErrorCode[name])


def page(seen: Seen, summary: str, brokers: str = "") -> str:
    """The whole page; `summary` is the line about what was played, `brokers` the part that no run writes."""
    counted = "".join(_divergences(seen)) + _TABLE + "".join(_rows(seen))
    return _HEAD + summary + "\n" + counted + brokers


def part_of_brokers(text: str) -> str:
    """The part of a page about a broker's listener."""
    return "".join(text.partition(BROKERS)[1:])


def _divergences(seen: Seen) -> Iterator[str]:
    counts: dict[str, int] = defaultdict(int)
    for (_, title), count in seen.deliberate.items():
        counts[title] += count
    if counts:
        yield _ARGUED
        yield from (f"- {title}: {count} answers\n" for title, count in sorted(counts.items()))


def _rows(seen: Seen) -> Iterator[str]:
    deliberate = dict(list(seen.deliberate))
    totals: dict[Cell, int] = defaultdict(int)
    for counter in (seen.same, seen.different):
        for cell, count in counter.items():
            totals[cell] += count
    for (cell, _), count in seen.deliberate.items():
        totals[cell] += count
    for api, version in sorted({(cell.api, cell.version) for cell in totals}):
        cells = {cell: count for cell, count in totals.items() if cell[:2] == (api, version)}
        direct, enveloped = (
            _codes((cell.code, count) for cell, count in cells.items() if cell.enveloped is is_enveloped)
            for is_enveloped in (False, True)
        )
        wrong = sorted({_name(cell.code) for cell in cells if cell in seen.different})
        known = sorted({f"{_name(cell.code)}: {deliberate[cell]}" for cell in cells if cell in deliberate})
        verdict = "; ".join([*(f"**another answer** to {one}" for one in wrong), *known]) or "the same"
        yield f"| {api_name(api)} ({api}) | {version} | {direct} | {enveloped} | {verdict} |\n"


def _codes(counted: Iterable[tuple[int | str, int]]) -> str:
    known = sorted(counted, key=lambda one: (isinstance(one[0], str), one[0]))
    return ", ".join(f"{_name(code)} {count:,}" for code, count in known) or "–"


def _name(code: int | str) -> str:
    return CLOSED if isinstance(code, str) else error_name(code)
