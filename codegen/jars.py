"""Finds the Apache Kafka jars that hold the schemas, in a local cache or through Maven.

The cache is ``$KRAFTD_KAFKA_CACHE`` (default ``~/.cache/kraftd``); a version's jars are in
``kafka-<version>/libs/`` below it, under the names that Kafka's own distribution gives them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

KAFKA_VERSION = "4.3.1"
ARTIFACTS = ("kafka-clients", "kafka-metadata", "kafka-raft")


def libs(version: str = KAFKA_VERSION) -> Path:
    """The cache's directory for the jars of a Kafka version."""
    root = os.environ.get("KRAFTD_KAFKA_CACHE")
    cache = Path(root).expanduser() if root else Path.home() / ".cache" / "kraftd"
    return cache / f"kafka-{version}" / "libs"


def resolve(version: str = KAFKA_VERSION) -> list[Path]:
    """The paths of the jars with schemas; ``mvn`` fetches those that are not cached.

    Raises FileNotFoundError when a jar is neither cached nor can be fetched.
    """
    directory = libs(version)
    paths = [directory / f"{artifact}-{version}.jar" for artifact in ARTIFACTS]
    for artifact, path in zip(ARTIFACTS, paths, strict=True):
        if not path.exists():
            fetch(artifact, version, directory)
        if not path.exists():
            raise FileNotFoundError(f"{path}: not there, and Maven did not bring it")
    return paths


def fetch(artifact: str, version: str, directory: Path) -> None:
    """Copy one jar, without its dependencies, from the Maven repository into a directory."""
    if shutil.which("mvn") is None:
        raise FileNotFoundError(
            f"{artifact}-{version}.jar is not in {directory} and there is no mvn to fetch it; "
            "install Maven, or copy the libs of an Apache Kafka distribution there"
        )
    directory.mkdir(parents=True, exist_ok=True)
    coordinates = f"org.apache.kafka:{artifact}:{version}"
    for goal in (
        ["dependency:get", f"-Dartifact={coordinates}", "-Dtransitive=false"],
        [
            "dependency:copy",
            f"-Dartifact={coordinates}",
            f"-DoutputDirectory={directory}",
            "-Dmdep.useBaseVersion=true",
        ],
    ):
        subprocess.run(["mvn", "-q", "-B", *goal], check=True)
