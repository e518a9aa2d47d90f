"""Kafka's own codecs, in one Java process that lasts as long as the tests.

Tests ask ``java/CodecOracle.java`` over its standard input; it is compiled at its first use.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path
from typing import Any

from testkit.java import JavaMissing, classpath, compile_java, find_java, find_javac

SOURCE = Path(__file__).with_name("java") / "CodecOracle.java"
BLOCK = struct.Struct(">i")


class Refused(Exception):
    """The exception that Kafka threw in place of an answer."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        super().__init__(f"{kind}: {text}")


class Oracle:
    """The process; ``close`` ends it."""

    def __init__(self) -> None:
        javac = find_javac()
        if javac is None:
            raise JavaMissing("no javac beside java")
        path = os.pathsep.join([str(compile_java(javac, SOURCE)), classpath()])
        command = [str(find_java()), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        self.process = subprocess.Popen(
            [*command, "-cp", path, "CodecOracle"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __repr__(self) -> str:
        return f"<Oracle process {self.process.pid}>"

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)

    def decode(self, name: str, version: int, data: bytes) -> tuple[Any, bytes]:
        """The JSON of a message's bytes, and the bytes that Kafka writes for it again; raises Refused."""
        text, again = self.ask("D", name, version, 0, data)
        return json.loads(text), again

    def encode(self, name: str, version: int, value: object) -> bytes:
        """The bytes of a message's JSON; raises Refused."""
        return self.ask("E", name, version, 0, json.dumps(value).encode())[0]

    def transcode(self, name: str, version: int, second: int, data: bytes) -> bytes:
        """The bytes in a second version of a message's bytes in a first; raises Refused."""
        return self.ask("T", name, version, second, data)[0]

    def facts(self) -> dict[str, Any]:
        """The values of Kafka's enums: ``errors``, ``apis``, ``records``, ``controls``."""
        facts: dict[str, Any] = json.loads(self.ask("F", "", 0, 0, b"")[0])
        return facts

    def ask(self, operation: str, name: str, version: int, second: int, data: bytes) -> tuple[bytes, bytes]:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None
        encoded = name.encode()
        head = struct.pack(
            f">cH{len(encoded)}shhi", operation.encode(), len(encoded), encoded, version, second, len(data)
        )
        stdin.write(head + data)
        stdin.flush()
        status = stdout.read(1)
        assert status, "the oracle's process has ended"
        first, second_block = self.block(), self.block()
        if status == b"\1":
            raise Refused(first.decode(), second_block.decode())
        return first, second_block

    def block(self) -> bytes:
        stdout = self.process.stdout
        assert stdout is not None
        (length,) = BLOCK.unpack(stdout.read(4))
        return stdout.read(length)
