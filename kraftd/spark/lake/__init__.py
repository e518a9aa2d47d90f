"""The tables in a lake: Delta or Iceberg tables that each run brings up to a later end of the log.

    lake = open_lake("delta", "/tmp/lake")
    kept = KeptLog("/tmp/lake", log.replica.cluster_id)
    kept.append(log, log.end_offset)                          # decodes what is new
    publish(lake, "topics", rows, difference, end_offset)     # one commit, or none

`kept_log` has the decoded log, so nothing is lost when the input's beginning is deleted. `difference` finds
what a table's commit changes; `delta` and `iceberg` commit; `update` drives a run.
"""
