"""The tables of docs/tables.md: one function a table, from a timeline to a data frame.

Public: `catalog.table`, which makes a table by its name, and `catalog.records`. The other modules hold the
tables of one subject each.
"""
