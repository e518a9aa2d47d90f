"""An archive of the classes that a Kafka server loads, which JVMs map instead of parsing jars (AppCDS).

It is made once per version of Java and Kafka, by a combined server that serves one client and ends. A start
then takes about half the time and half the CPU. The JVM maps an archive only for the class path with which it
was made, and for paths that begin with it.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from testkit.fetch import cache_dir, locked
from testkit.process import HOST, Process, free_port

_CLUSTER_ID = "bm90LWEtY2x1c3Rlci1pZA"
_PROPERTIES = """process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://{host}:{broker},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{broker}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
controller.quorum.bootstrap.servers={host}:{controller}
log.dirs={data}
offsets.topic.replication.factor=1
"""


@cache
def class_data_flags(java: Path, jvm: tuple[str, ...], classpath: str) -> Sequence[str]:
    """The flags with which a JVM maps the archive, made first if the cache lacks it.

    `jvm` are the flags of the JVMs that use it. If it cannot be made there are no flags: a start without it
    is only slower.
    """
    digest = hashlib.sha256(f"{java} {jvm} {classpath}".encode()).hexdigest()[:16]
    archive = cache_dir() / "class-data" / f"server-{digest}.jsa"
    if not archive.exists():
        with locked("class-data") as folder:
            if not archive.exists():
                with tempfile.TemporaryDirectory(dir=folder) as scratch:
                    built = _make(Path(scratch), [str(java), *jvm], classpath)
                    if built is None:
                        return ()
                    archive.parent.mkdir(exist_ok=True)
                    built.rename(archive)
    return (f"-XX:SharedArchiveFile={archive}",)


def _make(home: Path, java: Sequence[str], classpath: str) -> Path | None:
    """The archive of one run of a server, or None if that run failed."""
    archive, properties = home / "server.jsa", home / "server.properties"
    broker, controller = free_port(), free_port()
    properties.write_text(
        _PROPERTIES.format(host=HOST, broker=broker, controller=controller, data=home / "data")
    )
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"
    tool = [*java, quiet, "-cp", classpath]
    formatting = [
        "kafka.tools.StorageTool",
        "format",
        "-t",
        _CLUSTER_ID,
        "-c",
        str(properties),
        "--standalone",
    ]
    if subprocess.run([*tool, *formatting], capture_output=True, check=False).returncode:
        return None
    dump = f"-XX:ArchiveClassesAtExit={archive}"
    server = Process(
        "class-data", home, lambda: [*java, dump, quiet, "-cp", classpath, "kafka.Kafka", str(properties)]
    )
    try:
        server.start()
        server.wait_for_log("Kafka Server started", 120)
        topic = ["org.apache.kafka.tools.TopicCommand", "--bootstrap-server", f"{HOST}:{broker}"]
        subprocess.run(
            [*tool, *topic, "--create", "--topic", "t"], capture_output=True, check=False, timeout=60
        )
        server.stop(120)
    except (RuntimeError, TimeoutError, subprocess.TimeoutExpired):
        server.kill()
        return None
    return archive if archive.exists() else None
