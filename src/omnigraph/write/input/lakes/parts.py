"""One data file of a Delta or Iceberg table, and its rows as those of the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.columns import one_array
from omnigraph.model.frozen import frozen
from omnigraph.write.input.files import open_raw
from omnigraph.write.input.lakes.bitmaps import Positions, framed, from_z85, positions
from omnigraph.write.input.parts import InputPart
from omnigraph.write.input.problems import InputInvalid, Problems
from omnigraph.write.input.tables import RawRows, RowShape, readable

FIELD_ID = b"PARQUET:field_id"


class TableUnsupported(OmnigraphError):
    """A Delta or Iceberg table uses an unsupported feature.

    Reading it anyway could yield rows that the table does not have.
    """

    code, kind = "table_unsupported", Kind.INVALID
    default_help = (
        "Read it with an engine that supports it, and load the DataFrame or a Parquet copy."
    )


@frozen
class Vector:
    """Deleted rows as a bitmap: in base 85, or at a place in a file."""

    text: str = ""
    file: str = ""
    offset: int = 0
    size: int = 0

    def positions(self) -> Positions:
        if self.text:
            return positions(from_z85(self.text))
        with open_raw(self.file) as stream:
            stream.seek(self.offset)
            return positions(framed(bytes(stream.read(self.size))))


@frozen
class PositionFile:
    """Deleted rows as a Parquet file of paths and positions."""

    file: str
    path: str  # of the data file, as the table spells it

    def positions(self) -> Positions:
        table = parquet_table(self.file, ["file_path", "pos"])
        mine = table.filter(pc.equal(table["file_path"], self.path))
        return np.asarray(one_array(mine["pos"].cast(pa.int64())))


@frozen
class EqualityFile:
    """Deleted rows by values of some columns: all rows with these values are deleted."""

    file: str
    fields: tuple[int, ...]  # ids of the columns


@frozen
class LakePart:
    """The table metadata of one of its files."""

    file: str
    size: int
    schema: bytes  # of the table, as Arrow stores schemas; a column without a type is left as it is
    sources: tuple[str | int, ...]  # for each column its name in the file, or its field id
    constants: bytes = b""  # values the file does not hold, as a table of one row
    vectors: tuple[Vector, ...] = ()
    position_files: tuple[PositionFile, ...] = ()
    equality_files: tuple[EqualityFile, ...] = ()


def parquet_table(file: str, columns: list[str] | None = None) -> pa.Table:
    """A Parquet file of a table's own metadata."""
    import pyarrow.parquet as pq

    def read() -> pa.Table:
        with open_raw(file) as stream:
            return pq.read_table(pa.PythonFile(stream), columns=columns)

    found: pa.Table = readable(file, read)
    return found


def kept_schema(schema: pa.Schema) -> bytes:
    """A schema, serialized for tasks."""
    return bytes(schema.serialize())


def kept_row(values: dict[str, pa.Scalar]) -> bytes:
    """Some values, serialized for tasks; empty if there are none."""
    if not values:
        return b""
    arrays = [pa.array([value.as_py()], value.type) for value in values.values()]
    batch = pa.RecordBatch.from_arrays(arrays, list(values))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


@dataclass(slots=True)
class LakeRows:
    """Turns rows of one file into rows of its table; a shape applied before the shape of the load."""

    part: LakePart
    rows: RowShape
    _known: _PartFacts = field(init=False)

    def __post_init__(self) -> None:
        self._known = _PartFacts(self.part)

    def parts(self, raw: RawRows, problems: Problems) -> Iterator[InputPart]:
        lines = raw.lines
        stored, known = raw.table, self._known
        if known.kept is not None:
            kept = known.kept(lines, stored)
            stored, lines = stored.filter(kept), lines.filter(kept)
        table = known.table(stored)
        yield from self.rows.parts(replace(raw, table=table, numbers=lines), problems)


