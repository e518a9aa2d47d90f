"""Kafka's own tests under an agent that writes down what they ask Kafka for, and what it answers.

A program in a folder `java` beside a test installs the agent; `java/Suite.java` runs the classes of tests.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from testkit.fetch import suite_libs
from testkit.java import QUICK_START, classpath, compile_java, find_java, find_javac

Columns = list[str]
MEMORY = Path("/dev/shm")


def lines_of(main: str, classes: Sequence[str], *sources: Path, timeout_s: float = 280) -> list[Columns]:
    """The lines that a program writes while it runs classes of tests. The first source names the program."""
    javac = find_javac()
    if javac is None:
        pytest.skip("no javac beside the java in use")
    jars = sorted(suite_libs().glob("*.jar"))
    built = compile_java(javac, *sources, Path(__file__).with_name("java") / "Suite.java", beside=jars)
    path = os.pathsep.join([str(built), *map(str, jars), classpath()])
    quiet = ("-Djdk.attach.allowAttachSelf=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
    # Most of the time of logs is fsyncs, so their directories are in memory where that can be.
    with tempfile.TemporaryDirectory(prefix="kafkas-tests-", dir=MEMORY if MEMORY.is_dir() else None) as home:
        flags = (*quiet, f"-Djava.io.tmpdir={home}")
        command = [str(find_java()), *QUICK_START, *flags, "-cp", path, main, *classes]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]
