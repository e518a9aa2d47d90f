"""Compares the output of kraftd's commands on a running quorum with the archive's files."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from testkit.process import Process
from tests.cli.run import Run, command, run
from tests.kafka.clients.scenario import Scene

FIRST_COVERED = re.compile(r"Ask for offset (\d+) or a later one")
MOST_LOSSES = 10
STATES = 3  # offsets as of which `kraftd show` and `kraftd diff` are compared

Words = tuple[object, ...]


class Watcher(Process):
    """`kraftd watch --json` from its start until it is killed."""

    def __init__(self, scene: Scene, bootstrap: str) -> None:
        # A frozen leader is left after a quarter of the timeout: before the log has lost what was not read.
        words = ("watch", "--json", "--timeout", 30, "--bootstrap", bootstrap)
        super().__init__("watch", scene.home / "watch", lambda: command(*words))

    def events(self) -> list[dict[str, Any]]:
        lines = self.log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def wait_for(self, offset: int) -> None:
        self.wait(lambda: (self.events() or [{"offset": -1}])[-1]["offset"] >= offset, f"prints {offset}")


def rows(done: Run) -> list[dict[str, Any]]:
    assert done.code == 0, done
    return [json.loads(line) for line in done.out.splitlines()]


def assert_watch_printed_all(watcher: Watcher, scene: Scene) -> None:
    """Check that each event is printed once and in order, from the first printed one on."""
    archived = rows(run("history", "--json", "-d", scene.archive.data))
    watcher.wait_for(archived[-1]["offset"])
    events = watcher.events()
    first = events[0]["offset"]
    assert events == [one for one in archived if one["offset"] >= first][: len(events)]


def assert_commands_agree(scene: Scene, bootstrap: str, rng: random.Random, topics: list[str]) -> None:
    """Check that `topics`, `show`, `history` and `diff` print the same of quorum and archive."""
    archive, running = ("-d", scene.archive.data), ("--bootstrap", bootstrap)
    end = scene.described().high_watermark - 1  # type: ignore[union-attr]

    def archived() -> int:
        (row,) = rows(run("show", "/provenance", "--json", *archive))
        offset: int = row["value"]["offset"]
        return offset

    def assert_agree(at: int, words_at: Callable[[int], Words]) -> None:
        at, printed = printed_from(at, words_at, running)
        scene.archive.wait(lambda: archived() >= max(at, end), f"has {max(at, end)}")
        assert printed == rows(run(*words_at(at), *archive)), words_at(at)

    offsets_listed = [one["offset"] for one in rows(run("history", "--json", *running))]
    covered = range((min(offsets_listed, default=end) + end) // 2, end + 1)
    offsets = sorted({*rng.choices(covered, k=STATES), end})
    for offset in offsets:
        for words in (("topics",), ("show", "/topics", "--depth", 3), ("show", "/cluster", "--depth", 9)):
            assert_agree(offset, partial(as_of, words))
    assert_agree(offsets[0], partial(between, ("diff",), end))
    for topic in topics:
        assert_agree(offsets[0], partial(between, ("history", "--topic", topic), end))


def as_of(words: Words, at: int) -> Words:
    return (*words, "--json", "--as-of", at)


def between(words: Words, end: int, at: int) -> Words:
    return (*words, "--json", "--from", at, "--to", max(at, end))


def printed_from(
    at: int, words_at: Callable[[int], Words], running: Words
) -> tuple[int, list[dict[str, Any]]]:
    """The rows that a running quorum shows as of an offset, or as of the first that its log still covers.

    Meanwhile the log may lose its beginning again, a snapshot's worth at a time.
    """
    for _ in range(MOST_LOSSES):
        done = run(*words_at(at), *running)
        lost = FIRST_COVERED.search(done.err)
        if done.code == 0 or lost is None:
            return at, rows(done)
        at = int(lost[1])
    raise AssertionError(f"the log has lost its beginning {MOST_LOSSES} times: {done}")
