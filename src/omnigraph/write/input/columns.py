"""Columns of any Arrow type as columns of the schema's types.

The one definition of which Arrow values a property accepts: tables in memory, Parquet, CSV and fast readings of JSON
all pass through `to_column`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from omnigraph.lang.cast import parse_date, parse_datetime
from omnigraph.model.catalog import Property
from omnigraph.model.columns import SCALARS, arrow_type
from omnigraph.model.types import PropType, Scalar
from omnigraph.write.input.exact import blob_bytes
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import Column
from omnigraph.write.input.problems import Misfit

UTC_MICROS = pa.timestamp("us", tz="UTC")
CHUNK_BYTES_MAX = 1 << 30  # an Arrow string or list column of one chunk holds at most 2 GiB
DATE_TEXT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
DATETIME_TEXT = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)
MILLIS = pa.timestamp("ms", tz="UTC")
DAYS = (-719_162, 2_932_896)  # 0001-01-01 to 9999-12-31
MICROS = (DAYS[0] * 86_400_000_000, (DAYS[1] + 1) * 86_400_000_000 - 1)


def to_column(values: Column, prop: Property, options: Options) -> Column:
    """The values as the property's column; `Misfit` names the first value that does not fit."""
    kind = prop.type
    if at.is_null(values.type):
        return pa.nulls(len(values), arrow_type(kind))
    values = _decoded(values)
    if isinstance(values, pa.ChunkedArray):
        return _chunked(values, lambda chunk: _to_array(chunk, prop, options), arrow_type(kind))
    return _to_array(values, prop, options)


def _chunked(
    values: pa.ChunkedArray, convert: Callable[[pa.Array], pa.Array], kind: pa.DataType
) -> pa.ChunkedArray:
    done, before = [], 0
    for chunk in (piece for whole in values.chunks for piece in split(whole)):
        try:
            done.append(convert(chunk))
        except Misfit as misfit:
            if misfit.row is not None:
                misfit.row += before
            raise
        before += len(chunk)
    return pa.chunked_array(done, kind)


def split(chunk: pa.Array) -> list[pa.Array]:
    """A chunk in pieces small enough for 32-bit offsets."""
    if chunk.nbytes <= CHUNK_BYTES_MAX or len(chunk) < 2:
        return [chunk]
    half = len(chunk) // 2
    return split(chunk[:half]) + split(chunk[half:])


def _decoded(values: Column) -> Column:
    """Dictionaries and extension types as what they stand for."""
    if at.is_dictionary(values.type):
        return values.cast(values.type.value_type)
    if isinstance(values.type, pa.BaseExtensionType):
        return values.cast(values.type.storage_type)
    return values


def _to_array(values: pa.Array, prop: Property, options: Options) -> pa.Array:
    kind = prop.type
    if kind.vector_dim is not None:
        return _vector(values, kind.vector_dim, prop)
    if kind.is_list:
        return _list(values, prop, options)
    return _scalar(values, kind, prop, options)


