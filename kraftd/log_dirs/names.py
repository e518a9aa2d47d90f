"""The names of partitions' directories: `topic-0`, and `topic-0.<32 hex digits>-delete`, `-future`, `-stray`.

A name has at most 255 characters: to be deleted or set aside, a topic's name is cut.
"""

from __future__ import annotations

import re

from kraftd.log.errors import DirectoryProblem
from kraftd.named_tuple import NamedTuple

DELETE_SUFFIX = "-delete"
FUTURE_SUFFIX = "-future"
STRAY_SUFFIX = "-stray"
_SUFFIXED = re.compile(r"(\S+)-(\S+)\.(\S+)(-delete|-future|-stray)")
_MAX_NAME = 255


class PartitionDirectory(NamedTuple):
    """The topic and partition of a directory, and its suffix; "" of an ordinary one."""

    topic: str
    partition: int
    suffix: str = ""


def name_of(topic: str, partition: int) -> str:
    """The name of an ordinary directory."""
    return f"{topic}-{partition}"


def suffixed_name(topic: str, partition: int, unique: str, suffix: str) -> str:
    """The name of one with a suffix; unique is 32 hex digits that no other directory has."""
    end = f"-{partition}.{unique}{suffix}"
    if suffix != FUTURE_SUFFIX:
        topic = topic[: _MAX_NAME - len(end)]
    return f"{topic}{end}"


def parse_name(name: str, parent: str) -> PartitionDirectory:
    """What a directory in a log directory is. Raises DirectoryProblem."""
    found = _SUFFIXED.fullmatch(name)
    suffix = "" if found is None else found[4]
    plain = name if found is None else name[: name.rindex(".")]
    topic, dash, partition = plain.rpartition("-")
    if not (dash and topic and partition.isascii() and partition.isdecimal()) or (
        found is None and name.endswith((DELETE_SUFFIX, FUTURE_SUFFIX, STRAY_SUFFIX))
    ):
        raise DirectoryProblem(
            f"{parent}/{name} is no partition's directory: its name is not TOPIC-PARTITION. A log directory "
            "holds partitions only; move it away"
        )
    return PartitionDirectory(topic, int(partition), suffix)
