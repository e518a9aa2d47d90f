"""`NamedTuple` for the classes of this package: what `typing.NamedTuple` makes, in an eighth of its time.

A start defines more than a hundred. For each, `typing` compiles the text of every annotation, and
`collections` that of a constructor; here a constructor is another one of its length, under other names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from collections import namedtuple
    from functools import cache
    from types import FunctionType

    _field = type(namedtuple("_One", "one").one)  # its reader in C

    @cache
    def _template(length):
        """A constructor of a tuple of that length."""
        names = ", ".join(f"_{index}" for index in range(length))
        return eval(f"lambda _class, {names}: _new(_class, ({names},))", {"_new": tuple.__new__})

    def _constructor(name, fields, defaults):
        template = _template(len(fields))
        code = template.__code__.replace(
            co_varnames=("_class", *fields), co_name="__new__", co_qualname=f"{name}.__new__"
        )
        return FunctionType(code, template.__globals__, "__new__", defaults)

    class _Methods:
        """The methods of all of them."""

        __slots__ = ()

        def __repr__(self):
            shown = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({shown})"

        def __getnewargs__(self):
            return tuple(self)

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, **changes):
            changed = tuple.__new__(type(self), map(changes.pop, self._fields, self))
            if changes:
                raise ValueError(f"Got unexpected field names: {list(changes)!r}")
            return changed

    class _Meta(type):
        def __new__(cls, name, bases, namespace):
            if not bases:
                return type.__new__(cls, name, bases, namespace)
            fields = tuple(namespace["__annotations__"])
            defaults = {field: namespace[field] for field in fields if field in namespace}
            namespace |= {field: _field(index, "") for index, field in enumerate(fields)}
            namespace |= {
                "__slots__": (),
                "__match_args__": fields,
                "_fields": fields,
                "_field_defaults": defaults,  # msgspec decodes by them
                "__new__": _constructor(name, fields, tuple(defaults.values())),
            }
            # A plain class, so that a class may inherit from it as from any other.
            return type(name, (_Methods, tuple, *bases[1:]), namespace)

    class NamedTuple(metaclass=_Meta):
        """A base for a class whose annotations are the names of a tuple's items, with their defaults."""
