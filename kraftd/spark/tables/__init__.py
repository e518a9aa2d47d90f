"""The tables: one function a table, from a timeline to a data frame. docs/tables.md describes each."""
