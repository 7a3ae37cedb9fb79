"""Topology as derived files, `_topology/<edge table>`, so that a new process need not build it.

One object holds the arrays of an edge table as they are walked forwards and names the fragments they were made of; a
second one, read when edges are walked backwards, holds the others. On a disk they are mapped into memory: a
query reads the pages it walks, and processes share them. They may be older than requested (then they are extended),
absent or damaged (then they are ignored): only speed depends on them.
"""

from __future__ import annotations

import logging
import mmap
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from omnigraph.errors import OmnigraphError
from omnigraph.lang.ir import Direction
from omnigraph.read.adjacency import Adjacency
from omnigraph.read.topology import Base, MadeOf, Topology
from omnigraph.storage.local import mapped
from omnigraph.storage.objects import LargeObjects, ObjectStore

FOLDER = "_topology"
BACKWARDS = ".in"  # ending of the second object
MAGIC = b"OGTOPO3\n"
ALIGNMENT = 64
VERIFIED_BYTES_MAX = 64 << 20  # a larger file on a disk is not fully read for verification
DAMAGE = (msgspec.MsgspecError, ValueError, TypeError, IndexError, RecursionError)

log = logging.getLogger("omnigraph.read")


class FileHeader(msgspec.Struct, forbid_unknown_fields=True):
    """The header before the arrays."""

    made_of: MadeOf
    edges: int
    far: int
    simple: bool  # no node has a repeated neighbour
    arrays: list[tuple[str, int, int]]  # type, length, sum of the words


def topology_key(edge_path: str) -> str:
    """Where the topology of an edge table is kept."""
    return f"{FOLDER}/{edge_path.replace('/', '_')}"


def store_topology(store: LargeObjects, edge_path: str, topology: Topology) -> int:
    """Write the arrays of a topology; returns the size in bytes. The last writer wins."""
    whole, key = _consolidated(topology), topology_key(edge_path)
    parts = {key + BACKWARDS: whole.base.into, key: whole.base.out}
    return sum(_store(store, name, whole, part) for name, part in parts.items())


def _store(store: LargeObjects, key: str, topology: Topology, part: Adjacency) -> int:
    """Through a file, so that the arrays need no second copy in memory."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-topology-") as folder:
        place = Path(folder, "arrays")
        with place.open("wb") as file:
            for piece in _encoded(topology, part):
                file.write(piece)
        size = place.stat().st_size
        store.put_file(key, place)
    return size


def load_topology(store: ObjectStore, edge_path: str) -> Topology | None:
    """The stored topology, of whatever versions it was made; None if it is missing or damaged."""
    key = topology_key(edge_path)
    found = _load(store, key)
    if found is None:
        return None
    header, out = found
    base = Base(out, header.edges, lambda: _into(store, key, header.made_of))
    return Topology(header.made_of, base, None, None)


def _into(store: ObjectStore, key: str, made_of: MadeOf) -> Adjacency | None:
    """The arrays for walking backwards, if they were made of the same fragments."""
    found = _load(store, key + BACKWARDS)
    return found[1] if found is not None and found[0].made_of == made_of else None


def _load(store: ObjectStore, key: str) -> tuple[FileHeader, Adjacency] | None:
    try:
        data = mapped(store, key)
        return _decode(store.get(key) if data is None else data, is_mapped=data is not None)
    except OmnigraphError as absent:
        log.debug("no stored topology %s: %s", key, absent)
    except DAMAGE as damaged:
        log.warning("the stored topology %s is ignored: %s", key, damaged)
    return None


def _consolidated(topology: Topology) -> Topology:
    """With only the big arrays."""
    if topology.minus is None and topology.plus is None:
        return topology
    out = topology.view(Direction.OUT).whole
    edges = sum(f.physical_rows for f in topology.made_of.edge)
    return Topology(topology.made_of, Base(out, edges), None, None)


def _encoded(topology: Topology, part: Adjacency) -> Iterator[Any]:
    """The file of one direction, piece by piece."""
    arrays = (
        part.start.astype("<i8", copy=False),
        part.node.astype("<i4", copy=False),
        part.edge.astype("<i4", copy=False),
        part.loops.astype("<i4", copy=False),
    )
    header = FileHeader(
        topology.made_of,
        topology.base.edges,
        part.far,
        part.is_simple,
        [(array.dtype.str, len(array), _sum(array)) for array in arrays],
    )
    text = msgspec.json.encode(header)
    start = MAGIC + len(text).to_bytes(8, "little") + text
    yield start + bytes(-len(start) % ALIGNMENT)
    for array in arrays:
        yield np.ascontiguousarray(array).view(np.uint8).data
        yield bytes(-array.nbytes % ALIGNMENT)


def _decode(data: bytes | mmap.mmap, *, is_mapped: bool) -> tuple[FileHeader, Adjacency]:
    """The arrays as they lie in the data. Of a large file on a disk only the walked parts will ever be read: only
    its starts and its length are verified; files are put in place whole."""
    if data[:8] != MAGIC:
        raise ValueError("its start is not recognized")
    length = int.from_bytes(data[8:16], "little")
    header = msgspec.json.decode(data[16 : 16 + length], type=FileHeader)
    at = 16 + length
    at += -at % ALIGNMENT
    arrays: list[npt.NDArray[Any]] = []
    everything = not is_mapped or len(data) <= VERIFIED_BYTES_MAX
    for kind, count, total in header.arrays:
        array = np.frombuffer(data, np.dtype(kind), count, at)
        if (everything or not arrays) and _sum(array) != total:
            raise ValueError("its content has changed")
        arrays.append(array)
        end = at + array.nbytes
        at = end + -array.nbytes % ALIGNMENT
        if any(data[end:at]):
            raise ValueError("its content has changed")
    start, node, edge, loops = arrays
    if at != len(data) or not len(node) == len(edge) == int(start[-1]):
        raise ValueError("its parts do not fit together")
    found = Adjacency(start, node, edge, header.far, simple=header.simple, is_mapped=is_mapped)
    found.__dict__["loops"] = loops
    return header, found


def _sum(array: npt.NDArray[Any]) -> int:
    """The sum of the words, modulo 2**64 as numpy adds; the last may be half a word."""
    whole = len(array) * array.itemsize // 8
    raw = np.ascontiguousarray(array).view(np.uint8)
    words = raw[: whole * 8].view(np.uint64)
    return (
        int(words.sum(dtype=np.uint64)) + int.from_bytes(raw[whole * 8 :].tobytes(), "little")
    ) % 2**64
