"""A table version in memory, as search sees one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import count
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.model.catalog import Annotation, NodeType, Property
from omnigraph.model.types import PropType, Scalar
from omnigraph.read.cache import Cache
from omnigraph.read.columns import TableColumns
from omnigraph.read.search.source import Columns
from omnigraph.storage.tables import FragmentInfo

T = TypeVar("T")

_versions = count(1)


class MemoryColumns:
    """One property `p`, in fragments. Rows in `deleted` are physically there and do not exist."""

    def __init__(
        self,
        fragments: Sequence[tuple[str, pa.Array]],
        *,
        deleted: Sequence[int] = (),
        cache: Cache | None = None,
        analyzer: str | None = None,
    ) -> None:
        chunks = [values for _, values in fragments]
        self._column = pa.concat_arrays(chunks)
        self.n = len(self._column)
        self.live: npt.NDArray[np.bool_] | None = None
        if deleted:
            self.live = np.ones(self.n, np.bool_)
            self.live[list(deleted)] = False
        self.fragments = tuple(
            FragmentInfo(i, len(values), 0, files, files)
            for i, (files, values) in enumerate(fragments)
        )
        self.kind = _kind(analyzer, self._column.type)
        self.cache = cache or Cache()
        self.objects = None
        self.is_loaded = True
        self.identity = ("root", "table", next(_versions))

    def cells(self, name: str, fragment: FragmentInfo) -> Hashable:
        return fragment.files, name

    def column(self, name: str) -> pa.Array:
        assert name == "p"
        assert self.is_loaded
        return self._column

    def prefers_column(self, name: str, wanted: int) -> bool:
        return self.is_loaded

    def alone(self, name: str, positions: npt.NDArray[np.int32]) -> pa.Array:
        return self._column.take(pa.array(positions))

    def pieces(self, name: str) -> Iterator[tuple[npt.NDArray[np.int32], pa.Array]]:
        live = np.arange(self.n) if self.live is None else np.flatnonzero(self.live)
        for at in np.array_split(live.astype(np.int32), 3):
            yield at, self._column.take(pa.array(at))

    def derived(self, name: str, make: Callable[[], T], size: Callable[[T], int]) -> T:
        return self.cache.get_or_build((*self.identity, name), make, size)


def _kind(analyzer: str | None, column: pa.DataType) -> NodeType:
    annotations = () if analyzer is None else (Annotation("analyzer", analyzer),)
    kind = PropType(Scalar.STRING, nullable=True)
    if pa.types.is_fixed_size_list(column):
        kind = PropType(Scalar.F32, nullable=True, vector_dim=column.list_size)
    prop = Property("p", kind, 7, annotations=annotations)
    return NodeType(name="T", type_id=1, table_id="t", properties={"p": prop})


def texts(*values: str | None, **options: Any) -> MemoryColumns:
    """A table of one fragment with these texts."""
    return MemoryColumns([("one", pa.array(values, pa.string()))], **options)


def vectors(values: Sequence[Sequence[float] | None], width: int, **options: Any) -> MemoryColumns:
    """A table of one fragment with these vectors."""
    return MemoryColumns([("one", vector_array(values, width))], **options)


def vector_array(values: Sequence[Sequence[float] | None], width: int) -> pa.Array:
    return pa.array(values, pa.list_(pa.float32(), width))


def fits(columns: TableColumns) -> Columns:
    """The reader's own columns are what search asks for; the type checker proves it."""
    return columns
