"""Values that no table may show: those of brokers' password configs.

Kafka's AdminClient does not show them either.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftd.configdef.facts import BROKER
from kraftd.metadata.state import BROKER_RESOURCE

HIDDEN = "(redacted)"
_PASSWORD_NAMES = "|".join(row[0].replace(".", r"\.") for row in BROKER if row[1] == "password")
_PASSWORDS = rf"(^|\.)({_PASSWORD_NAMES})$"
_NEEDED = frozenset({"name", "value", "resource_type"})


def redacted(rows: DataFrame) -> DataFrame:
    """The rows with passwords hidden, if the columns with passwords are read."""
    if not set(rows.columns) >= _NEEDED:
        return rows
    secret = (F.col("resource_type") == BROKER_RESOURCE) & F.col("name").rlike(_PASSWORDS)
    hidden = F.when(secret & F.col("value").isNotNull(), F.lit(HIDDEN)).otherwise(F.col("value"))
    return rows.withColumn("value", hidden)


def redacted_batch(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same for a batch of Arrow."""
    if not set(rows.schema.names) >= _NEEDED:
        return rows
    value = rows.column("value")
    of_brokers = pc.equal(rows.column("resource_type"), BROKER_RESOURCE)
    secret = pc.and_(of_brokers, pc.is_valid(value))
    if not pc.any(secret).as_py():
        return rows
    secret = pc.and_(secret, pc.match_substring_regex(rows.column("name"), _PASSWORDS))
    place = rows.schema.get_field_index("value")
    return rows.set_column(place, rows.schema.field(place), pc.if_else(secret, HIDDEN, value))
