"""Random writes of share partitions, laid over each other here and by Kafka's share coordinator (KIP-932)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from kraftd.groups.share_state.state_batches import StateBatch, combined
from kraftd.partition.share.states import ACKNOWLEDGED, ARCHIVED, AVAILABLE
from testkit.java import QUICK_START, classpath, compile_java, find_java, find_javac

pytestmark = pytest.mark.kafka

SEED = int(os.environ.get("KRAFTD_STATE_BATCHES_SEED") or 0)
WORLDS, WRITES = 400, 12
ORACLE = "org.apache.kafka.coordinator.share.StateBatchesOracle"


def text_of(rows: Iterable[StateBatch]) -> str:
    texts = [f"{row[0]}:{row[1]}:{int(row.delivery_state)}:{row.delivery_count}" for row in rows]
    return ";".join(texts) or "-"


def rows_of(text: str) -> list[StateBatch]:
    found = [] if text == "-" else [tuple(map(int, row.split(":"))) for row in text.split(";")]
    return [StateBatch(first, last, count, state) for first, last, state, count in found]


def spread(rows: Iterable[StateBatch]) -> list[tuple[int, int, int]]:
    """State and count of each offset."""
    return [
        (offset, int(row.delivery_state), row.delivery_count)
        for row in rows
        for offset in range(row.first_offset, row.last_offset + 1)
    ]


def drawn(random: Random) -> list[StateBatch]:
    """What one write says: in order mostly, now and then of the same offsets twice."""
    rows, offset = [], random.randrange(40)
    for _ in range(random.choice([0, 1, 1, 2, 5])):
        last = offset + random.choice([0, 0, 1, 4, 15])
        state = random.choice([AVAILABLE, ACKNOWLEDGED, ARCHIVED])
        rows.append(StateBatch(offset, last, random.choice([1, 1, 2, 3]), state))
        offset = last + 1 if random.random() < 0.8 else random.randrange(40)
    return rows


def test_each_offset_has_the_state_and_count_that_it_has_in_kafka__kip932() -> None:
    javac = find_javac()
    if javac is None:
        pytest.skip("no javac beside the java in use")
    classes = compile_java(javac, Path(__file__).with_name("java") / "StateBatchesOracle.java")
    path = os.pathsep.join([str(classes), classpath()])
    asked: list[str] = []
    ours: list[tuple[StateBatch, ...]] = []
    for world in range(SEED, SEED + WORLDS):
        random, start = Random(world), -1
        kept: tuple[StateBatch, ...] = ()
        for _ in range(WRITES):
            newer = drawn(random)
            start = max(start, random.choice([-1, -1, -1, start + 1, start + 4]))
            asked.append(f"{start} {text_of(kept)} {text_of(newer)}")
            kept = combined(kept, newer, start)
            ours.append(kept)
    command = [str(find_java()), *QUICK_START, "-cp", path, ORACLE]
    questions = "\n".join(asked)
    run = subprocess.run(command, input=questions, capture_output=True, text=True, check=True, timeout=60)
    theirs = [rows_of(line) for line in run.stdout.splitlines()]
    assert len(theirs) == len(ours) == WORLDS * WRITES
    for question, one, other in zip(asked, ours, theirs, strict=True):
        assert spread(one) == spread(other), question
        # Here neighbours with one state and count are one batch.
        assert all(a.last_offset + 1 < b.first_offset or a.rank != b.rank for a, b in pairwise(one)), question
