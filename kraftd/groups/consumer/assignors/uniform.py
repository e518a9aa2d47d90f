"""The uniform assignor: as many partitions for each member as for any other, with the fewest moves."""

from __future__ import annotations

from kraftd.groups.consumer.assignors.heterogeneous import assign_heterogeneous
from kraftd.groups.consumer.assignors.homogeneous import assign_homogeneous
from kraftd.groups.consumer.assignors.spec import Assigned, GroupSpec, Slices


def assign_uniformly(spec: GroupSpec) -> Slices[Assigned]:
    """Balance the partitions over the members that are subscribed to them; what can stay does."""
    if not spec.members:
        return {}
    if spec.is_homogeneous:
        return (yield from assign_homogeneous(spec))
    return (yield from assign_heterogeneous(spec))
