"""Fetches Apache Kafka's jars from Maven Central, once, into a cache that parallel test runs share.

The cache is ``$KRAFTD_KAFKA_CACHE`` or ``~/.cache/kraftd``; a version lies in ``kafka-<version>/libs/*.jar``.
``java.py`` finds Java and runs these jars.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

KAFKA_VERSION = "4.3.1"

# Kafka's log-level controller needs log4j-core on the class path, with any binding of slf4j.
ARTIFACTS = (
    ("org.apache.kafka", "kafka_2.13", None),
    ("org.apache.kafka", "kafka-tools", None),
    ("org.apache.kafka", "kafka-shell", None),
    ("org.slf4j", "slf4j-simple", "1.7.36"),
    ("org.apache.logging.log4j", "log4j-core", "2.25.4"),
    ("org.apache.logging.log4j", "log4j-api", "2.25.4"),
)

# Kafka's tests of clients, tools and servers (classifier `test`), and the libraries that they use.
_TESTED = (
    "kafka-clients-integration-tests",
    "kafka-clients",
    "kafka-coordinator-common",
    "kafka-group-coordinator",
    "kafka-metadata",
    "kafka-server-common",
    "kafka-server",
    "kafka-storage",
    "kafka-storage-api",
    "kafka-tools",
    "kafka_2.13",
)
_KIT = ("kafka-clients-integration-tests", "kafka-test-common-runtime", "kafka-test-common-internal-api")
SUITE = (
    *(("org.apache.kafka", f"{artifact}:test", KAFKA_VERSION) for artifact in _TESTED),
    *(("org.apache.kafka", artifact, KAFKA_VERSION) for artifact in _KIT),
    ("org.junit.platform", "junit-platform-console-standalone", "1.13.1"),
    ("org.mockito", "mockito-core", "5.14.2"),
    ("net.bytebuddy", "byte-buddy", "1.15.4"),
    ("net.bytebuddy", "byte-buddy-agent", "1.15.4"),
    ("org.objenesis", "objenesis", "3.3"),
    ("org.hamcrest", "hamcrest", "3.0"),
)

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>kraftd.test</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>
{dependencies}
</dependencies></project>
"""
_EXCLUDE_ALL = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
)


class FetchError(RuntimeError):
    """The jars could not be fetched; the message has Maven's output."""


def cache_dir() -> Path:
    """The folder that outlives test runs."""
    chosen = os.environ.get("KRAFTD_KAFKA_CACHE")
    return Path(chosen).expanduser().resolve() if chosen else Path.home() / ".cache" / "kraftd"


@contextmanager
def locked(name: str) -> Iterator[Path]:
    """Hold the cache's lock of this name; yields the cache folder. Other processes wait."""
    cache = cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield cache


def kafka_libs(version: str = KAFKA_VERSION) -> Path:
    """The folder with the jars of this version, fetched first if the cache lacks them.

    Raises FetchError where Maven is missing or fails.
    """
    libs = cache_dir() / f"kafka-{version}" / "libs"
    if not _last_jar(libs, version).exists():
        with locked(f"kafka-{version}"):
            if not _last_jar(libs, version).exists():
                _fetch(version, libs)
    return libs


def streams_libs() -> Path:
    """The folder with the jars of Kafka Streams, fetched first if the cache lacks them. Raises FetchError."""
    libs, last = cache_dir() / f"kafka-{KAFKA_VERSION}" / "streams", f"kafka-streams-{KAFKA_VERSION}.jar"
    if not (libs / last).exists():
        with locked(f"kafka-{KAFKA_VERSION}"):
            if not (libs / last).exists():
                copy_jars([("org.apache.kafka", "kafka-streams", KAFKA_VERSION)], libs, last)
    return libs


def suite_libs() -> Path:
    """The folder with Kafka's own tests, its kit for clusters, and what runs them; fetched first if absent.

    Raises FetchError.
    """
    libs = cache_dir() / f"kafka-{KAFKA_VERSION}" / "suite"
    # All of them: a cache may be of a time when there were fewer.
    jars = [libs / f"{artifact}-{KAFKA_VERSION}-test.jar" for artifact in _TESTED]
    if not all(jar.exists() for jar in jars):
        with locked(f"kafka-{KAFKA_VERSION}"):
            if not all(jar.exists() for jar in jars):
                copy_jars(SUITE, libs, jars[-1].name, alone=True)
    return libs


def _last_jar(libs: Path, version: str) -> Path:
    """The jar that is moved into place last: if it exists, all others exist."""
    return libs / f"kafka_2.13-{version}.jar"


def _fetch(version: str, libs: Path) -> None:
    if shutil.which("mvn") is None:
        raise FetchError(f"Apache Kafka {version} is not in {libs} and mvn is not on the PATH to fetch it")
    artifacts = [(group, artifact, pinned or version) for group, artifact, pinned in ARTIFACTS]
    copy_jars(artifacts, libs, last=_last_jar(libs, version).name)


def copy_jars(
    artifacts: Sequence[tuple[str, str, str]], libs: Path, last: str, *, alone: bool = False
) -> None:
    """Put the jars of Maven Central's artifacts, and of all their dependencies, into a folder.

    They appear one by one, `last` at the end. An artifact may be `name:classifier`. `alone` leaves out
    dependencies. Raises FetchError.
    """
    exclusions = _EXCLUDE_ALL if alone else ""
    dependencies = "\n".join(_dependency(*one, exclusions) for one in artifacts)
    libs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=libs.parent) as scratch:
        pom, fetched = Path(scratch, "pom.xml"), Path(scratch, "libs")
        pom.write_text(_POM.format(dependencies=dependencies))
        command = ["mvn", "-q", "-B", "-C", "-f", str(pom), "dependency:copy-dependencies"]
        command.append(f"-DoutputDirectory={fetched}")
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode or not (fetched / last).exists():
            raise FetchError(f"mvn could not fetch {artifacts}:\n{done.stdout[-4000:]}")
        # Each rename is atomic, and the last jar shows that all exist: no process uses an incomplete set.
        for jar in sorted(fetched.iterdir(), key=lambda jar: jar.name == last):
            jar.replace(libs / jar.name)


def _dependency(group: str, artifact: str, version: str, exclusions: str) -> str:
    name, _, classifier = artifact.partition(":")
    classified = f"<classifier>{classifier}</classifier>" if classifier else ""
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
        f"<version>{version}</version>{classified}{exclusions}</dependency>"
    )


if __name__ == "__main__":
    print(kafka_libs())
