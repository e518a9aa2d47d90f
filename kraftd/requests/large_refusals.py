"""Refuses a request of very many elements in slices: the same answer as `refusals.refuse`.

A slice refuses a part of the request: a copy with some of the elements of its longest list. Where one element
is itself very long, the copy has that element with a part of its own longest list. The answers to the parts
are joined.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

from msgspec import structs

from kraftd.ground.pace import Slices
from kraftd.requests.refusals import refuse
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

ELEMENTS_PER_SLICE = 1_000  # each costs about 2 us
Lists = tuple[tuple[str, type[Message] | None], ...]

_SCRAM = int(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)


def refuse_in_slices(
    key: int, version: int, request: Message, code: ErrorCode | int, message: str | None
) -> Slices[Message]:
    """The response of `refuse`, made with pauses."""
    answer: Message | None = None
    users: set[str] = set()  # a user named in several parts is answered once
    for part, continues in _parts(request):
        some = refuse(key, version, part, code, message)
        if key == _SCRAM:
            results: list[Any] = [one for one in some.results if one.user not in users]  # type: ignore[attr-defined]
            users.update(one.user for one in results)
            some.results = results  # type: ignore[attr-defined]
        if answer is None:
            answer = some
            if not any(getattr(some, name) for name, _ in _lists(type(some))):
                return some  # its one error refuses the whole
        else:
            _join(answer, some, continues=continues)
        yield
    assert answer is not None
    return answer


def refused_count(answer: Any) -> int:
    """How many elements of such a response carry the error: those of its first list that do, or itself."""
    of: type[Message] = type(answer)
    for name, kind in _lists(of):
        rows = getattr(answer, name)
        if kind is None or not rows:
            continue
        if hasattr(rows[0], "error_code"):
            return len(rows)
        return sum(map(refused_count, rows)) if _lists(kind) else 1
    return 1


def _parts(struct: Message) -> Iterator[tuple[Any, bool]]:
    """The struct divided, and whether a part's first element belongs to the last one of the part before."""
    kind: type[Message] = type(struct)
    lists = _lists(kind)
    long = [name for name, _ in lists if _elements(getattr(struct, name)) > ELEMENTS_PER_SLICE]
    if not long:
        yield struct, False
        return
    kinds = dict(lists)
    rest: Message = structs.replace(struct, **{name: () if kinds[name] is None else [] for name in long})
    for name in long:
        for some, continues in _divided(getattr(struct, name), kinds[name]):
            yield structs.replace(rest, **{name: some}), continues
        # The short lists are in the parts of the first long one only.
        rest = structs.replace(
            rest, **{other: () if kind is None else [] for other, kind in lists if getattr(rest, other)}
        )


def _divided(elements: Any, kind: type[Message] | None) -> Iterator[tuple[Any, bool]]:
    """The elements of a list in runs."""
    run: list[Any] = []
    left = ELEMENTS_PER_SLICE
    if kind is None:
        for at in range(0, len(elements), ELEMENTS_PER_SLICE):
            yield elements[at : at + ELEMENTS_PER_SLICE], False
        return
    for element in elements:
        count = 1 + sum(_elements(getattr(element, name)) for name, _ in _lists(kind))
        if run and count > left:
            yield run, False
            run, left = [], ELEMENTS_PER_SLICE
        if count > ELEMENTS_PER_SLICE:
            for at, (part, _) in enumerate(_parts(element)):
                yield [part], at > 0
        else:
            run.append(element)
            left -= count
    if run:
        yield run, False


def _elements(found: Any) -> int:
    return len(found) if found else 0


@cache
def _lists(kind: type[Message]) -> Lists:
    """The arrays of a struct, each with the class of its elements, None for primitives."""
    module: Any = sys.modules[kind.__module__]
    rows = next(rows for name, rows in module.SCHEMA[5] if name == kind.__name__)
    return tuple((row[0], getattr(module, row[2], None)) for row in rows if row[3])


def _join(answer: Message, more: Message, *, continues: bool) -> None:
    """Append the elements of another answer to the same request."""
    for name, kind in _lists(type(answer)):
        mine, others = getattr(answer, name), getattr(more, name)
        if not others:
            continue
        if kind is None or not mine:
            setattr(answer, name, [*mine, *others] if kind is not None else (*mine, *others))
            continue
        if continues:
            _join(mine[-1], others[0], continues=False)
            others = others[1:]
        mine.extend(others)
