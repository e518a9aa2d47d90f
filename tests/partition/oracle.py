"""Apache Kafka's own log of a partition, in one Java process that lasts as long as the tests."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from testkit.java import JavaMissing, classpath, compile_java, find_java, find_javac

SOURCE = Path(__file__).with_name("java") / "LogOracle.java"


class LogOracle:
    """The process; ``close`` ends it and removes its logs."""

    def __init__(self) -> None:
        javac = find_javac()
        if javac is None:
            raise JavaMissing("no javac beside java")
        self._home = tempfile.TemporaryDirectory(prefix="kraftd-log-oracle-")
        path = os.pathsep.join([str(compile_java(javac, SOURCE)), classpath()])
        flags = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        flags.append("-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
        self._process = subprocess.Popen(
            [str(find_java()), *flags, "-cp", path, "LogOracle", self._home.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __repr__(self) -> str:
        return f"<LogOracle process {self._process.pid}>"

    def ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Kafka's answer; `bytes` go and come as bytes."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        if "bytes" in arguments:
            arguments["bytes"] = base64.b64encode(arguments["bytes"]).decode()
        stdin.write(json.dumps({"op": operation, **arguments}) + "\n")
        stdin.flush()
        line = stdout.readline()
        assert line, "the oracle's process has ended"
        answer: dict[str, Any] = json.loads(line)
        if "bytes" in answer:
            answer["bytes"] = base64.b64decode(answer["bytes"])
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._home.cleanup()
