"""Tables that fit the terminal: types under the headings, and the count of omitted rows in the middle.

rich draws tables too, but importing it would add a twelfth to the time in which a query starts.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any

CELL_WIDTH_MIN = 8
CELL_WIDTH_MAX = 200
NUMERIC = ("I32", "I64", "U32", "U64", "F32", "F64")


def width_available() -> int | None:
    """The width of the terminal or of COLUMNS; None if the output goes elsewhere."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        return shutil.get_terminal_size().columns
    return None


def draw(
    columns: Sequence[str],
    types: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    rows_max: int = 40,
    width: int | None = None,
) -> str:
    """A table as text.

    >>> print(draw(["n"], ["I64"], [[7]]))
    ┌─────┐
    │   n │
    │ I64 │
    ├─────┤
    │   7 │
    └─────┘
    """
    head = [list(columns), list(types)] if types else [list(columns)]
    shown, hidden = _without_middle(rows, rows_max)
    body = [[cell(value) for value in row] for row in shown]
    right = [_is_number(types, [row[i] for row in shown], i) for i in range(len(columns))]
    kept, widths = _fit(
        [*head, *body], len(columns), width if width is not None else width_available()
    )
    message = f"⋮ {hidden:,} {'row' if hidden == 1 else 'rows'} not shown"
    if hidden:
        widths[-1] += max(0, len(message) + 4 - _total(widths))
    lines = [_rule("┌┬┐", widths)]
    lines += [_line(row, kept, widths, right) for row in head]
    lines.append(_rule("├┼┤", widths))
    half = (len(body) + 1) // 2 if hidden else len(body)
    lines += [_line(row, kept, widths, right) for row in body[:half]]
    if hidden:
        lines.append(_message(message, widths))
        lines += [_line(row, kept, widths, right) for row in body[half:]]
    lines.append(_rule("└┴┘", widths))
    left_out = len(columns) - sum(i is not None for i in kept)
    if left_out:
        lines.append(
            f"{left_out} {'column' if left_out == 1 else 'columns'} not shown; --format json shows all"
        )
    return "\n".join(lines)


def cell(value: Any) -> str:
    """One value on one line."""
    from omnigraph.cli.output import as_text

    if isinstance(value, list) and len(value) > 8 and isinstance(value[0], float):
        return f"[{', '.join(f'{v:.3g}' for v in value[:3])}, … {len(value)} numbers]"
    text = "null" if value is None else as_text(value)
    return "".join(c if c.isprintable() else "·" if c not in "\n\t" else " " for c in text)


def _without_middle(rows: Sequence[Any], rows_max: int) -> tuple[list[Any], int]:
    if rows_max <= 0 or len(rows) <= rows_max:
        return list(rows), 0
    half = (rows_max + 1) // 2
    return [*rows[:half], *rows[len(rows) - half :]], len(rows) - 2 * half


def _is_number(types: Sequence[str], values: Sequence[Any], index: int) -> bool:
    if types:
        return types[index].rstrip("?") in NUMERIC
    return bool(values) and all(
        isinstance(v, int | float) and not isinstance(v, bool) for v in values if v is not None
    )


def _fit(
    rows: list[list[str]], count: int, width: int | None
) -> tuple[list[int | None], list[int]]:
    """Which columns are drawn (None stands for those left out), and how wide."""
    natural = [min(CELL_WIDTH_MAX, max(_width(row[i]) for row in rows)) for i in range(count)]
    everything: list[int | None] = list(range(count))
    if width is None or _total(natural) <= width:
        return everything, natural
    widths = _capped(natural, width)
    for kept_count in range(count, 1, -1):
        left = (kept_count + 1) // 2
        right = count - (kept_count - left)
        gap: list[int | None] = [None] if kept_count < count else []
        kept = [*everything[:left], *gap, *everything[right:]]
        sizes = [1 if i is None else widths[i] for i in kept]
        if _total(sizes) <= width or kept_count == 2:
            return kept, sizes
    return everything, widths


def _capped(natural: list[int], width: int) -> list[int]:
    """Narrow the widest columns first, all to the same width, down to the least that is legible."""
    for cap in range(max(natural), CELL_WIDTH_MIN, -1):
        widths = [min(w, cap) for w in natural]
        if _total(widths) <= width:
            return widths
    return [min(w, CELL_WIDTH_MIN) for w in natural]


def _total(widths: list[int]) -> int:
    return sum(widths) + 3 * len(widths) + 1


def _rule(corners: str, widths: list[int]) -> str:
    return corners[0] + corners[1].join("─" * (w + 2) for w in widths) + corners[2]


def _line(row: list[str], kept: list[int | None], widths: list[int], right: list[bool]) -> str:
    cells = [
        _cell("…" if i is None else row[i], width, i is not None and right[i])
        for i, width in zip(kept, widths, strict=True)
    ]
    return f"│ {' │ '.join(cells)} │"


def _cell(text: str, width: int, right: bool) -> str:
    size = _width(text)
    if size > width:
        return _cut(text, width - 1) + "…"
    pad = " " * (width - size)
    return pad + text if right else text + pad


def _message(text: str, widths: list[int]) -> str:
    inside = _total(widths) - 4
    return f"│ {_cell(text, inside, False)} │"


def _width(text: str) -> int:
    """How many columns a text takes; wide characters take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _cut(text: str, width: int) -> str:
    if text.isascii():
        return text[:width]
    from rich.cells import set_cell_size

    return set_cell_size(text, width)
