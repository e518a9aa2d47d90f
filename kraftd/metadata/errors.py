"""What can be wrong with records and images."""

from __future__ import annotations


class ReplayError(Exception):
    """A record contradicts the image that it is applied to.  The text names record and offset."""


class UnwritableMetadataError(Exception):
    """The image holds what its metadata version cannot carry, so it cannot be written as a snapshot."""
