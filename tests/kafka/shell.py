"""Runs Kafka's metadata-shell on a file, despite a race in it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from testkit.java import tools

_TRIES = 8


def metadata_shell(
    file: Path | str, scratch: Path, *command: str, expected: Callable[[list[str]], bool]
) -> list[str]:
    """The words that metadata-shell prints for a command on a copy of a file, once they are as expected.

    Kafka's shell loads on two threads that can miss each other, mostly if a file ends with a control record:
    it then shows a part of the file, or waits forever. Thus a run has ten seconds and several attempts. Each
    uses its own copy, as a hanging one keeps its directory's lock. AssertionError after the last.
    """
    words: list[str] = []
    for _ in range(_TRIES):
        copy = Path(tempfile.mkdtemp(dir=scratch), Path(file).name)
        shutil.copy(file, copy)
        try:
            words = tools().run("metadata-shell", "--snapshot", copy, *command, timeout_s=10).out.split()
        except TimeoutError:
            continue
        if expected(words):
            return words
    raise AssertionError(f"metadata-shell {' '.join(command)} on {file} shows {words}")
