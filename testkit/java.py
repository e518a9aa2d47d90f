"""Finds Java and runs Apache Kafka's command line tools with it.

A tool's JVM takes one to two seconds to start, so tools share a resident one (``java/ToolServer.java``), if
a JDK is there to compile it. With a bare JRE each run is a separate process.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from testkit.class_data import class_data_flags
from testkit.fetch import KAFKA_VERSION, cache_dir, kafka_libs, locked

MINIMUM_JAVA = 17

TOOLS = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "consumer-perf": "org.apache.kafka.tools.ConsumerPerformance",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "metadata-shell": "org.apache.kafka.shell.MetadataShell",
    "producer-perf": "org.apache.kafka.tools.ProducerPerformance",
    "reassign": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "storage": "kafka.tools.StorageTool",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
}

# The flags of Kafka's own start scripts, for measurements of Kafka as operators run it.
AS_KAFKA_STARTS = (
    "-Xmx1g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
# For a quick start rather than a high peak: one compiler tier, one collector thread, shared class data.
QUICK_START = (
    "-Xmx512m",
    "-Xms32m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-Djava.awt.headless=true",
)
_WARNINGS_ONLY = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"


class JavaMissing(RuntimeError):
    """No Java of at least MINIMUM_JAVA was found."""


@cache
def find_java() -> Path:
    """The java to use: $JAVA_HOME's, else the one on the PATH. Raises JavaMissing."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", "java") if home else Path(shutil.which("java") or "")
    if not found.is_file():
        raise JavaMissing("no java in $JAVA_HOME or on the PATH")
    output = subprocess.run([found, "-version"], stderr=subprocess.PIPE, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', output)
    if version is None or int(version[1]) < MINIMUM_JAVA:
        raise JavaMissing(f"{found} is not Java {MINIMUM_JAVA} or newer")
    return found.resolve()


@cache
def find_javac() -> Path | None:
    """The javac beside the java in use, or None with a bare JRE."""
    javac = find_java().with_name("javac")
    return javac if javac.is_file() else None


@cache
def classpath(release: str = KAFKA_VERSION) -> str:
    """The jars of a release of Kafka, one by one: class data sharing knows no wildcards.

    Releases before 4.0 contain a logging backend, which would log nothing without a file.
    """
    jars = sorted(kafka_libs(release).glob("*.jar"))
    return os.pathsep.join(str(jar) for jar in jars if not jar.name.startswith("slf4j-reload4j"))


def java_command(
    main_class: str,
    *arguments: str,
    jvm: Sequence[str] = QUICK_START,
    flags: Sequence[str] = (),
    release: str = KAFKA_VERSION,
) -> list[str]:
    """A command line that runs a main class of Kafka's jars; with QUICK_START it maps class data.

    Class data is kept for the newest release only: others are started too rarely for an archive to pay.
    """
    path = classpath(release)
    mapped: Sequence[str] = ()
    if tuple(jvm) == QUICK_START and release == KAFKA_VERSION:
        mapped = class_data_flags(find_java(), QUICK_START, path)
    return [str(find_java()), *jvm, *mapped, *flags, "-cp", path, main_class, *arguments]


@dataclass(frozen=True)
class ToolRun:
    """The exit code and the output of a tool's run."""

    command: str
    code: int
    out: str
    err: str

    def __repr__(self) -> str:
        return f"<ToolRun {self.command!r} exit {self.code}>"

    def check(self) -> ToolRun:
        """Return this run if it succeeded; AssertionError with both of its streams otherwise."""
        assert self.code == 0, f"{self.command}: exit {self.code}\n{self.out}\n{self.err}"
        return self


class ToolRunner(Protocol):
    """Runs Kafka's tools by their short names (the keys of TOOLS)."""

    def run(self, tool: str, *arguments: object, stdin: str = "", timeout_s: float = 120) -> ToolRun: ...


class PlainTools:
    """Starts a JVM for every run."""

    def run(self, tool: str, *arguments: object, stdin: str = "", timeout_s: float = 120) -> ToolRun:
        words = [str(argument) for argument in arguments]
        command = java_command(TOOLS[tool], *words, flags=[_WARNINGS_ONLY])
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        return ToolRun(" ".join([tool, *words]), done.returncode, done.stdout, done.stderr)


class ResidentTools:
    """Runs all tools in one JVM, which ends with this process.

    A tool with arguments that it cannot parse may end that JVM: its parser bypasses Kafka's Exit. Such a run
    raises RuntimeError and the next one gets a new JVM.
    """

    def __init__(self, javac: Path) -> None:
        classes = compile_java(javac, Path(__file__).with_name("java") / "ToolServer.java")
        # Kafka's jars come first: the archive of class data requires a class path that begins with them.
        path = os.pathsep.join([classpath(), str(classes)])
        self._command = [
            str(find_java()),
            *QUICK_START,
            *class_data_flags(find_java(), QUICK_START, classpath()),
            _WARNINGS_ONLY,
            "-cp",
            path,
            "ToolServer",
        ]
        self._process: subprocess.Popen[str] | None = None
        self._port = 0
        atexit.register(self.close)

    def __repr__(self) -> str:
        return f"<ResidentTools {f'on port {self._port}' if self._process else 'not started'}>"

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        announced = self._process.stdout.readline()
        if not announced.strip().isdigit():
            raise RuntimeError(f"the tool server did not start: {announced}")
        self._port = int(announced)

    def run(self, tool: str, *arguments: object, stdin: str = "", timeout_s: float = 120) -> ToolRun:
        if self._process is None or self._process.poll() is not None:
            self._start()
        words = [str(argument) for argument in arguments]
        blocks = [block.encode() for block in (TOOLS[tool], *words)]
        request = struct.pack(">i", len(blocks))
        for block in (*blocks, stdin.encode()):
            request += struct.pack(">i", len(block)) + block
        with socket.create_connection(("127.0.0.1", self._port), timeout=timeout_s) as connection:
            connection.sendall(request)
            with connection.makefile("rb") as answer:
                head = answer.read(4)
                if len(head) < 4:
                    raise RuntimeError(f"{tool} ended the tool server: could it parse {words}?")
                (code,) = struct.unpack(">i", head)
                out, err = (answer.read(struct.unpack(">i", answer.read(4))[0]).decode() for _ in range(2))
        return ToolRun(" ".join([tool, *words]), code, out, err)

    def close(self) -> None:
        """End the JVM by closing its standard input."""
        if self._process is not None and self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(30)


@cache
def tools() -> ToolRunner:
    """The tool runner of this process: resident with a JDK, otherwise plain."""
    javac = find_javac()
    return ResidentTools(javac) if javac else PlainTools()


def compile_java(javac: Path, source: Path, *with_it: Path, beside: Sequence[Path] = ()) -> Path:
    """The folder with the classes of these sources, compiled against Kafka's jars once per content.

    beside are further jars to compile against.
    """
    sources = [source, *with_it]
    content = b"".join(each.read_bytes() for each in sources)
    digest = hashlib.sha256(content + str(javac).encode()).hexdigest()[:16]
    classes = cache_dir() / "classes" / f"{source.stem}-{digest}"
    if classes.is_dir():
        return classes
    with locked("classes") as folder:
        if not classes.is_dir():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                built = Path(scratch, "built")
                path = os.pathsep.join([classpath(), *map(str, beside)])
                subprocess.run([javac, "-cp", path, "-d", built, *sources], check=True)
                classes.parent.mkdir(exist_ok=True)
                built.rename(classes)
    return classes
