"""Lines of one type read by Arrow's JSON reader.

It is strict about types, unknown and repeated members, but it joins lines, forgets whether a null was written, and
takes a few numbers that are not JSON. If one of these could matter it raises `Unsure`, and the exact reader
decides.
"""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from omnigraph.model.catalog import EdgeType, NodeOrEdgeType, NodeType, Property
from omnigraph.model.columns import SCALARS
from omnigraph.model.types import FLOATS, PropType, Scalar
from omnigraph.values.columns import to_column
from omnigraph.values.misfit import Misfit
from omnigraph.write.input.lines import Lines
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import InputPart
from omnigraph.write.input.problems import Unsure

AS_TEXT = frozenset({Scalar.DATE, Scalar.DATETIME, Scalar.BLOB})
ESCAPED_NAME = r'\\u[0-9a-fA-F]{4}[^"]*"\s*:'


def read_group(
    lines: Lines, kind: NodeOrEdgeType, options: Options, *, envelope: bool
) -> InputPart:
    """Lines that all belong to one type as columns; `Unsure` unless they are certainly right."""
    data = lines.data
    if not ((data[lines.starts] == 123) & (data[lines.ends - 1] == 125)).all():
        raise Unsure  # an object that continues on the next line cannot end in } before a {
    text = lines.joined()
    table = _parse(text, _schema(kind, envelope))
    if table.num_rows != len(lines):
        raise Unsure
    outside = frozenset(table.column_names) if envelope else frozenset()
    reading = _JsonReading(lines, text, kind, options, outside)
    fields = reading.opened(table) if envelope else {n: table[n] for n in table.column_names}
    return reading.part(fields)


def _parse(text: pa.Buffer, schema: pa.Schema) -> pa.Table:
    try:
        table = pj.read_json(
            pa.BufferReader(text),
            pj.ReadOptions(use_threads=False, block_size=text.size + 1),
            pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
        )
        table.validate(full=True)  # texts are UTF-8
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        raise Unsure from None
    return table


def _schema(kind: NodeOrEdgeType, envelope: bool) -> pa.Schema:
    fields = [pa.field("id", pa.string())]
    fields += [pa.field(p.name, _json_type(p.type)) for p in kind.properties.values()]
    ends = [] if isinstance(kind, NodeType) else [("from", pa.string()), ("to", pa.string())]
    if not envelope:
        return pa.schema([*ends, *fields])
    name = "type" if isinstance(kind, NodeType) else "edge"
    return pa.schema([(name, pa.string()), *ends, ("data", pa.struct(fields))])


def _json_type(kind: PropType) -> pa.DataType:
    item = pa.string() if kind.scalar in AS_TEXT else SCALARS[kind.scalar]
    if kind.is_vector:
        return pa.list_(pa.float32())
    return pa.list_(item) if kind.is_list else item


class _JsonReading:
    """What was read from some lines, and the lines themselves for what the reader lost."""

    def __init__(
        self,
        lines: Lines,
        text: pa.Buffer,
        kind: NodeOrEdgeType,
        options: Options,
        outside: frozenset[str],
    ) -> None:
        self.outside = outside  # members beside `data`, which may have the name of a property
        self.lines = lines
        self.kind = kind
        self.options = options
        self.raw = memoryview(text)

    @cached_property
    def has_null(self) -> bool:
        return b"null" in self.raw.tobytes()

    @cached_property
    def has_escape(self) -> bool:
        return b"\\u" in self.raw.tobytes()

    @cached_property
    def texts(self) -> pa.StringArray:
        return self.lines.texts(self.lines.starts, self.lines.ends)

    def opened(self, table: pa.Table) -> dict[str, pa.ChunkedArray]:
        """The fields of `data` beside `from` and `to`."""
        name = "type" if isinstance(self.kind, NodeType) else "edge"
        data = table["data"]
        if table[name].null_count or (data.null_count and self.has_null):
            raise Unsure
        kind = data.type
        inner = data.combine_chunks().flatten() if data.num_chunks != 1 else data.chunk(0).flatten()
        fields = {kind.field(i).name: pa.chunked_array([inner[i]]) for i in range(kind.num_fields)}
        ends = () if isinstance(self.kind, NodeType) else ("from", "to")
        return {end: table[end] for end in ends} | fields

    def part(self, fields: dict[str, pa.ChunkedArray]) -> InputPart:
        columns, absent = {}, {}
        for name, column in fields.items():
            if name in ("from", "to") and isinstance(self.kind, EdgeType):
                if column.null_count:
                    raise Unsure
                columns["src" if name == "from" else "dst"] = column
                continue
            left_out = self._left_out(name, column)
            if left_out is not None and len(left_out) == left_out.true_count:
                continue
            if name == "id":
                if left_out is not None and column.null_count > left_out.true_count:
                    raise Unsure  # a null id is refused
                columns["id"] = column
                continue
            columns[name] = self._typed(column, self.kind.properties[name])
            if left_out is not None and left_out.true_count:
                absent[name] = left_out
        count = len(self.lines)
        return InputPart(self.kind, columns, count, absent, pa.array(self.lines.numbers))

    def _typed(self, column: pa.ChunkedArray, prop: Property) -> pa.ChunkedArray | pa.Array:
        if prop.type.scalar in FLOATS and not _all_finite(column):
            raise Unsure
        try:
            return to_column(column, prop.type, self.options.context)
        except (Misfit, pa.ArrowInvalid):
            raise Unsure from None

    def _left_out(self, name: str, column: pa.ChunkedArray) -> pa.BooleanArray | None:
        """Which lines do not have the member at all; None if every line has a value."""
        if not column.null_count:
            return None
        empty = column.is_null().combine_chunks()
        if not self.has_null:
            return empty
        if self.has_escape and self._escaped_names():
            raise Unsure
        # A quoted name before a colon is a member: inside a text its quotes would be escaped.
        members = pc.count_substring_regex(self.texts, f'"{name}"\\s*:')
        written = pc.greater(members, 1 if name in self.outside else 0)
        return pc.and_not(empty, written)

    def _escaped_names(self) -> bool:
        return bool(pc.any(pc.match_substring_regex(self.texts, ESCAPED_NAME)).as_py())


def _all_finite(column: pa.ChunkedArray) -> bool:
    chunks = [c.flatten() if pa.types.is_list(c.type) else c for c in column.chunks]
    return all(bool(pc.all(pc.is_finite(chunk), min_count=0).as_py()) for chunk in chunks)
