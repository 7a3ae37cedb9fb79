"""The stored rows that a load changes or removes, as tasks report them: by address, packed to a byte or two each."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from omnigraph.storage.tables import RowAddresses

NO_ROWS = RowAddresses(pa.array([], pa.uint64()))


def pack(parts: Iterable[pa.Array | pa.ChunkedArray]) -> bytes:
    """Addresses in order, each once, as the gaps between them."""
    found = np.unique(np.concatenate([part.to_numpy() for part in parts]))
    return zlib.compress(np.diff(found, prepend=np.uint64(0)).tobytes(), level=1)


def unpack(parts: Iterable[bytes]) -> RowAddresses:
    """The addresses of all parts."""
    gaps = [np.frombuffer(zlib.decompress(part), np.uint64) for part in parts]
    return RowAddresses.of(np.concatenate([np.cumsum(each, dtype=np.uint64) for each in gaps]))


def without(rows: RowAddresses, others: RowAddresses) -> RowAddresses:
    """The rows that are not among others."""
    both = rows.addresses.to_numpy(), others.addresses.to_numpy()
    return RowAddresses.of(np.setdiff1d(*both, assume_unique=True))
