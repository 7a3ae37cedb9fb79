"""What search needs from the rest of the reader: the columns of one table version, and a cache.

`TableColumns` of the reader satisfies this as it is: deleted rows, shared fragments, the analyzer of a property and
position -1 are taken care of by the functions of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.model.catalog import EntityType
from omnigraph.storage.objects import LargeObjects
from omnigraph.storage.tables import FragmentInfo

T = TypeVar("T")

Bools = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int32] | npt.NDArray[np.int64]


class DerivedCache(Protocol):
    """Keeps what was derived, within the one memory budget of the process."""

    def get(self, key: Hashable) -> Any: ...
    def put(self, key: Hashable, value: Any, size: int) -> None: ...


class Columns(Protocol):
    """One table version. Positions count its physical rows 0 .. n - 1, deleted ones included."""

    @property
    def kind(self) -> EntityType: ...
    @property
    def n(self) -> int: ...
    @property
    def fragments(self) -> Sequence[FragmentInfo]: ...

    @property
    def live(self) -> Bools | None:
        """Which positions hold a row; None when all do."""
        ...

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """Identifies the table, and in its last member the version."""
        ...

    @property
    def objects(self) -> LargeObjects | None:
        """Where the table's derived files are; None if it cannot have any."""
        ...

    @property
    def cache(self) -> DerivedCache: ...

    def cells(self, name: str, fragment: FragmentInfo) -> Hashable:
        """The identity of the values of a column in a fragment, the same in every version."""
        ...

    def column(self, name: str) -> pa.Array:
        """The whole column by position. Values at deleted rows are meaningless."""
        ...

    def prefers_column(self, name: str, wanted: int) -> bool:
        """Whether work on this many vectors uses the whole column, loaded if need be, or `alone` and `pieces`."""
        ...

    def alone(self, name: str, positions: npt.NDArray[np.int32]) -> pa.Array:
        """The values at these positions; the column is not loaded."""
        ...

    def pieces(self, name: str) -> Iterator[tuple[npt.NDArray[np.int32], pa.Array]]:
        """The rows piece by piece: their positions and values. Nothing is kept."""
        ...

    def derived(self, name: str, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """Something computed from exactly this version, kept in the cache."""
        ...
