"""The finalized features as clients see them: of committed records only, with the offset at which they
changed.
"""

from __future__ import annotations

from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import METADATA_VERSION, MINIMUM_VERSION


class FinalizedFeatures:
    """`levels` by name, without kraft.version, which is the quorum's; `epoch` is -1 before any metadata was
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
        """Records were applied to the image: where they changed levels is what has to be committed."""
        if self._pending is None and image.features and (image.features != self.levels or self.epoch < 0):
            self._pending = (dict(image.features), image.offset + 1)

    def committed(self, image: Image, high_watermark: int) -> bool:
        """Everything below is committed, and the image may be ahead of it. True when they are news."""
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
        """Leadership is lost: what was not committed yet may never be."""
        self._pending = None

    def __repr__(self) -> str:
        return f"<FinalizedFeatures {self.levels}, kraft.version {self.kraft_version}, since {self.epoch}>"
