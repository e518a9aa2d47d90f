"""Passes committed ACLs to the authorizer; a leader's image is ahead of them."""

from __future__ import annotations

from kraftd.metadata.image import Image
from kraftd.security.authorizer import Authorizer


class AclPublisher:
    """Follows the ACLs of successive images for one authorizer, if there is one.

    The authorizer gets an image's ACLs in parts while the image is loaded, so that very many cause no delay.
    It decides by them once the image is published.
    """

    def __init__(self, authorizer: Authorizer | None) -> None:
        self._authorizer = authorizer
        self._loading = False

    def follow(self, image: Image) -> None:
        """Make an image note its changes; to be called before records are applied to it."""
        if self._authorizer is not None:
            image.acl_changes = []
            self._authorizer.begin_load()
            self._loading = True

    def gather(self, image: Image, committed_end: int) -> None:
        """Pass the changes of records below that offset, all committed, to the authorizer."""
        authorizer, changes = self._authorizer, image.acl_changes
        if authorizer is None or not changes:
            return
        if image.transaction_offset is not None:
            committed_end = min(committed_end, image.transaction_offset)
        committed = [change for change in changes if change[0] < committed_end]
        if committed:
            image.acl_changes = changes[len(committed) :]
            authorizer.change(
                [before for _, before, _ in committed if before is not None],
                [after for _, _, after in committed if after is not None],
            )

    def publish(self, image: Image, high_watermark: int) -> None:
        """Publish to the authorizer the ACLs of the records below the high watermark."""
        self.gather(image, high_watermark)
        if self._loading and self._authorizer is not None:
            self._authorizer.end_load()
            self._loading = False

    def __repr__(self) -> str:
        return f"<AclPublisher to {self._authorizer!r}>"
