"""What members of random share groups get is what Kafka has given them, although there are pauses."""

from __future__ import annotations

from hashlib import sha256

import pytest

from kraftd.groups.consumer.assignors import spec
from kraftd.groups.share import assignor
from tests.groups.consumer.random_groups import KAFKAS, share_assignments

PAUSES = 9770


def test_random_share_groups_get_what_kafkas_assignor_gives_them__kip932(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(assignor, "PLACES_A_SLICE", 3)
    monkeypatch.setattr(assignor, "PLACES_SEEN_A_SLICE", 5)
    monkeypatch.setattr(spec, "TOPICS_A_SLICE", 10)
    digest, pauses = sha256(), 0
    for _, _, text, count in share_assignments():
        digest.update(text.encode())
        pauses += count
    assert digest.hexdigest()[:16] == KAFKAS[assignor.SIMPLE]
    assert pauses == PAUSES  # of steps that are that short