def _scalar(values: pa.Array, kind: PropType, prop: Property, options: Options) -> pa.Array:
    match kind.scalar:
        case Scalar.STRING:
            if not is_text(values.type):
                raise _unfit(values, prop)
            return values.cast(pa.string())
        case Scalar.BLOB:
            return _blob(values, prop, options)
        case Scalar.BOOL:
            if not at.is_boolean(values.type):
                raise _unfit(values, prop)
            return values
        case Scalar.F32 | Scalar.F64:
            return _float(values, kind, prop)
        case Scalar.DATE:
            return _date(values, prop)
        case Scalar.DATETIME:
            return _datetime(values, prop, options)
        case _:
            return _integer(values, kind, prop)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column holds texts."""
    return bool(at.is_string(kind) or at.is_large_string(kind) or at.is_string_view(kind))


def _unfit(values: pa.Array, prop: Property) -> Misfit:
    return Misfit(f"'{prop.name}' expects {prop.type}, got {values.type}", name=prop.name)


def _integer(values: pa.Array, kind: PropType, prop: Property) -> pa.Array:
    if not (at.is_integer(values.type) or at.is_floating(values.type)):
        raise _unfit(values, prop)
    return attempt(values, lambda v: v.cast(SCALARS[kind.scalar]), prop)


def _float(values: pa.Array, kind: PropType, prop: Property) -> pa.Array:
    known = at.is_integer(values.type) or at.is_floating(values.type) or at.is_decimal(values.type)
    if not known:
        raise _unfit(values, prop)
    done = values.cast(SCALARS[kind.scalar], safe=False)
    if kind.scalar is Scalar.F32 and not at.is_float32(values.type):
        grown = pc.and_(pc.is_inf(done), pc.invert(pc.is_inf(values.cast(pa.float64(), False))))
        _refuse(grown, values, prop, "is too large for F32")
    return done


def _date(values: pa.Array, prop: Property) -> pa.Array:
    if is_text(values.type):
        done = _from_texts(values, DATE_TEXT, pa.date32(), parse_date, prop)
    elif at.is_date(values.type):
        done = attempt(values, lambda v: v.cast(pa.date32()), prop)
    elif at.is_integer(values.type):
        done = attempt(values, lambda v: v.cast(pa.int32()), prop).cast(pa.date32())
    elif at.is_timestamp(values.type) and values.type.tz is None:  # how pandas keeps dates
        done = values.cast(pa.date32(), safe=False)
        midnight = done.cast(values.type, safe=False)
        _refuse(pc.not_equal(values, midnight), values, prop, "has a time of day")
    else:
        raise _unfit(values, prop)
    _refuse_outside(done.cast(pa.int32()), DAYS, values, prop)
    return done


def _datetime(values: pa.Array, prop: Property, options: Options) -> pa.Array:
    if is_text(values.type):
        done = _from_texts(values, DATETIME_TEXT, UTC_MICROS, parse_datetime, prop)
    elif at.is_timestamp(values.type):
        coarser = values.type.unit != "ns"  # only of nanoseconds something is cut off
        zoned = _zoned(values, prop, options)
        done = attempt(zoned, lambda v: v.cast(UTC_MICROS, safe=coarser), prop)
    elif at.is_date(values.type):
        done = attempt(values, lambda v: v.cast(pa.timestamp("us")).cast(UTC_MICROS), prop)
    elif at.is_integer(values.type):
        millis = attempt(values, lambda v: v.cast(pa.int64()), prop).cast(MILLIS)
        done = attempt(millis, lambda v: v.cast(UTC_MICROS), prop)
    else:
        raise _unfit(values, prop)
    _refuse_outside(done.cast(pa.int64()), MICROS, values, prop)
    return _whole_millis(done)


def _zoned(values: pa.Array, prop: Property, options: Options) -> pa.Array:
    if values.type.tz is not None:
        return values
    if options.assume_timezone is None:
        message = f"'{prop.name}' has date-times without a time zone"
        raise Misfit(message + "; say which with assume_timezone=", rule="timezone", name=prop.name)
    try:
        return pc.assume_timezone(values, options.assume_timezone)
    except (pa.ArrowInvalid, ValueError) as bad:
        raise Misfit(f"'{prop.name}': {bad}", rule="timezone", name=prop.name) from None


def _whole_millis(values: pa.Array) -> pa.Array:
    """Finer than a millisecond is cut off."""
    micros = values.cast(pa.int64())
    numbers = micros.fill_null(0).to_numpy()
    rest = numbers % 1000
    if not rest.any():
        return values
    nulls = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(numbers - rest, pa.int64(), mask=nulls).cast(UTC_MICROS)


def _from_texts(
    values: pa.Array, plain: str, kind: pa.DataType, parse: Callable[[str], Any], prop: Property
) -> pa.Array:
    """Texts as dates: the common form at once, others one by one."""
    values = values.cast(pa.string())
    common = pc.match_substring_regex(values, plain)
    if pc.all(common, min_count=0).as_py():
        return attempt(values, lambda v: v.cast(kind), prop)
    parsed = [None if text is None else parse(text) for text in values.to_pylist()]
    unread = pa.array([p is None for p in parsed]) if parsed else pa.array([], pa.bool_())
    _refuse(pc.and_(unread, values.is_valid()), values, prop, f"is no {prop.type.scalar}")
    return pa.array(parsed, kind)


def _blob(values: pa.Array, prop: Property, options: Options) -> pa.Array:
    if is_text(values.type):
        texts = values.to_pylist()
        data = [None if text is None else blob_bytes(text, prop.name, options) for text in texts]
        return pa.array(data, pa.large_binary())
    if at.is_binary(values.type) or at.is_large_binary(values.type):
        return values.cast(pa.large_binary())
    if at.is_binary_view(values.type) or at.is_fixed_size_binary(values.type):
        return values.cast(pa.binary()).cast(pa.large_binary())
    raise _unfit(values, prop)


def _vector(values: pa.Array, dimension: int, prop: Property) -> pa.Array:
    if not is_list(values.type):
        raise _unfit(values, prop)
    if at.is_fixed_size_list(values.type) and values.type.list_size != dimension:
        raise _wrong_dimension(values.type.list_size, dimension, prop)
    if not at.is_fixed_size_list(values.type):
        lengths = pc.list_value_length(values)
        other = pc.not_equal(lengths, dimension).fill_null(False)
        if pc.any(other, min_count=0).as_py():
            row = pc.index(other, True).as_py()
            raise _at(_wrong_dimension(lengths[row].as_py(), dimension, prop), row)
    if values.type == arrow_type(prop.type):
        return values
    items = _whole_numbers(values, dimension)
    if not (at.is_floating(items.type) or at.is_integer(items.type)):
        raise _unfit(values, prop)
    try:
        numbers = _float(items, PropType(Scalar.F32), prop)
        _refuse(numbers.is_null(), numbers, prop, "holds a null")
    except Misfit as misfit:
        raise _at(misfit, (misfit.row or 0) // dimension) from None
    mask = values.is_null() if values.null_count else None
    field = arrow_type(prop.type).field(0)
    return pa.FixedSizeListArray.from_arrays(numbers, type=pa.list_(field, dimension), mask=mask)


def _whole_numbers(values: pa.Array, dimension: int) -> pa.Array:
    """The members of all vectors; those of a null vector are zeros."""
    if not values.null_count:
        return values.flatten()
    zeros = pa.scalar([0] * dimension, values.type)
    return values.fill_null(zeros).flatten()


def _wrong_dimension(found: int, dimension: int, prop: Property) -> Misfit:
    message = f"the vector '{prop.name}' has {dimension} dimensions, got {found}"
    return Misfit(message, name=prop.name)


def is_list(kind: pa.DataType) -> bool:
    """Whether a column holds lists of any kind."""
    return bool(
        at.is_list(kind)
        or at.is_large_list(kind)
        or at.is_fixed_size_list(kind)
        or at.is_list_view(kind)
        or at.is_large_list_view(kind)
    )


def _list(values: pa.Array, prop: Property, options: Options) -> pa.Array:
    if not is_list(values.type):
        raise _unfit(values, prop)
    if not at.is_list(values.type):
        values = values.cast(pa.list_(values.type.value_field))
    lengths = pc.list_value_length(values).fill_null(0).to_numpy()
    items = _decoded(values.flatten())
    if items.null_count:
        owner = int(pc.list_parent_indices(values)[pc.index(items.is_null(), True).as_py()].as_py())
        raise _at(Misfit(f"the list '{prop.name}' contains a null", name=prop.name), owner)
    done = _scalar(items, prop.type, prop, options)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    mask = values.is_null() if values.null_count else None
    field = arrow_type(prop.type).value_field
    return pa.ListArray.from_arrays(pa.array(offsets), done, type=pa.list_(field), mask=mask)


# --- finding the offender ----------------------------------------------------------------------------------------


def attempt(values: pa.Array, convert: Callable[[pa.Array], pa.Array], prop: Property) -> pa.Array:
    """Convert a column; when Arrow refuses, name the first value it refuses."""
    try:
        return convert(values)
    except pa.ArrowInvalid:
        row = _first_refused(values, convert)
        value = _shown(values[row])
        message = f"'{prop.name}' expects {prop.type}, got {value!r}"
        raise _at(Misfit(message, name=prop.name, value=value), row) from None


def _shown(value: pa.Scalar) -> Any:
    """A value for a message; of a time that Python does not know, its number."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return value.cast(pa.int32() if at.is_date32(value.type) else pa.int64()).as_py()


def _first_refused(values: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> int:
    """Halve the column until one value is left."""
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            convert(values[low:middle])
        except pa.ArrowInvalid:
            high = middle
        else:
            low = middle
    return low


def _refuse(bad: pa.Array, values: pa.Array, prop: Property, why: str) -> None:
    if pc.any(bad, min_count=0).as_py():
        row = pc.index(bad, True).as_py()
        value = _shown(values[row])
        message = f"'{prop.name}' {why}: {value!r}"
        raise _at(Misfit(message, name=prop.name, value=value), row)


def _refuse_outside(
    numbers: pa.Array, bounds: tuple[int, int], values: pa.Array, prop: Property
) -> None:
    low, high = bounds
    outside = pc.or_(pc.less(numbers, low), pc.greater(numbers, high)).fill_null(False)
    _refuse(
        outside, numbers, prop, f"lies outside the years 1 to 9999, in a column of {values.type}"
    )


def _at(misfit: Misfit, row: int) -> Misfit:
    misfit.row = row
    return misfit
