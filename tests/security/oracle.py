"""Runs small programs of java/ that call Kafka's own security classes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from testkit.java import QUICK_START, classpath, compile_java, find_java, find_javac

QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"


def ask_java(main_class: str, lines: Iterable[str], timeout_s: float = 120) -> str:
    """The output of a program of java/ for these lines of input."""
    javac = find_javac()
    if javac is None:
        pytest.skip("no javac beside the java in use")
    source = Path(__file__).with_name("java") / f"{main_class.rpartition('.')[2]}.java"
    path = os.pathsep.join([str(compile_java(javac, source)), classpath()])
    done = subprocess.run(
        [str(find_java()), *QUICK_START, QUIET, "-cp", path, main_class],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
