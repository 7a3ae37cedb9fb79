"""The files of rows of a path, with the metadata of each: folders, patterns, tables of a lake."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from omnigraph.model.frozen import frozen
from omnigraph.write.input import folders
from omnigraph.write.input.files import (
    below,
    expand,
    is_pattern,
    known_size,
    names_below,
    path_text,
)
from omnigraph.write.input.folders import (
    ICEBERG_METADATA,
    FolderValue,
    folder_values,
    table_format,
)
from omnigraph.write.input.lakes.delta import delta_parts
from omnigraph.write.input.lakes.iceberg import iceberg_parts
from omnigraph.write.input.lakes.parts import LakePart, LakeRows
from omnigraph.write.input.tables import RowShape

ICEBERG_FILE = re.compile(f"(.*)/{ICEBERG_METADATA.pattern}")


@frozen
class InputFile:
    """A file to read rows from."""

    name: str
    values: tuple[FolderValue, ...] = ()  # columns in folder names
    part: LakePart | None = None  # the lake table it is a file of

    @property
    def known_size(self) -> int:
        """Its size; 0 if not known without a request to a store."""
        return known_size(self.name) if self.part is None else self.part.size

    def shaped(self, shape: RowShape) -> RowShape:
        """The shape for its rows: first that of its lake table."""
        return shape if self.part is None else LakeRows(self.part, shape)


def input_files(given: str | os.PathLike[str]) -> Iterator[InputFile]:
    """The files of rows of a path, a pattern, a folder, a Delta or an Iceberg table."""
    text = path_text(given)
    if is_pattern(text):
        files = expand(text)
    elif named := ICEBERG_FILE.fullmatch(text):
        yield from _of_table(iceberg_parts(named[1], (), text))
        return
    else:
        names = names_below(text)
        match table_format(names or ()):
            case folders.DELTA:
                yield from _of_table(delta_parts(text.rstrip("/"), names or ()))
                return
            case folders.ICEBERG:
                yield from _of_table(iceberg_parts(text.rstrip("/"), names or ()))
                return
        files = [text] if names is None else below(text, names)
    for file in files:
        yield InputFile(file, folder_values(given, file))


def _of_table(parts: Iterable[LakePart]) -> Iterator[InputFile]:
    return (InputFile(part.file, part=part) for part in parts)
