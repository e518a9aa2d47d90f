"""Batches and records of a metadata log into the columns of Arrow."""
