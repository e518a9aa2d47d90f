"""The epoch with which a quorum begins again from one copy."""

from __future__ import annotations

from kraftd.log.errors import DirectoryProblem

EPOCH_STEP = 1_000
"""By how many epochs it goes ahead of all that is known: room for elections of which no copy tells."""

MAX_EPOCH = (1 << 31) - 1


def epoch_beyond(epoch: int) -> int:
    """An epoch well above a known one. Raises DirectoryProblem if there is none left."""
    if epoch + 2 * EPOCH_STEP > MAX_EPOCH:
        raise DirectoryProblem(
            f"epoch {epoch} leaves no room for another {EPOCH_STEP} below the last one, {MAX_EPOCH}. Is the "
            "directory's quorum-state damaged?"
        )
    return epoch + EPOCH_STEP
