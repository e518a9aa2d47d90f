"""The APIs that any node with an image answers, one file each."""
