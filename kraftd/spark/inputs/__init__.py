"""Inputs of the pipeline: files, the logs and checkpoints among them, and what of a log is committed."""
