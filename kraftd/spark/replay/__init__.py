"""The tables of small logs, without Spark, whose plans cost far more than 100,000 records.

    replay = Replay(extent)                  # decodes the log, and the checkpoints that it begins with
    found = table("partitions", replay, replicas)   # a pyarrow.Table

The package `kraftd.spark.tables` says what the tables mean, and makes them of logs of any size. A module here
has the name of the module there that defines the same tables. Tests compare every column of both.
"""
