"""The names of Kafka's codes, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

Names = Mapping[int, str] | Sequence[str]


def name_of(column: str, names: Names) -> Column:
    """The name of a number; the number itself if it has none."""
    numbered = names.items() if isinstance(names, Mapping) else enumerate(names)
    pairs = [F.lit(part) for pair in numbered for part in pair]
    return F.coalesce(F.create_map(*pairs)[F.col(column)], F.col(column).cast("string"))
