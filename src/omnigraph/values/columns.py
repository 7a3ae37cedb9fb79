"""Whole Arrow columns as columns of a property's type: what `reading` defines for one value, for whole columns.

Where Arrow refuses a column, or has more forms than Arrow reads, the values are read one by one: the first that
does not fit is then reported in the usual words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from omnigraph.model.catalog import Property
from omnigraph.model.columns import SCALARS, arrow_type, one_array
from omnigraph.model.types import FLOATS, PropType, Scalar
from omnigraph.values.misfit import NO_ZONE, Misfit, unfit
from omnigraph.values.reading import (
    ALONE,
    EXPECTED,
    TYPED,
    WIDE,
    ReadingContext,
    read_text,
    read_value,
)

Column: TypeAlias = pa.Array | pa.ChunkedArray
UTC_MICROS = pa.timestamp("us", tz="UTC")
LOCAL_MICROS = pa.timestamp("us")
MILLIS = pa.timestamp("ms", tz="UTC")
RULES_END_MICROS = 2_114_380_800_000_000  # 2037: Arrow applies no summer time to the years after it
CHUNK_BYTES_MAX = 1 << 30  # an Arrow string or list column of one chunk holds at most 2 GiB
MISFIT_BLOCK_ROWS = 1_024  # read again for each value in them that does not fit
DAYS = (-719_162, 2_932_896)  # 0001-01-01 to 9999-12-31
MICROS = (DAYS[0] * 86_400_000_000, (DAYS[1] + 1) * 86_400_000_000 - 1)
# The common texts of times: those that Arrow reads as `reading` does.
COMMON = {
    Scalar.DATE: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    Scalar.DATETIME: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$",
}
LOCAL = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"
TEXTS = WIDE | {Scalar.DATE, Scalar.DATETIME}  # that are written as texts outside text files, too


def to_column(values: Column, kind: PropType, context: ReadingContext = ALONE) -> Column:
    """The values as a column of the type; `Misfit` names the first value that does not fit, with its row."""
    if at.is_null(values.type) or not len(values):
        return pa.nulls(len(values), arrow_type(kind))
    values = _decoded(values)
    if not isinstance(values, pa.ChunkedArray):
        return _array(values, kind, context)
    done: list[pa.Array] = []
    for chunk in (piece for whole in values.chunks for piece in split(whole)):
        try:
            done.append(_array(chunk, kind, context))
        except Misfit as misfit:
            raise _moved(misfit, lambda row: row + sum(map(len, done))) from None
    return pa.chunked_array(done, arrow_type(kind))


def text_column(cells: Column, kind: PropType, context: ReadingContext = ALONE) -> Column:
    """A column of cells of a text file, as `read_text` reads each."""
    if kind.is_plain and kind.scalar is Scalar.STRING:
        return to_column(cells, kind, context)
    texts = one_array(cells)
    if kind.is_plain:
        return _from_texts(texts, kind, lambda text: read_text(text, kind, context), context)
    return _one_by_one(texts.to_pylist(), kind, lambda text: read_text(text, kind, context))


def misfits(values: Column, convert: Callable[[Column], Column]) -> Iterator[Misfit]:
    """Every value that does not fit, with its row: blocks are converted whole, and only one with a misfit again."""
    for start in range(0, len(values), MISFIT_BLOCK_ROWS):
        block, offset = values.slice(start, MISFIT_BLOCK_ROWS), 0
        while offset < len(block):
            try:
                convert(block.slice(offset))
                break
            except Misfit as misfit:
                if misfit.row is None:  # about the column, not about a value
                    yield misfit
                    return
                offset += misfit.row + 1
                misfit.row = start + offset - 1
                yield misfit


def column_of(values: Sequence[Any], kind: PropType, context: ReadingContext = ALONE) -> pa.Array:
    """Single values as a column."""
    return _one_by_one(values, kind, lambda value: read_value(value, kind, context))


def default_of(prop: Property) -> pa.Scalar:
    """The value in a row that was written without the property."""
    value = None if prop.default is None else read_value(prop.default, prop.type)
    return pa.scalar(value, arrow_type(prop.type))


def split(chunk: pa.Array) -> list[pa.Array]:
    """A chunk in pieces small enough for 32-bit offsets."""
    if chunk.nbytes <= CHUNK_BYTES_MAX or len(chunk) < 2:
        return [chunk]
    half = len(chunk) // 2
    return split(chunk[:half]) + split(chunk[half:])


def is_text(kind: pa.DataType) -> bool:
    """Whether a column holds texts."""
    return bool(at.is_string(kind) or at.is_large_string(kind) or at.is_string_view(kind))


def is_list(kind: pa.DataType) -> bool:
    """Whether a column holds lists of any kind."""
    return bool(
        at.is_list(kind)
        or at.is_large_list(kind)
        or at.is_fixed_size_list(kind)
        or at.is_list_view(kind)
        or at.is_large_list_view(kind)
    )


def _decoded(values: Column) -> Column:
    """Dictionaries and extension types as their plain values."""
    if at.is_dictionary(values.type):
        if at.is_string_view(values.type.value_type):  # as polars has them; Arrow cannot cast them
            values = _with_plain_words(values)
        return values.cast(values.type.value_type)
    if isinstance(values.type, pa.BaseExtensionType):
        return values.cast(values.type.storage_type)
    return values


def _with_plain_words(values: Column) -> Column:
    if isinstance(values, pa.Array):
        return pa.DictionaryArray.from_arrays(values.indices, values.dictionary.cast(pa.string()))
    kind = pa.dictionary(values.type.index_type, pa.string())
    return pa.chunked_array([_with_plain_words(chunk) for chunk in values.chunks], kind)


def _array(values: pa.Array, kind: PropType, context: ReadingContext) -> pa.Array:
    if kind.vector_dim is not None:
        return _vector(values, kind, kind.vector_dim)
    if kind.is_list:
        return _list(values, kind, context)
    return _scalars(values, kind.scalar, context)


# --- one reader per type -------------------------------------------------------------------------------------------


def _scalars(values: pa.Array, scalar: Scalar, context: ReadingContext) -> pa.Array:
    match scalar:
        case Scalar.STRING if is_text(values.type):
            return values.cast(pa.string())
        case Scalar.BLOB:
            return _blob(values, context)
        case Scalar.BOOL if at.is_boolean(values.type):
            return values
        case _ if is_text(values.type):
            kind = PropType(scalar)
            if scalar in TEXTS:
                return _from_texts(
                    values, kind, lambda text: read_value(text, kind, context), context
                )
            if scalar in FLOATS:
                return column_of(values.to_pylist(), kind, context)
            raise _of_type(values, scalar)
        case Scalar.F32 | Scalar.F64:
            return _float(values, scalar, context)
        case Scalar.DATE:
            return _date(values)
        case Scalar.DATETIME:
            return _datetime(values, context)
        case Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64:
            return _integer(values, scalar)
    raise _of_type(values, scalar)


def _of_type(values: pa.Array, scalar: Scalar) -> Misfit:
    return Misfit(f"expected {EXPECTED[scalar]}, got a column of {values.type}")


def _is_number(kind: pa.DataType) -> bool:
    return bool(at.is_integer(kind) or at.is_floating(kind) or at.is_decimal(kind))


def _integer(values: pa.Array, scalar: Scalar) -> pa.Array:
    """Numbers without a fraction, of any width: other tools often store integers with nulls as floats or decimals."""
    if not _is_number(values.type):
        raise _of_type(values, scalar)
    kind = PropType(scalar)
    return _cast(values, SCALARS[scalar], kind, lambda value: read_value(value, kind, TYPED))


def _float(values: pa.Array, scalar: Scalar, context: ReadingContext = ALONE) -> pa.Array:
    if not _is_number(values.type):
        raise _of_type(values, scalar)
    if context.typed and at.is_integer(values.type):
        kind = PropType(scalar)
        return _cast(values, SCALARS[scalar], kind, lambda value: read_value(value, kind, TYPED))
    if at.is_float32(values.type) and scalar is Scalar.F32:
        return values
    wide = values.cast(pa.float64(), safe=False)
    if scalar is Scalar.F64:
        return wide
    done = wide.cast(pa.float32(), safe=False)
    grown = pc.and_(pc.is_inf(done), pc.invert(pc.is_inf(wide)))
    _refuse(grown, values, "a number that is not too large for F32", rule="range")
    return done


def _date(values: pa.Array) -> pa.Array:
    if at.is_date(values.type):
        done = _cast(values, pa.date32(), PropType(Scalar.DATE))
    elif at.is_integer(values.type):
        done = _cast(values, pa.int32(), PropType(Scalar.DATE)).cast(pa.date32())
    elif at.is_timestamp(values.type) and values.type.tz is None:  # how pandas keeps dates
        done = values.cast(pa.date32(), safe=False)
        midnight = done.cast(values.type, safe=False)
        _refuse(pc.not_equal(values, midnight), values, "a date without a time of day")
    else:
        raise _of_type(values, Scalar.DATE)
    return _days(done)


def _days(values: pa.Array) -> pa.Array:
    _refuse_outside(values.cast(pa.int32()), DAYS, EXPECTED[Scalar.DATE])
    return values


def _datetime(values: pa.Array, context: ReadingContext) -> pa.Array:
    kind = PropType(Scalar.DATETIME)
    if at.is_timestamp(values.type):
        coarser = values.type.unit != "ns"  # only nanoseconds are truncated
        if values.type.tz is None:
            return _zoned(_cast(values, LOCAL_MICROS, kind, safe=coarser), kind, context)
        done = _cast(values, UTC_MICROS, kind, safe=coarser)
    elif at.is_date(values.type):
        done = _cast(_cast(values, pa.timestamp("us"), kind), UTC_MICROS, kind)
    elif at.is_integer(values.type):
        done = _cast(_cast(values, pa.int64(), kind).cast(MILLIS), UTC_MICROS, kind)
    else:
        raise _of_type(values, Scalar.DATETIME)
    return _moments(done)


def _moments(values: pa.Array) -> pa.Array:
    """Instants of the years that Python supports, in whole milliseconds: finer parts are truncated."""
    micros = values.cast(pa.int64())
    _refuse_outside(micros, MICROS, EXPECTED[Scalar.DATETIME])
    numbers = micros.fill_null(0).to_numpy()
    rest = numbers % 1000
    if not rest.any():
        return values
    nulls = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(numbers - rest, pa.int64(), mask=nulls).cast(UTC_MICROS)


def _zoned(local: pa.Array, kind: PropType, context: ReadingContext) -> pa.Array:
    """The moments of times without a zone."""
    if context.timezone is None:
        raise Misfit("expected date-times with a time zone, got some without", rule=NO_ZONE)
    _refuse_outside(local.cast(pa.int64()), MICROS, EXPECTED[Scalar.DATETIME])
    done = _in_zone(local, context.timezone)
    return (
        _one_by_one(local.to_pylist(), kind, lambda value: read_value(value, kind, context))
        if done is None
        else _moments(done)
    )


def _in_zone(local: pa.Array, zone: str) -> pa.Array | None:
    """The same as Arrow computes them; None if a time is twice or never there, or after the rules Arrow knows."""
    latest = pc.max(local.cast(pa.int64())).as_py()
    if zone != "UTC" and latest is not None and latest >= RULES_END_MICROS:
        return None
    try:
        return pc.assume_timezone(local, zone).cast(UTC_MICROS)
    except pa.ArrowInvalid:
        return None


def _blob(values: pa.Array, context: ReadingContext) -> pa.Array:
    kind = PropType(Scalar.BLOB)
    if is_text(values.type):
        return column_of(values.to_pylist(), kind, context)
    if at.is_binary(values.type) or at.is_large_binary(values.type):
        return values.cast(pa.large_binary())
    if at.is_binary_view(values.type) or at.is_fixed_size_binary(values.type):
        return values.cast(pa.binary()).cast(pa.large_binary())
    raise _of_type(values, Scalar.BLOB)


def _from_texts(
    values: pa.Array, kind: PropType, read: Callable[[str], Any], context: ReadingContext
) -> pa.Array:
    """Texts as values: as a column if Arrow reads them as `read` does, else one by one."""
    values = values.cast(pa.string())
    common = COMMON.get(kind.scalar)
    if common and not _all_match(values, common):
        done = _local_moments(values, context) if kind.scalar is Scalar.DATETIME else None
        return _one_by_one(values.to_pylist(), kind, read) if done is None else done
    wanted = pa.float64() if kind.scalar in FLOATS else SCALARS[kind.scalar]
    done = _cast(values, wanted, kind, read)
    match kind.scalar:
        case Scalar.DATE:
            return _days(done)
        case Scalar.DATETIME:
            return _moments(done)
        case Scalar.F32 | Scalar.F64 if not _plainly_finite(done, values):
            return _one_by_one(values.to_pylist(), kind, read)
        case Scalar.F32 | Scalar.F64:
            return _float(done, kind.scalar)
        case _ if b"x" in _characters(values):  # Arrow reads hexadecimal numbers
            return _one_by_one(values.to_pylist(), kind, read)
    return done


def _all_match(texts: pa.StringArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern), min_count=0).as_py())


def _local_moments(texts: pa.StringArray, context: ReadingContext) -> pa.Array | None:
    """Times without a zone, in the common form; None for others, and if one is twice or never in the assumed zone."""
    if not _all_match(texts, LOCAL):
        return None
    local = _tried(texts, LOCAL_MICROS, safe=True)
    done = None if local is None else _in_zone(local, context.timezone or "UTC")
    return None if done is None else _moments(done)


def _plainly_finite(numbers: pa.Array, texts: pa.Array) -> bool:
    """Whether all are finite, or spelt `nan`: Arrow reads what is too large as infinite."""
    strange = pc.invert(pc.is_finite(numbers)).fill_null(False)
    if not pc.any(strange, min_count=0).as_py():
        return True
    return bool(pc.all(pc.equal(pc.utf8_lower(texts.filter(strange)), "nan")).as_py())


def _characters(texts: pa.StringArray) -> bytes:
    """The letters of a column in lower case, and perhaps those of its neighbours."""
    found = texts.buffers()[2]
    return b"" if found is None else found.to_pybytes().lower()


# --- lists and vectors -----------------------------------------------------------------------------------------------


def _vector(values: pa.Array, kind: PropType, dimension: int) -> pa.Array:
    if not is_list(values.type):
        raise Misfit(f"expected lists of {dimension} numbers, got a column of {values.type}")
    lengths = pc.list_value_length(values)
    other = pc.not_equal(lengths, dimension).fill_null(False)
    if pc.any(other, min_count=0).as_py():
        row = pc.index(other, True).as_py()
        raise Misfit(f"expected {dimension} numbers, got {lengths[row].as_py()}", row=row)
    items = _whole_numbers(values, dimension)
    if not (at.is_floating(items.type) or at.is_integer(items.type)):
        raise Misfit(f"expected lists of {dimension} numbers, got a column of {values.type}")
    try:
        numbers = _float(items, Scalar.F32)
        _refuse(numbers.is_null(), numbers, f"{dimension} finite numbers")
    except Misfit as misfit:
        raise _moved(misfit, lambda row: row // dimension) from None
    if values.type == arrow_type(kind):
        return values
    mask = values.is_null() if values.null_count else None
    field = arrow_type(kind).field(0)
    return pa.FixedSizeListArray.from_arrays(numbers, type=pa.list_(field, dimension), mask=mask)


def _whole_numbers(values: pa.Array, dimension: int) -> pa.Array:
    """The members of all vectors; those of a null vector are zeros."""
    if not values.null_count:
        return values.flatten()
    zeros = pa.scalar([0] * dimension, values.type)
    return values.fill_null(zeros).flatten()


def _list(values: pa.Array, kind: PropType, context: ReadingContext) -> pa.Array:
    if not is_list(values.type):
        raise Misfit(f"expected lists, got a column of {values.type}")
    if not at.is_list(values.type):
        values = values.cast(pa.list_(values.type.value_field))
    lengths = pc.list_value_length(values).fill_null(0).to_numpy()
    items = _decoded(values.flatten())
    try:
        if items.null_count:
            why = "expected a list without nulls, got one that contains a null"
            raise Misfit(why, row=pc.index(items.is_null(), True).as_py())
        done = to_column(items, PropType(kind.scalar), context)
    except Misfit as misfit:
        raise _moved(misfit, lambda item: pc.list_parent_indices(values)[item].as_py()) from None
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    mask = values.is_null() if values.null_count else None
    field = arrow_type(kind).value_field
    return pa.ListArray.from_arrays(pa.array(offsets), done, type=pa.list_(field), mask=mask)


# --- finding the value that does not fit ---------------------------------------------------------------------------


def _cast(
    values: pa.Array,
    wanted: pa.DataType,
    kind: PropType,
    read: Callable[[Any], Any] | None = None,
    *,
    safe: bool = True,
) -> pa.Array:
    """The values in another Arrow type; what Arrow refuses is read one by one, which names the offender."""
    if (done := _tried(values, wanted, safe)) is not None:
        return done
    if read is not None:
        return _one_by_one(values.to_pylist(), kind, read)
    row = first_row(values, lambda some: _tried(some, wanted, safe) is None)
    raise _placed(unfit(EXPECTED[kind.scalar], _shown(values[row])), row)


def _tried(values: pa.Array, wanted: pa.DataType, safe: bool) -> pa.Array | None:
    try:
        return values.cast(wanted, safe=safe)
    except pa.ArrowInvalid:
        return None


def _one_by_one(values: Iterable[Any], kind: PropType, read: Callable[[Any], Any]) -> pa.Array:
    done = []
    for row, value in enumerate(values):
        try:
            done.append(None if value is None else read(value))
        except Misfit as misfit:
            raise _placed(misfit, row) from None
    return pa.array(done, arrow_type(kind))


def first_row(values: Column, wrong: Callable[[Column], bool]) -> int:
    """The row that makes a column wrong: the column is halved until one value is left."""
    first, size = 0, len(values)
    while size > 1:
        half = size // 2
        if wrong(values.slice(first, half)):
            size = half
        else:
            first, size = first + half, size - half
    return first


def _shown(value: pa.Scalar) -> Any:
    """A value for a message; of a time that Python does not support, its number."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return value.cast(pa.int32() if at.is_date32(value.type) else pa.int64()).as_py()


def _refuse(bad: pa.Array, values: pa.Array, expected: str, rule: str = "type") -> None:
    if pc.any(bad, min_count=0).as_py():
        row = pc.index(bad, True).as_py()
        raise _placed(unfit(expected, _shown(values[row]), rule=rule), row)


def _refuse_outside(numbers: pa.Array, bounds: tuple[int, int], expected: str) -> None:
    low, high = bounds
    outside = pc.or_(pc.less(numbers, low), pc.greater(numbers, high)).fill_null(False)
    _refuse(outside, numbers, f"{expected}, in the years 1 to 9999")


def _placed(misfit: Misfit, row: int) -> Misfit:
    misfit.row = row
    return misfit


def _moved(misfit: Misfit, row: Callable[[int], int]) -> Misfit:
    if misfit.row is not None:
        misfit.row = row(misfit.row)
    return misfit
