"""Formatting the directories of a new node, and the arguments of that command."""
