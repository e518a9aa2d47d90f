"""Errors of records and images."""

from __future__ import annotations


class ReplayError(Exception):
    """A record contradicts the image that it is applied to. The text names the record and its offset."""


class UnwritableMetadataError(Exception):
    """The image holds state that its metadata.version cannot express, so it cannot be written as
    a snapshot.
    """