class _PartFacts:
    """Facts read once per part."""

    def __init__(self, part: LakePart) -> None:
        self._part = part
        self._schema = pa.ipc.read_schema(pa.py_buffer(part.schema))

    @cached_property
    def _constants(self) -> dict[str, pa.Scalar]:
        if not self._part.constants:
            return {}
        row = pa.ipc.open_stream(pa.py_buffer(self._part.constants)).read_all()
        return {name: row[name][0] for name in row.column_names}

    @cached_property
    def _gone(self) -> pa.Int64Array:
        part = self._part
        lists: tuple[Vector | PositionFile, ...] = (*part.vectors, *part.position_files)
        found = [one.positions() for one in lists]
        return pa.array(np.unique(np.concatenate([np.empty(0, np.int64), *found])), pa.int64())

    @cached_property
    def _equal(self) -> list[tuple[tuple[int, ...], pa.Table]]:
        return [(one.fields, parquet_table(one.file)) for one in self._part.equality_files]

    @property
    def kept(self) -> _NotDeleted | None:
        part = self._part
        if not (part.vectors or part.position_files or part.equality_files):
            return None
        return _NotDeleted(self._gone, self._equal)

    def table(self, stored: pa.Table) -> pa.Table:
        """The columns of the table, from those in its file."""
        by_id, names = _by_id(stored.schema), stored.column_names
        columns = []
        for column, source in zip(self._schema, self._part.sources, strict=True):
            place = by_id.get(source) if isinstance(source, int) else None
            if place is None and not (isinstance(source, int) and by_id):
                name = column.name if isinstance(source, int) else source
                place = names.index(name) if name in names else None
            columns.append(self._column(column, stored, place))
        return pa.table(columns, names=self._schema.names)

    def _column(
        self, column: pa.Field, stored: pa.Table, place: int | None
    ) -> pa.ChunkedArray | pa.Array:
        if place is None:
            value = self._constants.get(column.name, pa.scalar(None, column.type))
            return pa.repeat(value, stored.num_rows)
        values = stored.column(place)
        if pa.types.is_null(column.type) or values.type == column.type:
            return values
        try:
            return values.cast(column.type)
        except pa.ArrowException as error:
            raise InputInvalid(f"{self._part.file}: '{column.name}': {error}") from None


@frozen
class _NotDeleted:
    gone: pa.Int64Array
    equal: list[tuple[tuple[int, ...], pa.Table]]

    def __call__(self, lines: pa.Int64Array, stored: pa.Table) -> pa.BooleanArray:
        """The rows that were not deleted."""
        kept = pc.invert(pc.is_in(pc.subtract(lines, 1), value_set=self.gone))
        for fields, deleted in self.equal:
            kept = pc.and_(kept, pc.invert(_among(stored, deleted, fields)))
        return kept


def _among(stored: pa.Table, deleted: pa.Table, fields: tuple[int, ...]) -> pa.BooleanArray:
    """The rows whose values of some columns are among those of a table; nulls are values, too."""
    import duckdb

    ours, theirs = _by_id(stored.schema), _by_id(deleted.schema)
    given, wanted = {}, {}
    for one in fields:
        values = deleted.column(theirs[one])
        missing = pa.nulls(stored.num_rows, values.type)
        given[f"k{one}"] = stored.column(ours[one]).cast(values.type) if one in ours else missing
        wanted[f"k{one}"] = values
    given["place"] = pa.array(np.arange(stored.num_rows))
    same = " AND ".join(f"g.k{one} IS NOT DISTINCT FROM w.k{one}" for one in fields)
    with duckdb.connect() as engine:
        engine.register("given", pa.table(given))
        engine.register("wanted", pa.table(wanted))
        query = f"SELECT place FROM given g WHERE EXISTS (FROM wanted w WHERE {same})"  # noqa: S608 - numbers
        found = engine.sql(query).to_arrow_table()
    mask = np.zeros(stored.num_rows, bool)
    mask[found["place"].to_numpy()] = True
    return pa.array(mask)


def _by_id(schema: pa.Schema) -> dict[int, int]:
    """The places of columns by the ids their fields have."""
    found = {}
    for place, column in enumerate(schema):
        given = (column.metadata or {}).get(FIELD_ID)
        if given is not None:
            found[int(given)] = place
    return found
