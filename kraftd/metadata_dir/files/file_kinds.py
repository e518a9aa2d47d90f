"""The paths of a data directory's files must be regular files: a start checks each before it opens it."""

from __future__ import annotations

import re

from kraftd.log.disk import Disk
from kraftd.log.errors import DirectoryProblem
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC

_OF_NODE = re.compile(r"(meta\.properties|bootstrap\.checkpoint)(\.tmp)?|\.lock")
_OF_PARTITION = re.compile(
    r"\d{20}\.(log|index|timeindex)|\d{20}-\d{10}\.checkpoint"
    r"|(quorum-state|high-watermark|leader-epoch-checkpoint|partition\.metadata|kraftd-last-start\.json)(\.tmp)?"
)


def check_file_kinds(disk: Disk, path: str) -> None:
    """Raise DirectoryProblem where a directory, a pipe or a link to nothing has the name of a node's file."""
    for directory, names in (
        (path, _OF_NODE),
        (f"{path}/{METADATA_TOPIC}-{METADATA_PARTITION}", _OF_PARTITION),
    ):
        for name, kind in sorted(disk.list_others(directory).items()):
            if names.fullmatch(name):
                raise DirectoryProblem(
                    f"{directory}/{name} is {kind}, and must be a file. Move it away; if the file was there "
                    "before, put it back"
                )
