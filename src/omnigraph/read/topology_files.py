"""Topology as derived files, `_topology/<edge table>`, so that a new process need not build it.

One object holds the arrays of an edge table as they are walked forwards and says which fragments they were made of; a
second one, which is read when somebody walks backwards, holds the others. They may be older than what is asked for
(they are extended then), absent or damaged (they are ignored then): nothing depends on them but time.
"""

from __future__ import annotations

import logging

import msgspec
import numpy as np
import numpy.typing as npt

from omnigraph.errors import OmnigraphError
from omnigraph.lang.ir import Direction
from omnigraph.read.adjacency import Adjacency
from omnigraph.read.topology import Base, MadeOf, Topology
from omnigraph.storage.objects import ObjectStore

FOLDER = "_topology"
BACKWARDS = ".in"  # ending of the second object
MAGIC = b"OGTOPO2\n"
ALIGNMENT = 64
DAMAGE = (msgspec.MsgspecError, ValueError, TypeError, IndexError, RecursionError)

log = logging.getLogger("omnigraph.read")


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """What stands before the arrays."""

    made_of: MadeOf
    edges: int
    far: int
    simple: bool  # no node has one neighbour twice
    arrays: list[tuple[str, int, int]]  # type, length, sum of the words


def topology_key(edge_path: str) -> str:
    """Where the topology of an edge table is kept."""
    return f"{FOLDER}/{edge_path.replace('/', '_')}"


def store_topology(store: ObjectStore, edge_path: str, topology: Topology) -> int:
    """Write the arrays of a topology; returns how many bytes. Whoever wrote last is found."""
    whole, key = _consolidated(topology), topology_key(edge_path)
    parts = {key + BACKWARDS: whole.base.into, key: whole.base.out}
    encoded = {name: _encode(whole, part) for name, part in parts.items()}
    for name, data in encoded.items():
        store.put(name, data)
    return sum(map(len, encoded.values()))


def load_topology(store: ObjectStore, edge_path: str) -> Topology | None:
    """The stored topology, of whatever versions it was made; None where there is none or it is damaged."""
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


def _load(store: ObjectStore, key: str) -> tuple[Header, Adjacency] | None:
    try:
        return _decode(store.get(key))
    except OmnigraphError as absent:
        log.debug("no stored topology %s: %s", key, absent)
    except DAMAGE as damaged:
        log.warning("the stored topology %s is ignored: %s", key, damaged)
    return None


def _consolidated(topology: Topology) -> Topology:
    """With nothing beside the big arrays."""
    if topology.minus is None and topology.plus is None:
        return topology
    out = topology.view(Direction.OUT).whole
    edges = sum(f.physical_rows for f in topology.made_of.edge)
    return Topology(topology.made_of, Base(out, edges), None, None)


def _encode(topology: Topology, part: Adjacency) -> bytes:
    arrays = [
        array.tobytes()
        for array in (part.start, part.node.astype(np.int32), part.edge.astype(np.int32))
    ]
    padded = [array + bytes(-len(array) % ALIGNMENT) for array in arrays]
    lengths = (("<i8", len(part.start)), ("<i4", len(part.node)), ("<i4", len(part.edge)))
    sums = [_sum(np.frombuffer(array, np.uint64)) for array in padded]
    header = Header(
        topology.made_of,
        topology.base.edges,
        part.far,
        part.is_simple,
        [(kind, count, total) for (kind, count), total in zip(lengths, sums, strict=True)],
    )
    text = msgspec.json.encode(header)
    start = MAGIC + len(text).to_bytes(8, "little") + text
    return b"".join([start, bytes(-len(start) % ALIGNMENT), *padded])


def _decode(data: bytes) -> tuple[Header, Adjacency]:
    if data[:8] != MAGIC:
        raise ValueError("it does not start like one")
    length = int.from_bytes(data[8:16], "little")
    header = msgspec.json.decode(data[16 : 16 + length], type=Header)
    at = 16 + length
    at += -at % ALIGNMENT
    arrays = []
    for kind, count, total in header.arrays:
        array = np.frombuffer(data, np.dtype(kind), count, at)
        size = array.nbytes + -array.nbytes % ALIGNMENT
        if _sum(np.frombuffer(data, np.uint64, size // 8, at)) != total:
            raise ValueError("its content has changed")
        arrays.append(array)
        at += size
    start, node, edge = arrays
    if not len(node) == len(edge) == int(start[-1]):
        raise ValueError("its parts do not fit together")
    return header, Adjacency(start, node, edge, header.far, simple=header.simple)


def _sum(words: npt.NDArray[np.uint64]) -> int:
    return int(words.sum(dtype=np.uint64))  # modulo 2**64, as numpy adds
