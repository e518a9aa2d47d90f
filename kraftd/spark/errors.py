"""Errors of the input, with texts for the user."""

from __future__ import annotations


class InputError(Exception):
    """A path cannot be read in the expected format; the message names path, offset and remedy."""


def damaged(path: str, position: int, reason: str, offset: int | None = None) -> InputError:
    """The error of a damaged file, at a byte of it."""
    where = f"{path}: byte {position}" if offset is None else f"{path}: byte {position}, offset {offset}"
    return InputError(f"{where}: {reason}. Mode PERMISSIVE reads what is sound and keeps the rest apart")
