"""Python names for Kafka's names."""

from __future__ import annotations

import keyword
import re

# A word begins at a capital after a small letter or digit, and at the last one of several capitals.
BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake(name: str) -> str:
    """``PartitionMaxBytes`` -> ``partition_max_bytes``; a Python keyword gets an underscore after it.

    KRaft is one word.
    """
    words = BOUNDARY.sub("_", name.replace("KRaft", "Kraft")).lower()
    return words + "_" if keyword.iskeyword(words) else words
