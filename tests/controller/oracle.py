"""Kafka's own classes as oracles: of partition changes, many cases at a time, and of a whole controller."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from kraftd.wire.record_frame import VersionedRecord, decode_record, encode_record
from testkit.java import QUICK_START, classpath, compile_java, find_java, find_javac

PACKAGE = "org.apache.kafka.controller"


def command(oracle: str) -> list[str]:
    """A command line that runs one of the programs in java/."""
    javac = find_javac()
    if javac is None:
        pytest.skip("no javac beside the java in use")
    sources = Path(__file__).with_name("java")
    classes = compile_java(javac, sources / f"{oracle}.java", sources / "Hex.java")
    path = os.pathsep.join([str(classes), classpath()])
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    return [str(find_java()), "-Xmx256m", *QUICK_START, quiet, "-cp", path, f"{PACKAGE}.{oracle}"]


def ask(cases: Sequence[str]) -> list[str]:
    """The answers of PartitionOracle to the cases, in their order."""
    done = subprocess.run(
        command("PartitionOracle"),
        input="\n".join(cases) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    assert len(answers) == len(cases)
    return answers


class OracleAnswer(NamedTuple):
    """The decision of Kafka's controller: an error's name, or the answer's bytes and the records."""

    error: str | None
    answer: bytes | None
    text: str
    records: list[VersionedRecord]


class ControllerOracle:
    """Kafka's ReplicationControlManager in a JVM of its own, one operation at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            command("ControllerOracle"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)

    def start(self, seed: int) -> None:
        """Reset the controller and seed its random numbers."""
        self.run(f"new {seed}")

    def replay(self, records: Sequence[VersionedRecord]) -> None:
        done = self.run("replay " + " ".join(encode_record(record).hex() for record in records))
        assert done.error is None, done.error

    def run(self, line: str) -> OracleAnswer:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        words = self._process.stdout.readline().split()
        assert words, "the oracle ended"
        if words[0] == "refused":
            return OracleAnswer(" ".join(words[1:]), None, "", [])
        text = words[1] if len(words) > 1 else ""
        is_hex = len(text) > 5 and set(text) <= set("0123456789abcdef")
        records = [decode_record(bytes.fromhex(word)) for word in words[2:]]
        return OracleAnswer(None, bytes.fromhex(text) if is_hex else None, text, records)
