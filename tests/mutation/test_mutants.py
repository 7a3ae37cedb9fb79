"""Changes are what they say they are: one at a time, inside the module, and the judge makes them in place."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

from tests.mutation.judge import is_inside_a_function, patch
from tests.mutation.mutants import NO_CHANGE, Mutant, mutants_of

SOURCE = '''
LIMIT = 3

def inside(value: int, low: int = 1) -> bool:
    """Whether a value lies between."""
    if value < low:
        return False
    return value <= LIMIT and not value == 2

class Counter:
    start: int = 5

    @property
    def next(self) -> int:
        return 1 + 1
'''


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    place = tmp_path / "sample.py"
    place.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("sample", place)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def changes(module: ModuleType) -> dict[str, Mutant]:
    place = Path(str(module.__file__))
    return {mutant.change: mutant for mutant in mutants_of(place, place.parent)}


def functions(module: ModuleType) -> list[FunctionType]:
    return [module.inside, module.Counter.next.fget]


def test_every_kind_of_change_is_found_and_nothing_else(module: ModuleType) -> None:
    assert set(changes(module)) == {
        "1 -> 2",
        "5 -> 6",
        "negate: value < low",
        "Lt -> LtE: value < low",
        "False -> True",
        "And -> Or: value <= LIMIT and (not value == 2)",
        "LtE -> Lt: value <= LIMIT",
        "drop not: not value == 2",
        "Eq -> NotEq: value == 2",
        "2 -> 3",
        "return nothing: value <= LIMIT and (not value == 2)",
        "Add -> Sub: 1 + 1",
        "return nothing: 1 + 1",
    }


def test_a_change_reaches_functions_that_exist(module: ModuleType) -> None:
    known = changes(module)
    assert (module.inside(1), module.inside(2), module.inside(3)) == (True, False, True)
    patch(known["LtE -> Lt: value <= LIMIT"], functions(module))
    assert (module.inside(1), module.inside(2), module.inside(3)) == (True, False, False)
    patch(known["Add -> Sub: 1 + 1"], functions(module))
    assert module.Counter().next == 0


def test_no_change_changes_nothing(module: ModuleType) -> None:
    same = replace(next(iter(changes(module).values())), number=NO_CHANGE)
    patch(same, functions(module))
    assert module.inside(3)
    assert not is_inside_a_function(same)


def test_what_is_outside_functions_is_known(module: ModuleType) -> None:
    place = Path(str(module.__file__))
    outside = [m for m in mutants_of(place, place.parent) if not is_inside_a_function(m)]
    assert [(m.function, m.change) for m in outside] == [
        ("inside", "1 -> 2"),
        ("Counter", "5 -> 6"),
    ]
