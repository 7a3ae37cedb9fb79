"""One definition of how dates and times are written, whichever way a value comes in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import OmnigraphError

TAKEN: dict[str, dict[str, str]] = {
    "Date": {"2025-12-31": "2025-12-31", "0001-01-01": "0001-01-01"},
    "DateTime": {
        "2025-12-31T23:59:59Z": "2025-12-31T23:59:59.000Z",
        "2025-12-31t23:59:59.1239z": "2025-12-31T23:59:59.123Z",
        "2025-12-31 23:59": "2025-12-31T23:59:00.000Z",
        "2025-12-31T23:59:59": "2025-12-31T23:59:59.000Z",
        "2025-12-31T23:59:59+0200": "2025-12-31T21:59:59.000Z",
        "2025-12-31": "2025-12-31T00:00:00.000Z",
    },
}
REFUSED = {
    "Date": ["2025-W01-1", "20251231", "2025-12-32", "2025-12-31T00:00:00Z", " 2025-12-31", "noon"],
    "DateTime": ["2025-12-31x23:59:59Z", "2025-W01-1T00:00:00Z", "20251231T235959Z", "2025-366", "noon"],
}  # fmt: skip
Door = Callable[[str, str, Path], Any]


def stored(graph: omnigraph.Graph) -> Any:
    return graph.query("match { $a: A } return { $a.v as v }").to_json()["rows"][0]["v"]


def fresh(folder: Path, kind: str, rest: str = "") -> omnigraph.Graph:
    schema = f"node A {{ k: String @key  v: {kind}? {rest} }}"
    return omnigraph.init(f"memory://spellings{folder}", schema=schema)


def by_default(kind: str, text: str, folder: Path) -> Any:
    graph = fresh(folder, kind, f'@default("{text}")')
    graph.mutate('insert A { k: "a" }')
    return stored(graph)


def by_parameter(kind: str, text: str, folder: Path) -> Any:
    graph = fresh(folder, kind)
    graph.mutate(f'query q($v: {kind}) {{ insert A {{ k: "a", v: $v }} }}', {"v": text})
    return stored(graph)


def by_record(kind: str, text: str, folder: Path) -> Any:
    graph = fresh(folder, kind)
    graph.load([{"type": "A", "data": {"k": "a", "v": text}}])
    return stored(graph)


def by_table(kind: str, text: str, folder: Path) -> Any:
    graph = fresh(folder, kind)
    (folder / "a.csv").write_text(f'k,v\na,"{text}"\n')
    graph.load({"A": str(folder / "a.csv")})
    return stored(graph)


DOORS = (by_default, by_parameter, by_record, by_table)


def spellings() -> Iterator[Any]:
    for kind, taken in TAKEN.items():
        for text, value in taken.items():
            yield pytest.param(kind, text, value, id=f"{kind} {text}")
    for kind, refused in REFUSED.items():
        for text in refused:
            yield pytest.param(kind, text, None, id=f"{kind} {text}")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("kind", "text", "value"), [*spellings()])
def test_every_door_takes_the_same_spellings(
    tmp_path: Path, door: Door, kind: str, text: str, value: str | None
) -> None:
    if value is None:
        with pytest.raises(OmnigraphError):
            door(kind, text, tmp_path)
    else:
        assert door(kind, text, tmp_path) == value
