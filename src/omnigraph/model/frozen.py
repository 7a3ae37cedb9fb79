"""Immutable values, quick to define and as quick to make as frozen dataclasses.

A frozen dataclass compiles six methods from text for every class. A query uses some of the hundreds of small classes it
imports, and compiling all of their methods took a quarter of the time in which it starts. `frozen` makes the same
classes with methods that they share; the one that makes an instance is compiled when the first instance is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import Field, FrozenInstanceError, dataclass, field, fields, make_dataclass
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """As `@dataclass(frozen=True, slots=True)`.

    >>> @frozen
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
    made.__compared__ = staticmethod(_getter(f.name for f in fields(made) if f.compare))
    shared = {**METHODS, "__init__": _first_init(made)}
    for name, method in shared.items():
        if name not in own:
            setattr(made, name, method)
    return made  # type: ignore[no-any-return]


def _getter(names: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Reads these attributes as a tuple."""
    first, *others = (*names, None)
    if first is None:
        return lambda _: ()
    if others == [None]:
        return lambda instance: (getattr(instance, first),)
    return attrgetter(first, *filter(None, others))


def _first_init(made: Any) -> Callable[..., None]:
    """Compiles the method that fills an instance, at the first call."""

    def __init__(self: Any, *given: Any, **named: Any) -> None:  # noqa: N807
        made.__init__ = _compiled_init(made)
        made.__init__(self, *given, **named)

    return __init__


def _compiled_init(made: Any) -> Any:
    """That of a frozen dataclass with the same fields."""
    members = [(f.name, f.type, _copied(f)) for f in fields(made)]
    body = {"__doc__": made.__doc__}
    if hasattr(made, "__post_init__"):
        body["__post_init__"] = made.__post_init__
    twin = make_dataclass(
        made.__name__, members, namespace=body, repr=False, eq=False, frozen=True, match_args=False
    )
    return twin.__dict__["__init__"]


def _copied(found: Field[Any]) -> Any:
    kept = {name: getattr(found, name) for name in ("default", "default_factory", "kw_only")}
    return field(**kept)


# --- what all of them share ---------------------------------------------------------------------------------------


def _contents(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self.__dataclass_fields__])


def _equals(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self.__compared__(self) == self.__compared__(other)


def _hash(self: Any) -> int:
    return hash(self.__compared__(self))


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
