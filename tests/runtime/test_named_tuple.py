"""The package's NamedTuple and typing's make the same of a class."""

import copy
import inspect
import pickle
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import pytest

import kraftd
from kraftd import named_tuple

Value = TypeVar("Value")


class Ours(named_tuple.NamedTuple):
    """A place."""

    name: str
    size_bytes: int = 3

    @property
    def doubled(self) -> int:
        return self.size_bytes * 2


class Typings(typing.NamedTuple):
    """A place."""

    name: str
    size_bytes: int = 3

    @property
    def doubled(self) -> int:
        return self.size_bytes * 2


class Child(Ours):
    """With a method more."""

    def first(self) -> str:
        return self.name


class Pair(named_tuple.NamedTuple, Generic[Value]):
    left: Value
    right: Value


def fails(make: Callable[[], object]) -> str:
    with pytest.raises((TypeError, ValueError, AttributeError)) as caught:
        make()
    return str(caught.value).replace("Typings", "Ours")


@pytest.mark.parametrize(
    "of",
    [
        lambda kind: tuple(kind("a")),
        lambda kind: tuple(kind("a", size_bytes=5)),
        lambda kind: kind("a") == ("a", 3) and hash(kind("a")) == hash(("a", 3)),
        lambda kind: kind("a") < kind("a", 4),
        lambda kind: kind("a").doubled,
        lambda kind: repr(kind("a")).partition("(")[2],
        lambda kind: tuple(kind("a")._replace(name="b")),
        lambda kind: kind("a")._asdict(),
        lambda kind: (kind._fields, kind.__match_args__, kind.__doc__, kind.__module__),
        lambda kind: typing.get_type_hints(kind),
        lambda kind: [parameter.name for parameter in inspect.signature(kind).parameters.values()],
        lambda kind: [parameter.default for parameter in inspect.signature(kind).parameters.values()],
        lambda kind: type(copy.copy(kind("a"))) is kind and tuple(copy.deepcopy(kind("a"))),
        lambda kind: type(pickle.loads(pickle.dumps(kind("a")))) is kind,
        lambda kind: msgspec.json.encode(kind("a")),
        lambda kind: tuple(msgspec.json.decode(b'["a"]', type=kind)),
        lambda kind: tuple(msgspec.convert(["a", 5], type=kind | None)),
        lambda kind: kind._field_defaults,
        lambda kind: fails(lambda: kind()),
        lambda kind: fails(lambda: kind("a", 1, 2)),
        lambda kind: fails(lambda: kind("a", other=1)),
        lambda kind: fails(lambda: kind("a")._replace(other=1)),
        lambda kind: fails(lambda: setattr(kind("a"), "name", "b")),
        lambda kind: fails(lambda: setattr(kind("a"), "other", "b")),
    ],
)
def test_a_class_is_as_typings_would_be(of: Callable[[Any], object]) -> None:
    assert of(Ours) == of(Typings)


def test_a_class_inherits_from_one() -> None:
    child = Child("a")._replace(size_bytes=9)
    assert (type(child), child.first(), child.doubled, repr(child)) == (
        Child, "a", 18, "Child(name='a', size_bytes=9)",
    )  # fmt: skip


def test_a_class_is_generic() -> None:
    assert tuple(Pair[int](1, 2)) == (1, 2)


def test_all_modules_use_the_packages() -> None:
    """typing's would make a start longer."""
    root = Path(kraftd.__file__).parent
    users = [
        file.relative_to(root).as_posix()
        for file in root.rglob("*.py")
        if any("import" in line and "typing" in line and "NamedTuple" in line for line in file.open())
    ]
    assert users == ["named_tuple.py"]
