"""Footprints: 64-bit tokens of what a write touched or read, so that two writes can be compared.

A token stands for one fact of a table: the id of a row, an endpoint of an edge, the value of a unique group. A
`Footprint` is a set of tokens: exact up to a bound, a Bloom filter above it, everything beyond that. It never misses a
token it was given (no false negatives), so what it calls disjoint is disjoint.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.columns import one_array
from omnigraph.model.frozen import frozen

Tokens = npt.NDArray[np.uint64]

EXACT_TOKENS_MAX = 512
FILTER_BITS_MAX = 1 << 21
FILTER_BITS_PER_TOKEN = 12
FILTER_PROBES = 6
TOKENS_MAX = FILTER_BITS_MAX // FILTER_BITS_PER_TOKEN  # more count as everything
NO_TOKENS: Tokens = np.empty(0, np.uint64)

_M1, _M2, _SEED = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93), 0xA0761D6478BD642F
_SHIFT = np.uint64(32)
_MASK = 0xFFFFFFFFFFFFFFFF
FEW_STRINGS = 16
BLOCK_STRINGS = 1 << 15  # whose hashes stay in the caches of a core


def _mix(h: Tokens) -> Tokens:
    h = h * _M1
    h ^= h >> _SHIFT
    h *= _M2
    h ^= h >> _SHIFT
    return h


def _hash(text: bytes, salt: int) -> int:
    """The hash of one string; the same as `_string_hashes` gives it among many."""
    h = _mixed((len(text) ^ salt) & _MASK)
    for at in range(0, len(text), 8):
        h = _mixed(h ^ int.from_bytes(text[at : at + 8], "little"))
    return h


def _mixed(h: int) -> int:
    h = h * int(_M1) & _MASK
    h = (h ^ h >> 32) * int(_M2) & _MASK
    return h ^ h >> 32


@cache
def _salt(label: str) -> int:
    return _hash(label.encode(), _SEED)


def _string_hashes(values: pa.Array, salt: int) -> Tokens:
    """A 64-bit hash of each string, eight bytes of all of them at a time; a few are quicker one by one."""
    if len(values) <= FEW_STRINGS:
        return np.array([_hash(text.encode(), salt) for text in values.to_pylist()], np.uint64)
    values = values.cast(pa.large_string()) if values.type != pa.large_string() else values
    offsets = np.frombuffer(values.buffers()[1], np.int64)[
        values.offset : values.offset + len(values) + 1
    ]
    data = values.buffers()[2]
    padded = np.zeros((data.size if data else 0) + 8, np.uint8)
    if data:
        padded[:-8] = np.frombuffer(data, np.uint8)
    words: Tokens = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))
    hashed = np.empty(len(values), np.uint64)
    for first in range(0, len(hashed), BLOCK_STRINGS):
        block = offsets[first : first + BLOCK_STRINGS + 1]
        hashed[first : first + BLOCK_STRINGS] = _block_hashes(words, block, salt)
    return hashed


def _block_hashes(words: Tokens, offsets: npt.NDArray[np.int64], salt: int) -> Tokens:
    """The hashes of strings between these offsets; `words` are the eight bytes from each place on."""
    starts, lengths = offsets[:-1], np.diff(offsets)
    h = _mix(lengths.astype(np.uint64) ^ np.uint64(salt & _MASK))
    at = 0
    for at in range(8, int(lengths.min()) + 1, 8):  # eight bytes that all of them have
        h = _mix(h ^ words[starts + (at - 8)])
    rows = np.flatnonzero(lengths > at)
    while len(rows):
        unused = np.maximum(at + 8 - lengths[rows], 0) * 8
        h[rows] = _mix(
            h[rows] ^ (words[starts[rows] + at] & np.uint64(_MASK) >> unused.astype(np.uint64))
        )
        at += 8
        rows = rows[lengths[rows] > at]
    return h


def _as_text(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    values = one_array(values)
    if pa.types.is_floating(values.type):
        values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 is 0.0
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
    if pa.types.is_large_string(values.type) or (
        pa.types.is_string(values.type) and len(values) <= FEW_STRINGS
    ):
        return values
    return values.cast(pa.large_string())


def tokens(label: str, columns: Sequence[pa.Array | pa.ChunkedArray]) -> Tokens:
    """One token for each row of the columns, in the space named by the label. Rows with a null have none."""
    salt = _salt(label)
    present: pa.Array | None = None
    total: Tokens | None = None
    for position, column in enumerate(columns):
        text = _as_text(column)
        if text.null_count:
            valid = pc.is_valid(text)
            present = valid if present is None else pc.and_(present, valid)
            text = pc.fill_null(text, "")
        hashed = _string_hashes(text, salt + position)
        total = hashed if total is None else _mix(total + hashed)
    if total is None:
        return NO_TOKENS
    return total if present is None else total[present.to_numpy(zero_copy_only=False)]


def id_tokens(ids: pa.Array | pa.ChunkedArray) -> Tokens:
    """Tokens of rows, by id."""
    return tokens("id", [ids])


def endpoint_tokens(side: str, ids: pa.Array | pa.ChunkedArray) -> Tokens:
    """Tokens of the `src` or `dst` nodes edges touch."""
    return tokens(side, [ids])


def unique_tokens(group: Sequence[str], columns: Sequence[pa.Array | pa.ChunkedArray]) -> Tokens:
    """Tokens of the values of a unique group; tuples with a null are exempt from uniqueness and have none."""
    return tokens("unique:" + ",".join(group), columns)


def union(parts: Iterable[Tokens]) -> Tokens:
    """All tokens, sorted, without duplicates."""
    arrays = [p for p in parts if len(p)]
    return _once(np.concatenate(arrays)) if arrays else NO_TOKENS


def _once(found: Tokens) -> Tokens:
    """Sorted, without duplicates. Sorting millions of numbers is several times faster than hashing them."""
    if len(found) < 2:
        return found
    ordered = np.sort(found)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


@frozen
class Footprint:
    """A set of tokens as it is stored in a commit."""

    exact: Tokens | None = None
    filter: npt.NDArray[np.uint8] | None = None
    everything: bool = False

    @classmethod
    def of(cls, found: Tokens) -> Footprint:
        found = _once(found)
        if len(found) <= EXACT_TOKENS_MAX:
            return cls(exact=found)
        bits = 1 << int(np.ceil(np.log2(len(found) * FILTER_BITS_PER_TOKEN)))
        if bits > FILTER_BITS_MAX:
            return cls(everything=True)
        marks = np.zeros(bits, np.bool_)
        for probe in _probes(found, bits):
            marks[probe] = True
        return cls(filter=np.packbits(marks))

    def meets(self, others: Tokens) -> bool:
        """Whether any of these tokens may be in the set."""
        return self.everything or bool(self.holds(others).any())

    def holds(self, others: Tokens) -> npt.NDArray[np.bool_]:
        """For each of these tokens, whether it may be in the set."""
        if self.exact is not None:
            return np.isin(others, self.exact)
        hit = np.full(len(others), self.everything or self.filter is not None)
        if self.filter is not None:
            for probe in _probes(others, len(self.filter) * 8):
                hit &= (self.filter[probe >> np.uint64(3)] >> (7 - (probe & np.uint64(7)))) & 1 == 1
        return hit

    def meets_sorted(self, others: Tokens) -> bool:
        """The same for sorted tokens; if the set is exact, only a few of them are compared."""
        if self.everything or self.exact is None or not len(others):
            return self.meets(others)
        places = np.minimum(np.searchsorted(others, self.exact), len(others) - 1)
        return bool((others[places] == self.exact).any())

    def to_text(self) -> str:
        """`*`, `=<base64>` or `~<base64>`."""
        if self.everything:
            return "*"
        if self.exact is not None:
            return "=" + base64.b64encode(self.exact.astype("<u8").tobytes()).decode()
        return (
            "~"
            + base64.b64encode(self.filter.tobytes() if self.filter is not None else b"").decode()
        )

    @classmethod
    def from_text(cls, text: str) -> Footprint:
        """Invalid text counts as everything."""
        try:
            raw = base64.b64decode(text[1:], validate=True)
        except (binascii.Error, ValueError):
            return cls(everything=True)
        if text.startswith("=") and len(raw) % 8 == 0:
            return cls(exact=np.frombuffer(raw, "<u8").astype(np.uint64))
        size = len(raw)
        if text.startswith("~") and size and size & (size - 1) == 0:
            return cls(filter=np.frombuffer(raw, np.uint8))
        return cls(everything=True)


def _probes(found: Tokens, bits: int) -> Iterable[Tokens]:
    step = _mix(found) | np.uint64(1)
    mask = np.uint64(bits - 1)
    for i in range(FILTER_PROBES):
        yield (found + np.uint64(i) * step) & mask
