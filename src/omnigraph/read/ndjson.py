"""Rows as lines of JSON that load again, in the form of this project or in one of the omnigraph written in Rust.

| form | id | dates and times | nulls |
|---|---|---|---|
| `ndjson` | in `data` | texts, times in UTC with a `Z` | written |
| `ndjson-0.10` | in `data` | days and milliseconds since 1970 | written |
| `ndjson-0.13` | beside `type` or `edge` | texts, times in UTC without a `Z` | left out |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.expressions.filters import string
from omnigraph.model.catalog import EdgeType, NodeOrEdgeType
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType, Scalar

Spelling = Callable[[str], str]


def moment(value: str) -> str:
    """A time in UTC as text, to the millisecond."""
    return f"strftime({value}, '%Y-%m-%dT%H:%M:%S.%gZ')"


def _plain_moment(value: str) -> str:
    """The same without a zone, and without milliseconds if they are zero."""
    whole = f"strftime({value}, '%Y-%m-%dT%H:%M:%S')"
    parts = f"strftime({value}, '%Y-%m-%dT%H:%M:%S.%g')"
    return f"if({value} = date_trunc('second', {value}), {whole}, {parts})"


def _days(value: str) -> str:
    return f"date_diff('day', date '1970-01-01', {value})"


def _milliseconds(value: str) -> str:
    return f"epoch_ms({value})"


@frozen
class RecordForm:
    """How a record is written."""

    id_beside: bool = False
    leaves_nulls_out: bool = False
    date: Spelling | None = None
    datetime: Spelling = moment

    def spelling(self, scalar: Scalar) -> Spelling | None:
        """How values of a type are written, unless they are written unchanged."""
        return {Scalar.DATE: self.date, Scalar.DATETIME: self.datetime}.get(scalar)


FORMS = {
    "ndjson": RecordForm(),
    "ndjson-0.10": RecordForm(date=_days, datetime=_milliseconds),
    "ndjson-0.13": RecordForm(id_beside=True, leaves_nulls_out=True, datetime=_plain_moment),
}


def record_lines(
    kind: NodeOrEdgeType, batches: Iterable[pa.RecordBatch], form: RecordForm
) -> Iterator[bytes]:
    """Graph records as text, made column by column."""
    import duckdb

    with duckdb.connect() as engine:
        for batch in batches:
            if batch.num_rows:
                shape = _record(kind, not_finite(batch), form)
                engine.register("batch", in_utc(batch))
                lines = engine.sql(f"select ({shape})::varchar || chr(10) as line from batch")  # noqa: S608
                for (block,) in _blocks(lines.to_arrow_table()["line"]):
                    yield block


def in_utc(batch: pa.RecordBatch) -> pa.Table:
    """Instants as plain UTC clock times, so that printing them needs no time zone."""
    rows = pa.Table.from_batches([batch])
    for at, field in enumerate(rows.schema):
        plain = _without_zone(field.type)
        if plain != field.type:
            rows = rows.set_column(at, field.name, rows.column(at).cast(plain))
    return rows


def _without_zone(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit)
    if pa.types.is_list(kind) and pa.types.is_timestamp(kind.value_type):
        return pa.list_(pa.timestamp(kind.value_type.unit))
    return kind


def _blocks(lines: pa.ChunkedArray) -> Iterator[tuple[bytes]]:
    """The bytes of whole columns of lines, without making a string of each."""
    for chunk in lines.chunks:
        offsets = pa.Array.from_buffers(
            pa.int32(), len(chunk) + 1, [None, chunk.buffers()[1]], offset=chunk.offset
        )
        if chunk.type != pa.string():
            text = chunk.cast(pa.string())
            yield from _blocks(pa.chunked_array([text]))
            continue
        first, last = offsets[0].as_py(), offsets[len(chunk)].as_py()
        yield (chunk.buffers()[2].to_pybytes()[first:last],)


def _record(kind: NodeOrEdgeType, not_finite: frozenset[str], form: RecordForm) -> str:
    """The expression that makes a row's record; names are the schema's, quoted."""
    values = [
        (
            p.name,
            worded(p.name, p.type.is_list)
            if p.name in not_finite
            else _value(p.name, p.type, form),
        )
        for p in kind.properties.values()
    ]
    id = ("id", '"id"')
    is_edge = isinstance(kind, EdgeType)
    head = [("edge" if is_edge else "type", string(kind.name)), *([id] if form.id_beside else [])]
    ends = [("from", '"src"'), ("to", '"dst"')] if is_edge else []
    data = _object(values if form.id_beside else [id, *values])
    # A merge into an empty object leaves nulls out.
    shown = f"json_merge_patch('{{}}', {data})" if form.leaves_nulls_out else data
    return _object([*head, *ends, ("data", shown)])


def _object(fields: Sequence[tuple[str, str]]) -> str:
    return "json_object(" + ", ".join(f"{string(name)}, {value}" for name, value in fields) + ")"


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def not_finite(batch: pa.RecordBatch) -> frozenset[str]:
    """Columns with floats that JSON cannot represent."""
    found = set()
    for field, column in zip(batch.schema, batch.columns, strict=True):
        numbers = column.flatten() if pa.types.is_nested(field.type) else column
        if pa.types.is_floating(numbers.type) and pc.any(pc.invert(pc.is_finite(numbers))).as_py():
            found.add(field.name)
    return frozenset(found)


def worded(name: str, is_list: bool) -> str:
    """Floats as JSON, with words for what JSON cannot represent, as loads read them."""

    def one(value: str) -> str:
        word = f"if(isnan({value}), 'NaN', if({value} > 0, 'Infinity', '-Infinity'))"
        return f"if(not isfinite({value}), to_json({word}), to_json({value}))"

    column = quoted(name)
    return f"list_transform({column}, lambda x: {one('x')})" if is_list else one(column)


def _value(name: str, kind: PropType, form: RecordForm) -> str:
    column = quoted(name)
    if kind.is_blob:
        return f"'base64:' || base64({column})"
    spelled = form.spelling(kind.scalar)
    if spelled is None:
        return column
    return (
        f"list_transform({column}, lambda x: {spelled('x')})" if kind.is_list else spelled(column)
    )
