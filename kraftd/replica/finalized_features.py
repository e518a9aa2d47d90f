"""The finalized features for clients: of committed records only, with the offset of their last change."""

from __future__ import annotations

from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import METADATA_VERSION, MINIMUM_VERSION


class FinalizedFeatures:
    """`levels` by name, without kraft.version, which the quorum keeps; `epoch` is -1 before any metadata is
    read.
    """

    def __init__(self) -> None:
        self.levels: dict[str, int] = {METADATA_VERSION: MINIMUM_VERSION}
        self.epoch = -1
        self.kraft_version = 0
        self._pending: tuple[dict[str, int], int] | None = (
            None  # levels, and the end offset that commits them
        )

    @property
    def metadata_version(self) -> int:
        return self.levels[METADATA_VERSION]

    def applied(self, image: Image) -> None:
        """Note applied records; if they changed levels, their offset must be committed before
        clients see it.
        """
        if self._pending is None and image.features and (image.features != self.levels or self.epoch < 0):
            self._pending = (dict(image.features), image.offset + 1)

    def committed(self, image: Image, high_watermark: int) -> bool:
        """Note that everything below is committed, while the image may be ahead. Returns whether the levels
        changed.
        """
        self.applied(image)
        if self._pending is None:
            return False
        levels, end_offset = self._pending
        if high_watermark < end_offset:
            return False
        self._pending = None
        self.levels = {METADATA_VERSION: MINIMUM_VERSION, **levels}
        self.epoch = end_offset - 1
        return True

    def forget_uncommitted(self) -> None:
        """Forget uncommitted levels: the leadership is lost, and they may never be committed."""
        self._pending = None

    def __repr__(self) -> str:
        return f"<FinalizedFeatures {self.levels}, kraft.version {self.kraft_version}, since {self.epoch}>"
