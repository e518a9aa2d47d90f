# %% [markdown]
# # Ten questions to a cluster's metadata log
#
# Open this file as a notebook (VS Code and PyCharm do, Jupyter with jupytext), or run it with `python`. It
# needs `pip install 'kraftd[spark]'` and Java 17. docs/tables.md describes the tables.

# %%
import os
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from kraftd.spark import tables

spark = SparkSession.builder.master("local[*]").config("spark.sql.session.timeZone", "UTC").getOrCreate()

# %% [markdown]
# The log: a controller's directory, a list of replicas' directories, or `host:port` of a client listener.
# `make spark-demo` writes one with an incident.

# %%
found = tables(spark, os.environ.get("KRAFT_LOG", "spark-demo/log"))
for name in (
    "records",
    "partitions",
    "brokers",
    "partition_intervals",
    "partition_changes",
    "leader_moves",
    "isr_history",
    "acl_history",
    "reassignments",
    "audit",
):
    found.create_views(name)

# %% [markdown]
# What some questions are about. Change it to the time of your incident, and to your topic.

# %% tags=["parameters"]
AT = datetime.now(UTC)
OFFSET = found.as_of
TOPIC = "orders"

# %% [markdown]
# ## 1. Which partitions were under-replicated at that time, and for how long?
# `missing` has the replicas that were not in sync then. What has not ended lasts up to the last record.

# %%
under_replicated = spark.sql(
    """
    SELECT topic_name, partition_id,
           transform(filter(spans, s -> s.start_timestamp <= :at AND coalesce(s.end_timestamp > :at, true)),
                     s -> s.broker_id) AS missing,
           start_timestamp, end_timestamp,
           (coalesce(end_timestamp_ms, (SELECT max(timestamp_ms) FROM records)) - start_timestamp_ms) / 1000
               AS seconds
    FROM partition_intervals
    WHERE kind = 'under_replicated' AND start_timestamp <= :at AND coalesce(end_timestamp > :at, true)
    ORDER BY seconds DESC, topic_name, partition_id
    """,
    {"at": AT},
)
under_replicated.show(truncate=False)

# %% [markdown]
# ## 2. Which brokers lost leaders, and why?

# %%
moves = spark.sql(
    """
    SELECT old_leader AS broker_id, cause, count(*) AS moves FROM leader_moves
    WHERE old_leader >= 0 GROUP BY ALL ORDER BY moves DESC, broker_id, cause
    """
)
moves.show(truncate=False)

# %% [markdown]
# ## 3. Who could read the topic at that offset?
# A DENY for a principal outweighs every ALLOW. Super users have no ACL.

# %%
access = spark.sql(
    """
    SELECT DISTINCT permission_type_name AS permission, principal, host FROM acl_history
    WHERE coalesce(valid_from_offset <= :offset, true) AND coalesce(valid_to_offset > :offset, true)
      AND resource_type_name = 'TOPIC' AND operation_name IN ('READ', 'ALL')
      AND (resource_name IN (:topic, '*')
           OR (pattern_type_name = 'PREFIXED' AND startswith(:topic, resource_name)))
    ORDER BY permission, principal, host
    """,
    {"offset": OFFSET, "topic": TOPIC},
)
access.show(truncate=False)

# %% [markdown]
# ## 4. How much did partitions change, a day?

# %%
churn = spark.sql(
    """
    SELECT date(timestamp) AS day, count(*) AS changes,
           count_if(size(array_except(old_isr, new_isr)) > 0) AS isr_shrinks,
           count_if(size(array_except(new_isr, old_isr)) > 0) AS isr_expands,
           count_if(old_leader != new_leader) AS leader_moves
    FROM partition_changes GROUP BY day ORDER BY day
    """
)
churn.show()

# %% [markdown]
# ## 5. Which configs changed, from what to what?

# %%
config_changes = spark.sql(
    """
    SELECT offset, timestamp, kind, name, key, old_value, new_value FROM audit
    WHERE action LIKE '%config' ORDER BY offset
    """
)
config_changes.show(truncate=False)

# %% [markdown]
# ## 6. How long does a broker stay in an ISR, on average?
# What has not ended counts up to the last record. What is older than the log is left out.

# %%
mean_time_in_isr = spark.sql(
    """
    SELECT broker_id, count(*) AS times, count_if(valid_to_ms IS NULL) AS still_in,
           avg(coalesce(valid_to_ms, (SELECT max(timestamp_ms) FROM records)) - valid_from_ms) / 1000
               AS mean_seconds
    FROM isr_history WHERE valid_from_ms IS NOT NULL GROUP BY broker_id ORDER BY broker_id
    """
)
mean_time_in_isr.show()

# %% [markdown]
# ## 7. Are leaders spread evenly?
# `skew` is how many times its even share a broker leads. `preferred` is how many it leads once preferred
# leaders are elected.

# %%
leader_skew = spark.sql(
    """
    SELECT broker_id, rack, fenced, count_if(leader = broker_id) AS leads,
           count_if(replicas[0] = broker_id) AS preferred,
           round(try_divide(count_if(leader = broker_id), avg(count_if(leader = broker_id)) OVER ()), 2)
               AS skew
    FROM brokers CROSS JOIN partitions GROUP BY broker_id, rack, fenced ORDER BY leads DESC, broker_id
    """
)
leader_skew.show()

# %% [markdown]
# ## 8. Which partitions are offline, and since when?

# %%
offline = spark.sql(
    """
    SELECT topic_name, partition_id, replicas, isr, start_timestamp AS since
    FROM partitions JOIN partition_intervals USING (topic_id, topic_name, partition_id)
    WHERE kind = 'offline' AND end_offset IS NULL ORDER BY since, topic_name, partition_id
    """
)
offline.show(truncate=False)

# %% [markdown]
# ## 9. Which reassignments are in flight, and since when?

# %%
in_flight = spark.sql(
    """
    SELECT topic_name, partition_id, old_replicas, target_replicas, valid_from AS since FROM reassignments
    WHERE outcome IS NULL ORDER BY since, topic_name, partition_id
    """
)
in_flight.show(truncate=False)

# %% [markdown]
# ## 10. Which topics violate racks?
# A partition should have its replicas in as many racks as it has replicas, or in all that there are.

# %%
rack_violations = spark.sql(
    """
    WITH placed AS (
        SELECT topic_name, partition_id, size(replicas) AS replica_count, count(DISTINCT rack) AS rack_count
        FROM partitions LEFT JOIN brokers ON array_contains(replicas, broker_id) GROUP BY ALL)
    SELECT topic_name, count(*) AS partitions FROM placed
    WHERE rack_count < least(replica_count, (SELECT count(DISTINCT rack) FROM brokers))
    GROUP BY topic_name ORDER BY topic_name
    """
)
rack_violations.show()

# %%
found.close()
