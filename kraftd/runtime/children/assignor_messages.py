"""What passes between the daemon and an assignor's process: a frame of pickles that share their memo.

Members are pickled some at a time, so that no step holds the event loop for long. Their topics are one object
on both sides, and pickled once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from io import BytesIO
from itertools import islice
from pickle import HIGHEST_PROTOCOL, Pickler, Unpickler
from typing import IO, Any

from kraftd.groups.consumer.assignors.spec import (
    MEMBERS_A_SLICE,
    PARTITIONS_A_SLICE,
    Assigned,
    GroupSpec,
    MemberSpec,
    Partitions,
    Slices,
)

SIZE = struct.Struct(">Q")


def write_frame(stream: IO[bytes], frame: bytes) -> None:
    """Write a frame after its size."""
    stream.write(SIZE.pack(len(frame)))
    stream.write(frame)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes | None:
    """Read a frame; None if the stream ends before or in it."""
    size = stream.read(SIZE.size)
    if len(size) < SIZE.size:
        return None
    (length,) = SIZE.unpack(size)
    frame = stream.read(length)
    return frame if len(frame) == length else None


def encode_group(group: GroupSpec) -> Slices[bytes]:
    """A group, slice by slice."""
    out = BytesIO()
    pickler = Pickler(out, HIGHEST_PROTOCOL)
    pickler.dump((group.group_id, group.is_homogeneous, dict(group.partition_counts)))
    for some in _slices({name: member.assigned for name, member in group.members.items()}):
        yield
        members = {}
        for name, assigned in some.items():
            member = group.members[name]
            own = {topic_id: set(indexes) for topic_id, indexes in assigned.items()}
            members[name] = MemberSpec(member.instance_id, member.topic_ids, own)
        pickler.dump(members)
    pickler.dump(None)
    return out.getvalue()


def decode_group(frame: bytes) -> GroupSpec:
    unpickler = Unpickler(BytesIO(frame))
    group_id, is_homogeneous, partition_counts = unpickler.load()
    members: dict[str, MemberSpec] = {}
    while (some := unpickler.load()) is not None:
        members.update(some)
    return GroupSpec(members, is_homogeneous, partition_counts, group_id)


def encode_answer(assigned: Assigned) -> bytes:
    """The partitions of members."""
    out = BytesIO()
    pickler = Pickler(out, HIGHEST_PROTOCOL)
    for some in _slices(assigned):
        pickler.dump(some)
    pickler.dump(None)
    return out.getvalue()


def encode_failure(text: str) -> bytes:
    out = BytesIO()
    Pickler(out, HIGHEST_PROTOCOL).dump(text)
    return out.getvalue()


def decode_answer(frame: bytes) -> Slices[Assigned | str]:
    """The partitions of members, slice by slice, or the text of a failure."""
    unpickler = Unpickler(BytesIO(frame))
    assigned: Assigned = {}
    while (some := unpickler.load()) is not None:
        if isinstance(some, str):
            return some
        assigned.update(some)
        yield
    return assigned


def _slices(assigned: Mapping[str, Partitions]) -> Iterator[dict[str, Any]]:
    """The members, some at a time: not many members, and not many partitions."""
    rest = iter(assigned.items())
    while some := dict(islice(rest, 1)):
        count = sum(map(len, next(iter(some.values())).values()))
        while count < PARTITIONS_A_SLICE and len(some) < MEMBERS_A_SLICE:
            following = next(rest, None)
            if following is None:
                break
            some[following[0]] = following[1]
            count += sum(map(len, following[1].values()))
        yield some
