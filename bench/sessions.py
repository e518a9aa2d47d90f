"""The cost of an incremental fetch by the partitions of its session: ``python -m bench.sessions`` draws it.

The synthetic partitions have batches of 100 bytes. In each round ten of them grow, and the reader fetches at
its new positions. Measured are the CPU of the fetch, including these changes and the encoding, and the bytes
of its answer.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib

from kraftd.fetch.parked_fetches import ParkedFetches
from kraftd.fetch.session_cache import CacheLimits
from kraftd.fetch.sessions import FetchSessions
from kraftd.ground.pace import at_once
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.wire.frames import encode_response
from testkit.synthetic import SyntheticPartitions, topic_id

matplotlib.use("svg")
from matplotlib import pyplot

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
CHANGED = 10
ROUNDS = 300
VERSION = 17
FETCH = 1
PLOTS = Path(__file__).with_name("plots")
_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "kraftd", "font.size": 8, "font.family": "sans-serif"}


def measure(count: int) -> tuple[float, int]:
    """Microseconds of CPU and bytes of an incremental fetch of a session with that many partitions."""
    source = SyntheticPartitions()
    partitions = source.create("many", topic_id(0), count)
    parked = ParkedFetches(FetchSessions(source, CacheLimits(), lambda: 7))
    in_session = [FetchPartition(index, partition_max_bytes=1 << 20) for index in range(count)]
    everything = FetchRequest(session_epoch=0, topics=[FetchTopic("", topic_id(0), in_session)])
    (full,) = at_once(parked.fetch(0, everything, VERSION, 0))
    answer: Any = full.response
    session_id = answer.session_id
    took_us, size_bytes = [], 0
    moved: list[FetchPartition] = []
    for epoch in range(1, ROUNDS + 1):
        grown = range((epoch * 37) % (count // CHANGED), count, count // CHANGED)
        request = FetchRequest(
            session_id=session_id,
            session_epoch=epoch,
            topics=[FetchTopic("", topic_id(0), moved)] if moved else [],
        )
        began = time.process_time_ns()
        for index in grown:
            partitions[index].append(100)
            partitions[index].high_watermark += 1
            at_once(parked.changed(("many", index), 0))
        (done,) = at_once(parked.fetch(0, request, VERSION, 0))
        answer = done.response
        parts = encode_response(FETCH, VERSION, 1, answer)
        took_us.append((time.process_time_ns() - began) / 1000)
        size_bytes = sum(map(len, parts))
        moved = [
            FetchPartition(one.partition_index, fetch_offset=one.high_watermark, partition_max_bytes=1 << 20)
            for topic in answer.responses
            for one in topic.partitions
        ]
        assert len(moved) == CHANGED
    return median(took_us), size_bytes


def draw(figures: dict[int, tuple[float, int]], path: Path) -> None:
    """Draw the curve of CPU and bytes by partitions."""
    with pyplot.rc_context(_STYLE):
        drawing, axes = pyplot.subplots(figsize=(6, 2.6), layout="constrained")
        axes.plot(list(figures), [cpu for cpu, _ in figures.values()], "o-", color="#2a6f97")
        for count, (cpu_us, size_bytes) in figures.items():
            axes.annotate(
                f"{cpu_us:.0f} us, {size_bytes} B", (count, cpu_us), (0, 6), textcoords="offset points"
            )
        axes.set_xscale("log")
        axes.set_ylim(0, 2 * max(cpu for cpu, _ in figures.values()))
        axes.set_xlabel("partitions in the session")
        axes.set_ylabel("CPU of a fetch, us")
        axes.spines[["top", "right"]].set_visible(False)
        drawing.suptitle(f"An incremental fetch of {CHANGED} changed partitions", x=0.01, ha="left")
        drawing.savefig(path, metadata={"Date": None})
        pyplot.close(drawing)


def main() -> None:
    figures = {count: measure(count) for count in SIZES}
    for count, (cpu_us, size_bytes) in figures.items():
        print(f"{count:>7} partitions: {cpu_us:8.1f} us of CPU, {size_bytes} bytes")
    first, last = figures[SIZES[0]], figures[SIZES[-1]]
    print(f"{SIZES[-1]} beside {SIZES[0]}: CPU {last[0] / first[0]:.2f}x, bytes {last[1] / first[1]:.2f}x")
    draw(figures, PLOTS / "sessions.svg")
    (PLOTS / "sessions.json").write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
