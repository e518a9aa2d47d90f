"""What assignors give random groups is what Kafka's have given them, although there are many pauses."""

from __future__ import annotations

from hashlib import sha256

import pytest

from kraftd.groups.consumer.assignors import ASSIGNORS, heterogeneous, homogeneous, spec
from kraftd.groups.consumer.assignors import range as ranges
from tests.groups.consumer.random_groups import KAFKAS, assignments

SLICES = {"PARTITIONS_A_SLICE": 10, "PARTITIONS_A_MEMBER": 2, "TOPICS_A_SLICE": 10, "TOPICS_A_MEMBER": 2}
PAUSES = {"uniform": 2964, "range": 1862}


@pytest.mark.parametrize("name", list(ASSIGNORS))
def test_random_groups_get_what_kafkas_assignors_give_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (heterogeneous, homogeneous, ranges, spec):
        for constant, value in SLICES.items():
            monkeypatch.setattr(module, constant, value, raising=False)
    digest, pauses = sha256(), 0
    for _, text, count in assignments(name):
        digest.update(text.encode())
        pauses += count
    assert digest.hexdigest()[:16] == KAFKAS[name]
    assert pauses == PAUSES[name]  # of steps that are as short as SLICES says
