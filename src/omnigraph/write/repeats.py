"""Several rows with one id: which one is used, and which are too late.

A load can keep the first or the last of them, in the order of its input or of a version. Change records have their own
order. One definition for both planes: Spark tasks get all rows of an id together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OptionInvalid
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.columns import arrow_type, one_array
from omnigraph.model.frozen import frozen
from omnigraph.model.types import Scalar

if TYPE_CHECKING:
    from omnigraph.write.resolve import Given

KEEP = ("refuse", "first", "last")
VERSIONS = frozenset({Scalar.I32, Scalar.I64, Scalar.U32, Scalar.DATE, Scalar.DATETIME})


@frozen
class Repeats:
    """What a load does with several rows of one id.

    `keep` is refuse, first or last; without it keys may not repeat, and for other rows the later wins in a merge.
    `version` names a property that grows: the row with the greatest value is used, and rows not newer than the
    stored one are skipped. `tombstone` names a property that deletions set, so that late records find the row.
    """

    keep: str | None = None
    version: str | None = None
    tombstone: str | None = None

    def __post_init__(self) -> None:
        if self.keep is not None and self.keep not in KEEP:
            raise OptionInvalid(f"duplicates= is one of {', '.join(KEEP)}, not {self.keep!r}")
        if self.tombstone is not None and self.version is None:
            raise OptionInvalid("a tombstone needs a version, which shows which rows are too late")

    @property
    def chooses(self) -> bool:
        """Whether one of several rows is kept, so that all of them must be seen together."""
        return self.keep in ("first", "last") or self.version is not None

    def version_of(self, kind: NodeOrEdgeType) -> str | None:
        """The property of a type that holds its version; None if it has no such property."""
        prop = kind.properties.get(self.version or "")
        if prop is None:
            return None
        if not prop.type.is_plain or prop.type.scalar not in VERSIONS:
            raise OptionInvalid(
                f"{kind.name}.{prop.name} is not a version: it must hold whole numbers, dates or date-times"
            )
        return prop.name

    def tombstone_of(self, kind: NodeOrEdgeType) -> str | None:
        """The property of a type that deletions set; None if it has no such property."""
        prop = kind.properties.get(self.tombstone or "")
        if prop is None:
            return None
        if not prop.type.is_plain or prop.type.scalar is not Scalar.BOOL:
            raise OptionInvalid(f"{kind.name}.{prop.name} is not a tombstone: it must be a Bool")
        return prop.name


AS_IT_IS = Repeats()


def ordered(given: Given, rules: Repeats) -> Given:
    """The rows with their order: that of their records, which the version then holds, or the version itself."""
    name = rules.version_of(given.kind)
    if name is None:
        return given
    if given.marks.order is None:
        values = given.columns.get(name)
        order = pa.nulls(len(given), pa.int64()) if values is None else as_order(one_array(values))
        return replace(given, marks=replace(given.marks, order=order))
    prop = given.kind.properties[name]
    if prop.type.scalar is not Scalar.I64:
        raise OptionInvalid(
            f"{given.kind.name}.{name} holds the order of change records: it must be an I64"
        )
    column = pa.chunked_array([given.marks.order.cast(arrow_type(prop.type))])
    absent = {other: mask for other, mask in given.absent.items() if other != name}
    return replace(given, columns={**given.columns, name: column}, absent=absent)


def as_order(values: pa.Array) -> pa.Int64Array:
    """Whole numbers, also as texts, dates and date-times as numbers in the same order; Arrow refuses others."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        return values.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    if pa.types.is_date(kind):
        return values.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_string(kind):
        return values.cast(pa.int64())
    raise pa.ArrowNotImplementedError(f"{kind} has no well-defined order")


def chosen(given: Given, codes: np.ndarray[Any, np.dtype[np.int32]], rules: Repeats) -> Given:
    """One row of each id: of the greatest order, or the smallest for `first`; of equals the later, or the first."""
    position = np.arange(len(codes))
    order = given.marks.order
    rank = (
        np.zeros(len(codes), np.int64)
        if order is None
        else order.fill_null(np.iinfo(np.int64).min).to_numpy(zero_copy_only=False)
    )
    by_age = np.lexsort((position, rank, codes))
    ends = np.flatnonzero(np.diff(codes[by_age], append=-1))
    if rules.keep == "first":
        ends = np.concatenate([[0], ends[:-1] + 1])
    rows = np.sort(by_age[ends])
    return given.take(pa.array(rows))


def not_newer(given: Given, stored: pa.Table, rules: Repeats) -> pa.BooleanArray | None:
    """Which rows are not newer than the stored rows beside them; a row without a version is never too old."""
    name = rules.version_of(given.kind)
    if name is None or given.marks.order is None:
        return None
    known = as_order(one_array(stored[name]))
    return pc.fill_null(pc.greater_equal(known, given.marks.order), False)


def marked(given: Given, rules: Repeats) -> Given:
    """Deletions as rows that only set the tombstone, if the type has one; all other rows clear it."""
    name, deleted = rules.tombstone_of(given.kind), given.marks.deleted
    if name is None or deleted is None:
        return given
    columns = {**given.columns, name: pa.chunked_array([deleted])}
    absent = {other: mask for other, mask in given.absent.items() if other != name}
    return replace(given, columns=columns, absent=absent)


def keeping_stored(given: Given, rules: Repeats) -> Given:
    """Deletions that set a tombstone keep all other stored values."""
    name, deleted = rules.tombstone_of(given.kind), given.marks.deleted
    if name is None or deleted is None or not pc.any(deleted, min_count=0).as_py():
        return given
    absent = dict(given.absent)
    for other in given.kind.properties:
        if other in given.columns and other not in (name, rules.version):
            absent[other] = pc.or_(absent[other], deleted) if other in absent else deleted
    return replace(given, absent=absent)


def removals(given: Given, rules: Repeats) -> pa.BooleanArray | None:
    """Which rows delete the stored one."""
    return None if rules.tombstone_of(given.kind) is not None else given.marks.deleted
