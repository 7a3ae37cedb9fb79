"""Folders of files, as other programs write them: their parts, and the columns that folder names hold.

Spark and Hive write a table as a folder of parts, and a column it is partitioned by as folders called `name=value`.
Files whose names start with `_` or `.` are markers and temporary files of the program that wrote them.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OptionInvalid
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.frozen import frozen
from omnigraph.values.columns import text_column
from omnigraph.values.misfit import Misfit
from omnigraph.write.input.exact import known_property
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import InputPart
from omnigraph.write.input.problems import Problems

NULL = "__HIVE_DEFAULT_PARTITION__"
DELTA, ICEBERG = "a Delta table", "an Iceberg table"
OTHERS = {  # a folder that contains this is more than its files
    "_delta_log": DELTA,
    "metadata/version-hint.text": ICEBERG,
    "_versions": "a Lance dataset",
    ".hoodie": "a Hudi table",
}
ICEBERG_METADATA = re.compile(
    r"metadata/(?:v(\d+)|(\d+)-[0-9a-f-]{36})(?:\.gz)?\.metadata\.json(?:\.gz)?"
)


def is_part(path: str) -> bool:
    """Whether a path below a folder is one of its parts rather than a marker of the program that wrote it."""
    hidden = (name.startswith(("_", ".")) and "=" not in name for name in path.split("/"))
    return not any(hidden)


def table_format(names: Iterable[str]) -> str | None:
    """The table format of a folder with these paths, if it has one."""
    for name in names:
        for mark, what in OTHERS.items():
            if name == mark or name.startswith(mark + "/"):
                return what
        if ICEBERG_METADATA.fullmatch(name):
            return ICEBERG
    return None


def parts_of(folder: str, names: Iterable[str]) -> list[str]:
    """The parts among the paths below a folder, in their order. Tables that are more than their files are refused."""
    found = sorted(names)
    what = table_format(found)
    if what in (DELTA, ICEBERG):
        raise OptionInvalid(
            f"{folder} is {what}, which does not say which type its rows are of",
            help=f"Name the type, and the folder itself: --data Person={folder}",
            python_help=f"Name the type, and the folder itself: load({{'Person': {folder!r}}})",
        )
    if what is not None:
        raise OptionInvalid(
            f"{folder} is {what}: some of its files may no longer belong to it",
            help="Load a DataFrame of it, or a copy as Parquet.",
        )
    return [name for name in found if is_part(name)]


def walked(folder: str) -> list[str]:
    """The paths of all files below a folder of this machine."""
    found = (
        os.path.relpath(os.path.join(place, name), folder)
        for place, _, names in os.walk(folder)
        for name in names
    )
    return [path.replace(os.sep, "/") for path in found]


# --- columns that folder names hold --------------------------------------------------------------------------------


@frozen
class FolderValue:
    """A column whose value is in the name of a folder. Below the given path, its name must be known."""

    name: str
    text: str | None
    asked: bool


def folder_values(given: str | os.PathLike[str], file: str) -> tuple[FolderValue, ...]:
    """The columns in the names of the folders of a file; `given` is the path or pattern it was found by."""
    own = _literal_folders(os.fspath(given), file)
    folders = file.split("/")[:-1]
    return tuple(
        FolderValue(unquote(name), None if text == NULL else unquote(text), place >= own)
        for place, folder in enumerate(folders)
        for name, mark, text in [folder.partition("=")]
        if mark and name
    )


def _literal_folders(given: str, file: str) -> int:
    """How many folders of a file's path were given literally."""
    parts = given.removeprefix("file://").rstrip("/").split("/")
    if given == file:
        return len(parts)
    return next((place for place, part in enumerate(parts) if glob.has_magic(part)), len(parts))


def with_values(
    parts: Iterable[InputPart],
    values: tuple[FolderValue, ...],
    options: Options,
    problems: Problems,
) -> Iterator[InputPart]:
    """Rows with the columns of their folders; values in the row take precedence."""
    for part in parts:
        filled = part
        for value in values:
            try:
                for name, column in _column(value, part.kind, part.rows, options).items():
                    filled = _filled(filled, name, column)
            except Misfit as misfit:
                problems.add(misfit.violation(part.kind.name, part.file))
        yield filled


def _filled(part: InputPart, name: str, column: pa.Array) -> InputPart:
    own, left_out = part.columns.get(name), part.absent.get(name)
    if own is not None and left_out is None:
        return part
    if own is not None:
        column = pc.if_else(left_out, column.cast(own.type), own)
    absent = {other: mask for other, mask in part.absent.items() if other != name}
    return replace(part, columns={**part.columns, name: column}, absent=absent)


def _column(
    value: FolderValue, kind: NodeOrEdgeType, rows: int, options: Options
) -> dict[str, pa.Array]:
    name = dict(options.columns).get(value.name, value.name)
    if not name or (not value.asked and name not in kind.properties):
        return {}
    prop = known_property(name, kind)
    try:
        one = text_column(pa.array([value.text], pa.string()), prop.type, options.context)
    except Misfit as misfit:
        raise misfit.at(f"'{prop.name}'", prop.type, prop.name) from None
    one = one.combine_chunks() if isinstance(one, pa.ChunkedArray) else one
    return {prop.name: one.take(pa.array([0] * rows, pa.int64()))}
