"""The commands of `kraftd-spark`, one module each: ingest, report, tables, validate.

`options` has the options that they share. `kraftd.spark.main` adds each command to the group.
"""
