"""Rows on disk: what does not fit into the memory of a query is kept in Arrow files of a folder removed with it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.model.frozen import frozen
from omnigraph.read.arrays import Ints
from omnigraph.read.rows import Entities, Paths, Rows, Values, Variable, step_counts


def spill_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for the rows one query spills."""
    place = os.environ.get("OMNIGRAPH_SPILL") or None
    if place is not None:
        Path(place).mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(prefix="omnigraph-spill-", dir=place)


Part = tuple[Rows, list[pa.Array]]  # rows, and extra columns beside them


@frozen
class RowsFile:
    """Rows in a file, read in parts."""

    place: Path
    like: Rows  # a row without variables

    @classmethod
    def write(cls, place: Path, parts: Iterable[Part], chunk_rows: int) -> RowsFile:
        with ExitStack() as stack:
            file: pa.ipc.RecordBatchFileWriter | None = None
            for given, beside in parts:
                rows = given.made()
                arrays = [*beside, *_arrays(rows)]
                table = pa.table(arrays, names=[str(i) for i in range(len(arrays))])
                if file is None:
                    file = stack.enter_context(pa.ipc.new_file(place, table.schema))
                    like = rows.take(np.empty(0, np.int64))  # a slice would keep all in memory
                file.write_table(table, max_chunksize=chunk_rows)
        return cls(place, like)

    @property
    def nbytes(self) -> int:
        return self.place.stat().st_size

    def read(self) -> Iterator[Part]:
        """What was written, in order, chunk by chunk."""
        own = len(_arrays(self.like))
        with pa.OSFile(str(self.place)) as file, pa.ipc.open_file(file) as reader:
            for number in range(reader.num_record_batches):
                columns = reader.get_batch(number).columns
                beside = columns[: len(columns) - own]
                n = len(columns[0]) if columns else 0
                yield _rows(self.like, n, iter(columns[len(beside) :])), beside


def _arrays(rows: Rows) -> list[pa.Array]:
    found = [array for variable in rows.variables.values() for array in _parts(variable)]
    found += [pa.array(values) for values in (*rows.scores.values(), *rows.tags.values())]
    found += [rows.column(name) for name in rows.columns]
    return found if rows.weight is None else [*found, pa.array(rows.weight)]


def _rows(like: Rows, n: int, arrays: Iterator[pa.Array]) -> Rows:
    """The inverse of `_arrays`."""
    return Rows(
        n,
        {name: _variable(kind, arrays) for name, kind in like.variables.items()},
        {name: _numbers(next(arrays)) for name in like.scores},
        tags={name: _numbers(next(arrays)) for name in like.tags},
        columns={name: next(arrays) for name in like.columns},
        weight=None if like.weight is None else _numbers(next(arrays)),
    )


def _numbers(array: pa.Array) -> Any:
    return array.to_numpy(zero_copy_only=False)


def _parts(variable: Variable) -> list[pa.Array]:
    if isinstance(variable, Values):
        return [variable.array]
    if isinstance(variable, Entities):
        codes = [] if variable.code is None else [pa.array(variable.code)]
        return [pa.array(variable.position), *codes]
    length = pa.array(variable.length)
    if variable.nodes is None or variable.edges is None:
        return [length]
    counts = step_counts(variable.length)
    members = zip((variable.nodes, variable.edges), counts, strict=True)
    return [length, *(_lists(part, n) for which, n in members for part in _parts(which))]


def _lists(members: pa.Array, counts: Ints) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return pa.LargeListArray.from_arrays(pa.array(offsets), members)


def _variable(like: Variable, arrays: Iterator[pa.Array]) -> Variable:
    if isinstance(like, Values):
        return Values(next(arrays))
    if isinstance(like, Entities):
        position = _numbers(next(arrays))
        code = None if like.code is None else _numbers(next(arrays))
        return Entities(like.types, position, code, like.edge)
    length = _numbers(next(arrays))
    if like.nodes is None or like.edges is None:
        return Paths(length)
    flat = (array.flatten() for array in arrays)
    nodes, edges = _variable(like.nodes, flat), _variable(like.edges, flat)
    assert isinstance(nodes, Entities)  # noqa: S101
    assert isinstance(edges, Entities)  # noqa: S101
    return Paths.of(length, nodes, edges)
