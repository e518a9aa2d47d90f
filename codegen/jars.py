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
# Jars with schemas -> the coordinator whose records they hold. Coordinators number their records alike.
ARTIFACTS = {
    "kafka-clients": None,
    "kafka-metadata": None,
    "kafka-raft": None,
    "kafka-group-coordinator": "group",
    "kafka-transaction-coordinator": "transaction",
    "kafka-share-coordinator": "share",
}


def libs(version: str = KAFKA_VERSION) -> Path:
    """The cache's directory for the jars of a Kafka version."""
    root = os.environ.get("KRAFTD_KAFKA_CACHE")
    cache = Path(root).expanduser() if root else Path.home() / ".cache" / "kraftd"
    return cache / f"kafka-{version}" / "libs"


def resolve(version: str = KAFKA_VERSION) -> dict[Path, str | None]:
    """The paths of the jars with schemas, and their coordinators; ``mvn`` fetches those that are not cached.

    Raises FileNotFoundError when a jar is neither cached nor can be fetched.
    """
    directory = libs(version)
    paths = {}
    for artifact, coordinator in ARTIFACTS.items():
        path = directory / f"{artifact}-{version}.jar"
        if not path.exists():
            fetch(artifact, version, directory)
        if not path.exists():
            raise FileNotFoundError(f"{path}: not there, and Maven did not bring it")
        paths[path] = coordinator
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
