"""Topology as derived files, `_topology/<edge table>`, so that a new process need not build it.

One object holds the big arrays of one edge table and says which fragments they were made of. It may be older than what
is asked for (it is extended then), absent or damaged (it is ignored then): nothing depends on it but time.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import numpy as np

from omnigraph.errors import OmnigraphError
from omnigraph.lang.ir import Direction
from omnigraph.read.adjacency import Adjacency
from omnigraph.read.arrays import AnyArray
from omnigraph.read.topology import Base, MadeOf, Topology
from omnigraph.storage.objects import ObjectStore

FOLDER = "_topology"
MAGIC = b"OGTOPO1\n"
ALIGNMENT = 64

log = logging.getLogger("omnigraph.read")


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """What stands before the arrays."""

    made_of: MadeOf
    edges: int
    far: tuple[int, int]
    arrays: list[tuple[str, int, int]]  # type, length, sum of the 32-bit words


def topology_key(edge_path: str) -> str:
    """Where the topology of an edge table is kept."""
    return f"{FOLDER}/{edge_path.replace('/', '_')}"


def store_topology(store: ObjectStore, edge_path: str, topology: Topology) -> int:
    """Write the arrays of a topology; returns how many bytes. Whoever wrote last is found."""
    data = _encode(_consolidated(topology))
    store.put(topology_key(edge_path), data)
    return len(data)


def load_topology(store: ObjectStore, edge_path: str) -> Topology | None:
    """The stored topology, of whatever versions it was made; None where there is none or it is damaged."""
    try:
        data = store.get(topology_key(edge_path))
        return _decode(data)
    except OmnigraphError as absent:
        log.debug("no stored topology for %s: %s", edge_path, absent)
    except (msgspec.MsgspecError, ValueError, TypeError, IndexError, RecursionError) as damaged:
        log.warning("the stored topology of %s is ignored: %s", edge_path, damaged)
    return None


def _consolidated(topology: Topology) -> Topology:
    """With nothing beside the big arrays."""
    if topology.minus is None and topology.plus is None:
        return topology
    out = topology.view(Direction.OUT).whole
    edges = sum(f.physical_rows for f in topology.made_of.edge)
    return Topology(topology.made_of, Base(out, edges), None, None)


def _encode(topology: Topology) -> bytes:
    base = topology.base
    arrays = [
        array
        for part in (base.out, base.into)
        for array in (part.start, part.node.astype(np.int32), part.edge.astype(np.int32))
    ]
    header = Header(
        topology.made_of,
        base.edges,
        (base.out.far, base.into.far),
        [(a.dtype.str, len(a), _sum(a)) for a in arrays],
    )
    text = msgspec.json.encode(header)
    pieces = [MAGIC, len(text).to_bytes(8, "little"), text]
    size = sum(map(len, pieces))
    for array in arrays:
        pad = -size % ALIGNMENT
        pieces += [bytes(pad), array.tobytes()]
        size += pad + array.nbytes
    return b"".join(pieces)


def _decode(data: bytes) -> Topology:
    if data[:8] != MAGIC:
        raise ValueError("it does not start like one")
    length = int.from_bytes(data[8:16], "little")
    header = msgspec.json.decode(data[16 : 16 + length], type=Header)
    at, arrays = 16 + length, []
    for kind, count, total in header.arrays:
        at += -at % ALIGNMENT
        array = np.frombuffer(data, np.dtype(kind), count, at)
        if _sum(array) != total:
            raise ValueError("its content has changed")
        arrays.append(array)
        at += array.nbytes
    out, into = _adjacency(arrays[:3], header.far[0]), _adjacency(arrays[3:], header.far[1])
    return Topology(header.made_of, Base(out, header.edges, into), None, None)


def _adjacency(arrays: list[Any], far: int) -> Adjacency:
    start, node, edge = arrays
    if not len(node) == len(edge) == int(start[-1]):
        raise ValueError("its parts do not fit together")
    return Adjacency(start, node, edge, far)


def _sum(array: AnyArray) -> int:
    return int(array.view(np.uint32).sum(dtype=np.uint64)) if len(array) else 0
