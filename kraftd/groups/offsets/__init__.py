"""Committed offsets: what is kept, and the requests that read, write and delete it."""
