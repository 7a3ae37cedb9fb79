"""Immutable values, quick to define.

A frozen dataclass compiles six methods from text for every class. The languages have hundreds of small classes, and
compiling all of them took a quarter of the time in which a query starts. `value` makes the same classes with methods
that they share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """As `@dataclass(frozen=True, slots=True)`.

    >>> @value
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, y=0), Point(1) == Point(2)
    (Point(x=1, y=0), True, False)
    """
    own = set(vars(cls))
    if cls.__doc__ is None:
        cls.__doc__ = (
            cls.__name__
        )  # else the signature is computed, which takes longer than the rest
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    made.__compared__ = tuple(member.name for member in fields(made) if member.compare)
    shared = {**METHODS, "__init__": _initialiser(made)}
    for name, method in shared.items():
        if name not in own:
            setattr(made, name, method)
    return made  # type: ignore[no-any-return]


def _initialiser(made: Any) -> Callable[..., None]:
    """Fills the slots from what is given and from the defaults."""
    found = fields(made)
    count = len(found)
    fill = tuple(getattr(made, member.name).__set__ for member in found)
    after = hasattr(made, "__post_init__")

    def __init__(self: Any, *given: Any, **named: Any) -> None:  # noqa: N807
        if named or len(given) != count:
            given = _completed(made, found, given, named)
        for put, content in zip(fill, given, strict=True):
            put(self, content)
        if after:
            self.__post_init__()

    return __init__


def _completed(
    made: Any, found: tuple[Field[Any], ...], given: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[Any, ...]:
    """All contents in order; raises like a call with wrong arguments."""
    contents = dict(zip((member.name for member in found), given, strict=False))
    known = {member.name for member in found}
    if (
        len(given) > len(found)
        or not contents.keys().isdisjoint(named)
        or not named.keys() <= known
    ):
        raise TypeError(f"{made.__qualname__}() takes each of {sorted(known)} once")
    contents.update(named)
    return tuple(_content(made, member, contents) for member in found)


def _content(made: Any, member: Field[Any], contents: Mapping[str, Any]) -> Any:
    if member.name in contents:
        return contents[member.name]
    if member.default is not MISSING:
        return member.default
    if member.default_factory is not MISSING:
        return member.default_factory()
    raise TypeError(f"{made.__qualname__}() needs {member.name!r}")


# --- what all values share ---------------------------------------------------------------------------------------


def _contents(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self.__dataclass_fields__])


def _equals(self: Any, other: object) -> Any:
    return (
        _compared(self) == _compared(other) if other.__class__ is self.__class__ else NotImplemented
    )


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _compared(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self.__compared__])


def _text(self: Any) -> str:
    inside = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({', '.join(inside)})"


def _refuse_to_set(self: Any, name: str, _: Any) -> None:  # noqa: ARG001
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:  # noqa: ARG001
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _fill(self: Any, contents: tuple[Any, ...]) -> None:
    """What unpickling calls."""
    for name, content in zip(self.__dataclass_fields__, contents, strict=True):
        object.__setattr__(self, name, content)


METHODS: dict[str, Callable[..., Any]] = {
    "__repr__": _text,
    "__eq__": _equals,
    "__hash__": _hash,
    "__setattr__": _refuse_to_set,
    "__delattr__": _refuse_to_delete,
    "__getstate__": _contents,
    "__setstate__": _fill,
}
