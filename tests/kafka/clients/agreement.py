"""Compares the output of kraftd's commands on a running quorum with the archive's files."""

from __future__ import annotations

import json
import random
from typing import Any

from testkit.process import Process
from tests.cli.run import Run, command, run
from tests.kafka.clients.scenario import Scene

STATES = 3  # offsets as of which `kraftd show` and `kraftd diff` are compared


class Watcher(Process):
    """`kraftd watch --json` from its start on, until it is killed."""

    def __init__(self, scene: Scene, bootstrap: str) -> None:
        words = ("watch", "--json", "--timeout", 60, "--bootstrap", bootstrap)
        super().__init__("watch", scene.home / "watch", lambda: command(*words))

    def events(self) -> list[dict[str, Any]]:
        lines = self.log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def wait_for(self, offset: int) -> None:
        self.wait(lambda: (self.events() or [{"offset": -1}])[-1]["offset"] >= offset, f"tells {offset}")


def rows(done: Run) -> list[dict[str, Any]]:
    assert done.code == 0, done
    return [json.loads(line) for line in done.out.splitlines()]


def assert_watch_told_all(watcher: Watcher, scene: Scene) -> None:
    """Check that each event is printed once and in order, from the first printed one on."""
    archived = rows(run("history", "--json", "-d", scene.archive.data))
    watcher.wait_for(archived[-1]["offset"])
    told = watcher.events()
    first = told[0]["offset"]
    assert told == [one for one in archived if one["offset"] >= first][: len(told)]


def assert_commands_agree(scene: Scene, bootstrap: str, dice: random.Random, topics: list[str]) -> None:
    """Check that `topics`, `show`, `history` and `diff` agree for the running quorum and the archive."""
    archive, running = ("-d", scene.archive.data), ("--bootstrap", bootstrap)
    end = scene.described().high_watermark - 1  # type: ignore[union-attr]
    scene.archive.wait(lambda: run("show", "--as-of", end, *archive).code == 0, f"has {end}")
    told = [one["offset"] for one in rows(run("history", "--json", *running))]
    # The later half: the log goes on to lose its beginning meanwhile.
    covered = range((min(told, default=end) + end) // 2, end + 1)
    offsets = sorted({*dice.choices(covered, k=STATES), end})
    for offset in offsets:
        for words in (("topics",), ("show", "/topics", "--depth", 3), ("show", "/cluster", "--depth", 9)):
            asked = (*words, "--json", "--as-of", offset)
            assert rows(run(*asked, *running)) == rows(run(*asked, *archive)), asked
    asked = ("diff", "--json", "--from", offsets[0], "--to", end)
    assert rows(run(*asked, *running)) == rows(run(*asked, *archive)), asked
    for topic in topics:
        asked = ("history", "--json", "--topic", topic, "--from", offsets[0], "--to", end)
        assert rows(run(*asked, *running)) == rows(run(*asked, *archive)), asked
