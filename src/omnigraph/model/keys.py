"""Ids: derived from key values, or fresh. Whole columns at a time.

The id of an entity with a key is a text that depends on the key's stored values alone: the canonical text of one
member, or the compact JSON array of the canonical texts of several. Two entities have the same id exactly when their
keys are equal.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OptionInvalid
from omnigraph.model.columns import one_array

CROCKFORD = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", np.uint8)
PAIRS = np.stack([np.repeat(CROCKFORD, 32), np.tile(CROCKFORD, 32)], axis=1).view(np.uint16).ravel()
# Of five bits each: 19 that a call shares, one half of which it shares, six that count.
ULID_CHARACTERS = 26
ULID_PARTS = np.dtype([("shared", f"V{ULID_CHARACTERS - 2}"), ("last", np.uint16)])
# Text offsets in one array are 32-bit numbers.
ULIDS_MAX = (2**31 - 1) // ULID_CHARACTERS - 1
LEADING = 19
NEEDS_ESCAPE = r'["\\\x00-\x1f]'


# --- ids from keys -----------------------------------------------------------------------------------------------


def key_ids(members: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
    """The id of each row from its key columns, in key order; null where a member is null or not a finite number.

    >>> key_ids([pa.array(["acme", None]), pa.array([42, 7])]).to_pylist()
    ['["acme","42"]', None]
    """
    return value_texts([_finite(one_array(member)) for member in members])


def value_texts(columns: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
    """A text for each row, equal exactly if all values are; null if one is null."""
    texts = [canonical_text(one_array(values)) for values in columns]
    return texts[0] if len(texts) == 1 else _json_arrays(texts)


def _finite(values: pa.Array) -> pa.Array:
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_finite(values), values, pa.scalar(None, values.type))


def canonical_text(values: pa.Array) -> pa.Array:
    """The canonical text of each value: what identifies it in an id."""
    kind = values.type
    if pa.types.is_floating(kind):
        return _float_text(values)
    if pa.types.is_date(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        values = _milliseconds(values)
    return values.cast(pa.string())


def _milliseconds(values: pa.Array) -> pa.Array:
    micros = values.cast(pa.timestamp("us", tz=values.type.tz)).cast(pa.int64())
    numbers = np.floor_divide(micros.fill_null(0).to_numpy(zero_copy_only=False), 1000)
    return pa.array(numbers, mask=_null_mask(values))


def _float_text(values: pa.Array) -> pa.Array:
    """The shortest decimal that reads back as the same number of the column's width, never with an exponent."""
    values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 is 0.0
    texts = values.cast(pa.string())
    width = np.float32 if values.type == pa.float32() else np.float64
    return _repaired(
        texts, "e", lambda text: np.format_float_positional(width(text), unique=True, trim="-")
    )


def _json_arrays(texts: Sequence[pa.Array]) -> pa.Array:
    quoted = [_json_strings(text) for text in texts]
    inside = pc.binary_join_element_wise(*quoted, ",")
    return pc.binary_join_element_wise("[", inside, "]", "")


def _json_strings(texts: pa.Array) -> pa.Array:
    plain = pc.binary_join_element_wise('"', texts, '"', "")
    special = pc.match_substring_regex(texts, NEEDS_ESCAPE)
    if not pc.any(special).as_py():
        return plain
    escaped = [json.dumps(text, ensure_ascii=False) for text in texts.filter(special).to_pylist()]
    return pc.replace_with_mask(plain, special.fill_null(False), pa.array(escaped, pa.string()))


def _repaired(texts: pa.Array, mark: str, repair: Callable[[str], str]) -> pa.Array:
    """The texts with those that contain the mark replaced, one by one: there are few."""
    marked = pc.match_substring(texts, mark).fill_null(False)
    if not pc.any(marked).as_py():
        return texts
    mended = [repair(text) for text in texts.filter(marked).to_pylist()]
    return pc.replace_with_mask(texts, marked, pa.array(mended, pa.string()))


def _null_mask(values: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
    return values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None


# --- fresh ids ---------------------------------------------------------------------------------------------------


def fresh_ids(count: int, now: datetime) -> pa.Array:
    """`count` new ULIDs: they sort by time, and within one call in their order."""
    high = int.from_bytes(os.urandom(6)) | (int(now.timestamp() * 1000) << 48)
    # 32 bits count the rows from a random start that leaves room for all of them.
    return ulids(high, int.from_bytes(os.urandom(4)) >> 1, count)


def ulids(high: int, start: int, count: int) -> pa.Array:
    """`count` ULIDs in order: `high` are their first 96 bits, `start` the last 32 of the first one.

    They come in blocks of 1,024 that differ in their last two characters only, so little is computed per id.
    """
    if count > ULIDS_MAX:
        raise OptionInvalid(
            f"{count:,} rows without an id are more than one array of ids can hold ({ULIDS_MAX:,})",
            help='Load them with engine="spark", or in parts.',
        )
    blocks = np.arange(start >> 10, ((start + count - 1) >> 10) + 1, dtype=np.uint64)
    shared = np.empty((len(blocks), ULID_CHARACTERS - 2), np.uint8)
    shared[:, :LEADING] = [CROCKFORD[(high >> (5 * i - 2)) & 31] for i in range(LEADING, 0, -1)]
    straddling = (blocks >> np.uint64(20)) | np.uint64((high << 2) & 31)
    shared[:, LEADING] = CROCKFORD[straddling.astype(np.intp)]
    pairs = shared.view(np.uint16)
    for place in range(2):
        digits = (blocks >> np.uint64(10 * place)) & np.uint64(1023)
        pairs[:, -1 - place] = PAIRS[digits.astype(np.intp)]
    rows = np.empty((len(blocks), len(PAIRS)), ULID_PARTS)
    rows["shared"] = shared.view(ULID_PARTS["shared"])
    rows["last"] = PAIRS
    text = rows.reshape(-1)[start & 1023 :][:count]
    offsets = np.arange(0, (count + 1) * ULID_CHARACTERS, ULID_CHARACTERS, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text.view(np.uint8))]
    return pa.Array.from_buffers(pa.string(), count, buffers)
