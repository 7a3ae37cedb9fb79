"""A `frozen` class is what a frozen dataclass with slots is."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any

import pytest

from omnigraph.model.frozen import frozen


@frozen
class Made:
    x: int
    names: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Plain:
    x: int
    names: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list, compare=False, repr=False)


@frozen
class Checked:
    x: int

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("negative")

    def __repr__(self) -> str:
        return f"<{self.x}>"


@pytest.mark.parametrize(
    ("given", "named"), [((1,), {}), ((1, ("a",)), {}), ((), {"x": 1, "notes": ["n"]})]
)
def test_it_is_made_as_a_dataclass_is(given: Any, named: Any) -> None:
    made, plain = Made(*given, **named), Plain(*given, **named)
    assert [getattr(made, f.name) for f in fields(made)] == [
        getattr(plain, f.name) for f in fields(plain)
    ]
    assert repr(made).removeprefix("Made") == repr(plain).removeprefix("Plain")
    assert hash(made) == hash(plain)


@pytest.mark.parametrize(
    ("given", "named"), [((), {}), ((1, (), [], 4), {}), ((1,), {"x": 1}), ((1,), {"y": 1})]
)
def test_wrong_arguments_are_refused(given: Any, named: Any) -> None:
    with pytest.raises(TypeError):
        Made(*given, **named)


def test_instances_are_equal_by_what_is_compared() -> None:
    assert Made(1, notes=["a"]) == Made(1)
    assert Made(1) != Made(2)
    assert Made(1) != Plain(1)  # type: ignore[comparison-overlap]
    assert len({Made(1), Made(1), Made(2)}) == 2


def test_defaults_are_not_shared() -> None:
    assert Made(1).notes is not Made(1).notes


def test_it_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Made(1).x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del Made(1).x
    with pytest.raises((AttributeError, FrozenInstanceError)):
        Made(1).other = 2  # type: ignore[attr-defined]


def test_it_can_be_replaced_matched_and_copied() -> None:
    assert replace(Made(1), x=2) == Made(2)
    assert copy.deepcopy(Made(1, ("a",))) == Made(1, ("a",))  # as pickle does it
    match Made(3, ("b",)):
        case Made(x, (name,)):
            assert (x, name) == (3, "b")
        case _:
            raise AssertionError("a value matches by position")


@frozen
class Empty:
    pass


@frozen
class Single:
    x: float


@frozen
class Derived(Made):
    more: int = 5
    named: int = field(kw_only=True, repr=False)


def test_few_fields_and_inherited_ones() -> None:
    nothing_known = float("nan")
    assert Empty() == Empty()
    assert hash(Empty()) == hash(Empty())
    assert Single(nothing_known) == Single(nothing_known), "the same object, as in a tuple"
    assert Single(1.0) != Single(2.0)
    derived = Derived(1, more=6, named=7)
    assert repr(derived) == "Derived(x=1, names=(), more=6)"
    assert (derived.more, derived.named, Made(1).x) == (6, 7, 1)


def test_what_a_class_says_itself_stays() -> None:
    assert repr(Checked(1)) == "<1>"
    with pytest.raises(ValueError, match="negative"):
        Checked(-1)
